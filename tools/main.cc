#include "tools/cli.h"

int main(int argc, char** argv) { return inlay::RunCommandLine(argc, argv); }

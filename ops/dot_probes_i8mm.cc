#define INLAY_I8MM
#include "ops/dot_probes.cc"

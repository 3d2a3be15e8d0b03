#define INLAY_VNNI
#include "ops/dot_probes.cc"

#define INLAY_VNNI
#include "ops/cpu/dot_probes.cc"

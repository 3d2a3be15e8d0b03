#define INLAY_DOTPROD
#include "ops/cpu/dot_probes.cc"

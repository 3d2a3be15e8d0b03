#define INLAY_DOTPROD
#include "ops/dot_probes.cc"

#define INLAY_I8MM
#include "ops/cpu/dot_probes.cc"

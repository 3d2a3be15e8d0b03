#define INLAY_DOTPROD
#include "ops/matmul_nibbles.cc"

#define INLAY_DOTPROD
#include "ops/matmul/matmul_nibbles.cc"

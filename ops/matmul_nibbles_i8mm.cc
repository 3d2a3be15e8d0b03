#define INLAY_I8MM
#include "ops/matmul_nibbles.cc"

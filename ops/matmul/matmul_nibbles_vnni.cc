#define INLAY_VNNI
#include "ops/matmul/matmul_nibbles.cc"

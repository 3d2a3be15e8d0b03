#define INLAY_VNNI
#include "ops/matmul_nibbles.cc"

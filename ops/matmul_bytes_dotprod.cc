#define INLAY_DOTPROD
#include "ops/matmul_bytes.cc"

#define INLAY_VNNI
#include "ops/matmul/matmul_bytes.cc"

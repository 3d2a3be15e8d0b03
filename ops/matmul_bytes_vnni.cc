#define INLAY_VNNI
#include "ops/matmul_bytes.cc"

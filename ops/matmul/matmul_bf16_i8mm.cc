#define INLAY_I8MM
#include "ops/matmul/matmul_bf16.cc"

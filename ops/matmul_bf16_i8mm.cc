#define INLAY_I8MM
#include "ops/matmul_bf16.cc"

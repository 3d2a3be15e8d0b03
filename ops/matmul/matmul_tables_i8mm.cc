#define INLAY_I8MM
#include "ops/matmul/matmul_tables.cc"

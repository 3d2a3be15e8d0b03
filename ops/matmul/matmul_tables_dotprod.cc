#define INLAY_DOTPROD
#include "ops/matmul/matmul_tables.cc"

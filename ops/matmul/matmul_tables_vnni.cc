#define INLAY_VNNI
#include "ops/matmul/matmul_tables.cc"

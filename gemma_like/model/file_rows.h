// The rows of a matrix that stays in the model's file: of an embedding few are read at a time.
#ifndef INLAY_GEMMA_LIKE_MODEL_FILE_ROWS_H_
#define INLAY_GEMMA_LIKE_MODEL_FILE_ROWS_H_

#include <cstddef>

#include "io/gguf/gguf.h"
#include "ops/quant/weight_matrix.h"

namespace inlay {

class FileRows {
 public:
  FileRows() = default;
  // `matrix` is a tensor's data in `file`, which must stay where it is as long as rows are read.
  FileRows(const GgufFile& file, const WeightMatrix& matrix) : file_(&file), matrix_(matrix) {}

  size_t rows() const { return matrix_.rows; }
  size_t cols() const { return matrix_.cols; }

  // out[c] = matrix[row, c] for all columns, as DequantizeRow gives them. Reads a copy, so that no
  // page of the file becomes memory of this process. Thread-safe.
  void Read(size_t row, float* out) const;

 private:
  const GgufFile* file_ = nullptr;
  WeightMatrix matrix_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_FILE_ROWS_H_

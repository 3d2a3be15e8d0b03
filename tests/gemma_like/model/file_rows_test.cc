// Rows that stay in the model's file.
#include "gemma_like/model/file_rows.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "io/gguf/gguf_writer.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/weight_type.h"
#include "tests/io/file/folder_test.h"
#include "tests/io/file/resident_bytes.h"

namespace inlay {
namespace {

class FileRowsTest : public FolderTest<> {};

// Rows of some bytes, and such that are read in several pieces, of which the last is shorter.
TEST_F(FileRowsTest, AreThoseOfTheMatrix) {
  constexpr size_t kRows = 3;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kQ8_0,
                                WeightType::kQ4_K, WeightType::kIQ3_S}) {
    for (const size_t cols : {size_t{256}, size_t{21 * 1024}}) {
      const WeightTypeInfo& info = GetWeightTypeInfo(type);
      std::vector<uint8_t> data(kRows * cols / info.block_size * info.block_bytes);
      // No exponent has all bits set: neither infinity nor NaN.
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 37 % 101 & 0x3b);
      GgufWriter writer;
      ASSERT_TRUE(writer.AddTensor("rows", {cols, kRows}, type).ok());
      ASSERT_TRUE(writer.Open(Path("x")).ok());
      ASSERT_TRUE(writer.AppendData(data).ok());
      ASSERT_TRUE(writer.Finish().ok());
      const auto file = GgufFile::Open(Path("x"));
      ASSERT_TRUE(file.ok()) << file.status();
      const absl::Span<const uint8_t> stored = file->FindTensor("rows")->data;
      // The header is shorter than a page, so the mapping begins with the page of the first row.
      const auto* const start = stored.data() - reinterpret_cast<uintptr_t>(stored.data()) % page;
      const WeightMatrix matrix{.data = stored.data(), .type = type, .rows = kRows, .cols = cols};
      const FileRows rows(*file, matrix);
      EXPECT_EQ(rows.rows(), kRows);
      EXPECT_EQ(rows.cols(), cols);
      std::vector<float> read(cols), expected(cols);
      for (const size_t row : {size_t{2}, size_t{0}}) {
        file->Forget(stored);
        const size_t resident = ResidentBytes(start);
        rows.Read(row, read.data());
        EXPECT_EQ(ResidentBytes(start), resident) << "the row was read through the mapping";
        DequantizeRow(matrix, row, expected.data());
        EXPECT_EQ(read, expected) << info.name << " " << row;
      }
      EXPECT_NE(expected, std::vector<float>(cols));
    }
  }
}

}  // namespace
}  // namespace inlay

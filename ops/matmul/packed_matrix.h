// Weight matrices rearranged for the matmul kernels: tiles of 16 output rows, interleaved.
#ifndef INLAY_OPS_MATMUL_PACKED_MATRIX_H_
#define INLAY_OPS_MATMUL_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/quant/grids.h"
#include "ops/quant/quant_blocks.h"
#include "ops/quant/weight_matrix.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// Output rows that are interleaved. 16 rows of 4 bytes fill the widest vectors (512 bits); narrower
// vectors hold a slice of a tile at a time, so the layout is the same for every CPU target.
inline constexpr size_t kTileRows = 16;
// Alignment of tiles and of their sections, in bytes.
inline constexpr size_t kTileAlignment = 64;

// How the elements of a tile are stored. A tile is a sequence of groups: the columns that share a
// scale, with all their data side by side (GroupLayout), so that the product of one token reads
// memory sequentially. A quad is 4 consecutive columns of all 16 rows, 4 bytes a row: what one
// instruction multiplies with 4 activations. A nibble pair holds two consecutive quads in the low
// and high nibbles of its bytes.
enum class PackedFormat : uint8_t {
  // 16 floats, or f16, per column.
  kF32,
  kF16,
  // Per pair of columns 16 pairs of bfloat16; an odd last column is paired with zeros.
  kBF16,
  // Q8_0: per 32 columns quads of q + 128, then 16 scales as f16.
  kBytes32,
  // Q4_0: per 32 columns nibble pairs of q + 8, then 16 scales as f16.
  kNibbles32,
  // Q4_K: per 256 columns 16 f16 d and 16 f16 m; then per 32 columns nibble pairs of q, 16
  // scales s and 16 offsets t in bytes: w = (d s) q - (m t).
  kNibblesK,
  // Q6_K: per 256 columns 16 f16 d; then per 16 columns nibble pairs of the low bits of q + 32,
  // a quad of bytes with the high two bits of 4 quads, and 16 scales s as signed bytes: w = (d s)
  // q.
  kSixK,
  // Q5_0: per 32 columns nibble pairs of the low bits of q + 16, a quad of bytes with the high bits
  // of 8 quads, then 16 scales as f16.
  kFives32,
  // Q5_1: likewise of q, and after the scales 16 offsets as f16.
  kFivesOffset32,
  // Q5_K: as kNibblesK, with a quad of bytes for the high bits of 8 quads before the scales.
  kFivesK,
  // Q4_1: per 32 columns nibble pairs of q, then 16 scales and 16 offsets as f16.
  kNibblesOffset32,
  // Types whose values come from a table of 16 (PackedTable), as nibble pairs of indices per 32
  // columns; then 16 scales, for IQ4_NL as f16, for MXFP4 as the bytes e of BlockMXFP4. IQ4_XS,
  // IQ3_XXS and IQ3_S: after 16 f16 d per 256 columns, with 16 signed bytes s: w = (d s) times a
  // power of two times the value.
  kTableIq4Nl,
  kTableMxfp4,
  kTableIq4Xs,
  kTableIq3Xxs,
  kTableIq3S,
  // Q2_K: per 256 columns 16 f16 d and 16 f16 m; then per 16 columns a quad of bytes with the 2
  // bits of 4 quads, and 16 bytes with the nibbles s (low) and t: w = (d s) q - (m t).
  kTwosK,
  // 3 bits per weight: per 256 columns 16 f16 d; then per 32 columns 2 quads of bytes with the low
  // 2 bits of 8 quads, and a quad of bytes with their high bits. Q3_K: q + 4, then per 16 columns
  // 16 signed bytes s: w = (d s) q.
  kThreesK,
  // Likewise indices into a table of 8. IQ2_XS and IQ2_S: then 16 bytes with the nibbles s of both
  // halves of the 32 columns. IQ2_XXS has the nibbles s of 8 groups of 32 columns after d.
  kTableIq2S,
  kTableIq2Xxs,
};

// The format that matrices of a type are packed in.
PackedFormat PackedFormatOf(WeightType type);

// The values of a format whose quants are indices into a table, in the order of the indices; null
// for the other formats.
inline constexpr size_t kPackedTableSize = 16;
constexpr const int8_t* PackedTable(PackedFormat format) {
  switch (format) {
    case PackedFormat::kTableIq4Nl:
    case PackedFormat::kTableIq4Xs:
      return kIq4NlValues;
    case PackedFormat::kTableMxfp4:
      return kFp4Values;
    case PackedFormat::kTableIq3Xxs:
      return kIq3XxsValues;
    case PackedFormat::kTableIq3S:
      return kIq3SValues;
    case PackedFormat::kTableIq2S:
    case PackedFormat::kTableIq2Xxs:
      return kIq2Values;
    default:
      return nullptr;
  }
}

// Whether products with a format use activations that are rounded to 8 bits.
constexpr bool IsQuantized(PackedFormat format) {
  return format != PackedFormat::kF32 && format != PackedFormat::kF16 &&
         format != PackedFormat::kBF16;
}

// Changes when the bytes of any format change, or the format of any type: matrices packed under
// another version cannot be used.
inline constexpr uint32_t kPackedLayoutVersion = 4;

// Memory for the matrices of a model, one after the other in one allocation: large pages mean fewer
// address translations when weights are streamed, and a single matrix does not fill them. It lives
// as long as one of the matrices in it.
class PackedMemory {
 public:
  PackedMemory() = default;
  // For matrices of `bytes` together (PackedMatrix::bytes). If the system has no memory, Allocate
  // returns null.
  explicit PackedMemory(size_t bytes);
  // Bytes that the constructor allocates: whole pages.
  static size_t AllocatedBytes(size_t bytes);

  // The next `bytes`, at a multiple of kTileAlignment; null if less is left.
  std::shared_ptr<uint8_t> Allocate(size_t bytes);

 private:
  std::shared_ptr<uint8_t> memory_;
  size_t left_ = 0;
};

// One copy of a matrix in such a format, or of some of its rows; rows are padded with zeros to
// whole tiles. Movable.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  // Rearranges `w`, whose memory is not needed afterwards. Without memory for the copy, the result
  // is empty.
  static PackedMatrix Pack(const WeightMatrix& w, Team& team, PackedMemory& memory);
  static PackedMatrix Pack(const WeightMatrix& w, Team& team);

  // A matrix of this type that was packed before and lies at `data`, which starts at a multiple of
  // kTileAlignment and outlives the result.
  static PackedMatrix View(const uint8_t* data, WeightType type, size_t rows, size_t cols);
  // The rows [first, first + count) of a matrix of `whole` rows that lies there: whole tiles, but
  // for its last.
  static PackedMatrix ViewOf(const uint8_t* data, WeightType type, size_t whole, size_t cols,
                             size_t first, size_t count);
  // A matrix of this type without data, which is empty, and otherwise has the numbers of one.
  static PackedMatrix ShapeOf(WeightType type, size_t rows, size_t cols);
  // bytes() of such a matrix.
  static size_t BytesOf(WeightType type, size_t rows, size_t cols);

  bool empty() const { return data_ == nullptr; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }

  // Says that these are the rows from `first` on of a matrix of `whole` rows. Without it they are
  // all of one.
  void SetPart(size_t first, size_t whole) {
    first_row_ = first;
    other_rows_ = whole - rows_;
  }
  bool is_part() const { return other_rows_ != 0; }
  size_t first_row() const { return first_row_; }
  size_t whole_rows() const { return rows_ + other_rows_; }
  PackedFormat format() const { return format_; }
  size_t tiles() const { return (rows_ + kTileRows - 1) / kTileRows; }
  size_t tile_bytes() const { return tile_bytes_; }
  const uint8_t* tile(size_t i) const { return data_.get() + i * tile_bytes_; }
  // Bytes of memory that it occupies, which is also what a product with it reads.
  size_t bytes() const { return tiles() * tile_bytes_; }

 private:
  // Without data.
  PackedMatrix(WeightType type, size_t rows, size_t cols);

  size_t rows_ = 0;
  size_t cols_ = 0;
  size_t first_row_ = 0;   // among those of the whole matrix
  size_t other_rows_ = 0;  // of it, which are not here
  PackedFormat format_ = PackedFormat::kF32;
  size_t tile_bytes_ = 0;
  std::shared_ptr<const uint8_t> data_;
};

// The layout of a tile, in bytes; a member is 0 where the format has no such data.
struct GroupLayout {
  size_t cols = 1;  // of a group
  // Distances from the group's start, where its quants are:
  size_t high = 0;        // to the high bits of quants
  size_t scales = 0;      // to the scales
  size_t offsets = 0;     // to the offsets
  size_t bytes = 0;       // of a group
  size_t per_header = 1;  // groups that share a header, which precedes them
  size_t header = 0;      // bytes of d and m

  // The start of group g, and of its header, from the tile's.
  constexpr size_t Group(size_t g) const { return (g / per_header + 1) * header + g * bytes; }
  constexpr size_t Header(size_t g) const { return g / per_header * (header + per_header * bytes); }
  constexpr size_t TileBytes(size_t tile_cols) const {
    const size_t groups = (tile_cols + cols - 1) / cols;
    const size_t end = groups * bytes + (groups + per_header - 1) / per_header * header;
    return (end + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
  }
};

constexpr GroupLayout GetGroupLayout(PackedFormat format) {
  constexpr size_t kRow = kTileRows;
  switch (format) {
    case PackedFormat::kF32:
      return {.bytes = 4 * kRow};
    case PackedFormat::kF16:
      return {.bytes = 2 * kRow};
    case PackedFormat::kBF16:
      return {.cols = 2, .bytes = 4 * kRow};
    case PackedFormat::kBytes32:
      return {.cols = 32, .scales = 32 * kRow, .bytes = 34 * kRow};
    case PackedFormat::kNibbles32:
      return {.cols = 32, .scales = 16 * kRow, .bytes = 18 * kRow};
    case PackedFormat::kNibblesK:
      return {.cols = 32,
              .scales = 16 * kRow,
              .offsets = 17 * kRow,
              .bytes = 18 * kRow,
              .per_header = 8,
              .header = 4 * kRow};
    case PackedFormat::kSixK:
      return {.cols = 16,
              .high = 8 * kRow,
              .scales = 12 * kRow,
              .bytes = 13 * kRow,
              .per_header = 16,
              .header = 2 * kRow};
    case PackedFormat::kFives32:
      return {.cols = 32, .high = 16 * kRow, .scales = 20 * kRow, .bytes = 22 * kRow};
    case PackedFormat::kFivesOffset32:
      return {.cols = 32,
              .high = 16 * kRow,
              .scales = 20 * kRow,
              .offsets = 22 * kRow,
              .bytes = 24 * kRow};
    case PackedFormat::kFivesK:
      return {.cols = 32,
              .high = 16 * kRow,
              .scales = 20 * kRow,
              .offsets = 21 * kRow,
              .bytes = 22 * kRow,
              .per_header = 8,
              .header = 4 * kRow};
    case PackedFormat::kNibblesOffset32:
      return {.cols = 32, .scales = 16 * kRow, .offsets = 18 * kRow, .bytes = 20 * kRow};
    case PackedFormat::kTableIq4Nl:
      return {.cols = 32, .scales = 16 * kRow, .bytes = 18 * kRow};
    case PackedFormat::kTableMxfp4:
      return {.cols = 32, .scales = 16 * kRow, .bytes = 17 * kRow};
    case PackedFormat::kTableIq4Xs:
    case PackedFormat::kTableIq3Xxs:
    case PackedFormat::kTableIq3S:
      return {
          .cols = 32, .scales = 16 * kRow, .bytes = 17 * kRow, .per_header = 8, .header = 2 * kRow};
    case PackedFormat::kTwosK:
      return {.cols = 16,
              .scales = 4 * kRow,
              .offsets = 4 * kRow,
              .bytes = 5 * kRow,
              .per_header = 16,
              .header = 4 * kRow};
    case PackedFormat::kThreesK:
      return {.cols = 32,
              .high = 8 * kRow,
              .scales = 12 * kRow,
              .bytes = 14 * kRow,
              .per_header = 8,
              .header = 2 * kRow};
    case PackedFormat::kTableIq2S:
      return {.cols = 32,
              .high = 8 * kRow,
              .scales = 12 * kRow,
              .bytes = 13 * kRow,
              .per_header = 8,
              .header = 2 * kRow};
    case PackedFormat::kTableIq2Xxs:
      return {
          .cols = 32, .high = 8 * kRow, .bytes = 12 * kRow, .per_header = 8, .header = 6 * kRow};
  }
  return {};
}

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_PACKED_MATRIX_H_

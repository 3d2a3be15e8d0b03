// Weight matrices rearranged for the matmul kernels: tiles of 16 output rows, interleaved.
#ifndef INLAY_OPS_PACKED_MATRIX_H_
#define INLAY_OPS_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// Output rows that are interleaved. 16 rows of 4 bytes fill the widest vectors (512 bits); narrower
// ones take a part of a tile at a time, so the layout is the same for every CPU target.
inline constexpr size_t kTileRows = 16;

// How the elements of a tile are stored. A quad is 4 consecutive columns of all 16 rows, 4 bytes a
// row: what one instruction multiplies with 4 activations. A nibble pair holds two consecutive
// quads in the low and high halves of its bytes. Each section of a tile starts at a multiple of 64
// bytes.
enum class PackedFormat : uint8_t {
  kF32,        // 16 floats per column
  kF16,        // 16 halves per column
  kBF16,       // 16 bfloat16 per column
  kBytes32,    // quads of q + 128; then per 32 columns 16 scales as halves: Q8_0
  kNibbles32,  // nibble pairs of q + 8; then per 32 columns 16 scales as halves: Q4_0
  kNibblesK,   // nibble pairs of q; then per 32 columns 16 scales s and 16 offsets t in bytes; then
               // per 256 columns 16 halves d and 16 halves m: w = (d s) q - (m t): Q4_K
  kSixK,  // nibble pairs of the low bits of q + 32; then quads of the high two bits, 4 quads to a
          // quad of bytes; then per 16 columns 16 scales s as signed bytes; then per 256 columns 16
          // halves d: w = (d s) q: Q6_K
  kWide32,  // quads of q + 128; then per 32 columns 16 scales and 16 offsets as floats: the other
            // types
  kWide16,  // the same per 16 columns
};

// One copy of a matrix in such a format; rows are padded with zeros to whole tiles. Movable.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  // Rearranges `w`, whose memory is not needed afterwards. Without memory for the copy, the result
  // is empty.
  static PackedMatrix Pack(const WeightMatrix& w, ThreadPool& pool);

  // Memory that Pack takes for such a matrix.
  static size_t AllocatedBytes(WeightType type, size_t rows, size_t cols);

  bool empty() const { return data_ == nullptr; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  PackedFormat format() const { return format_; }
  size_t tiles() const { return (rows_ + kTileRows - 1) / kTileRows; }
  size_t tile_bytes() const { return tile_bytes_; }
  const uint8_t* tile(size_t i) const { return data_.get() + i * tile_bytes_; }
  // Memory that it takes, which is also what a product with it reads.
  size_t bytes() const { return tiles() * tile_bytes_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };

  size_t rows_ = 0;
  size_t cols_ = 0;
  PackedFormat format_ = PackedFormat::kF32;
  size_t tile_bytes_ = 0;
  std::unique_ptr<uint8_t[], Free> data_;
};

// Where the sections of a tile of `cols` columns start, in bytes; what a format does not have is
// empty.
struct TileLayout {
  size_t high = 0;    // kSixK: the high bits
  size_t scales = 0;  // the scales and, after all of them, the offsets
  size_t offsets = 0;
  size_t supers = 0;  // d and, after all of them, m
  size_t bytes = 0;   // of the whole tile
};
TileLayout GetTileLayout(PackedFormat format, size_t cols);

}  // namespace inlay

#endif  // INLAY_OPS_PACKED_MATRIX_H_

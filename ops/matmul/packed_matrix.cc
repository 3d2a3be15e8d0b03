#include "ops/matmul/packed_matrix.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "ops/cpu/large_pages.h"
#include "ops/quant/quant_blocks.h"
#include "ops/quant/quant_unpack.h"

namespace inlay {
namespace {

bool InLargePages(size_t bytes) { return bytes >= kLargePage; }

// Writes one row of a tile at a time; the tile starts as zeros.
class TileWriter {
 public:
  TileWriter(PackedFormat format, size_t cols, uint8_t* tile)
      : format_(format),
        cols_(cols),
        layout_(GetGroupLayout(format)),
        groups_(cols / layout_.cols),
        tile_(tile) {
    const int8_t* table = PackedTable(format);
    if (table == nullptr) return;
    for (uint8_t i = kPackedTableSize; i-- > 0;) index_of_[static_cast<uint8_t>(table[i])] = i;
  }

  void WriteRow(const WeightMatrix& w, size_t row, size_t r) {
    switch (format_) {
      case PackedFormat::kF32:
        return Interleave<uint32_t>(w.RowData(row), r);
      case PackedFormat::kF16:
        return Interleave<uint16_t>(w.RowData(row), r);
      case PackedFormat::kBF16:
        return InterleavePairs(static_cast<const char*>(w.RowData(row)), r);
      default:
        break;
    }
    quants_.resize(cols_);
    // No scales and offsets: they are copied from the blocks as they are.
    UnpackRow(w.type, w.RowData(row), cols_, quants_.data(), /*scales=*/nullptr,
              /*offsets=*/nullptr);
    if (PackedTable(format_) != nullptr) {
      for (int8_t& q : quants_) q = static_cast<int8_t>(index_of_[static_cast<uint8_t>(q)]);
    }
    switch (format_) {
      case PackedFormat::kBytes32:
        WriteBytes(r);
        return WriteF16Scales(reinterpret_cast<const BlockQ8_0*>(w.RowData(row)), r);
      case PackedFormat::kNibbles32:
        WriteNibbles(8, r);
        return WriteF16Scales(reinterpret_cast<const BlockQ4_0*>(w.RowData(row)), r);
      case PackedFormat::kFives32:
        WriteFives(0x10, r);
        return WriteF16Scales(reinterpret_cast<const BlockQ5_0*>(w.RowData(row)), r);
      case PackedFormat::kFivesOffset32:
        WriteFives(0, r);
        return WriteF16ScalesAndOffsets(reinterpret_cast<const BlockQ5_1*>(w.RowData(row)), r);
      case PackedFormat::kFivesK:
        WriteFives(0, r);
        return WriteScalesK(reinterpret_cast<const BlockQ5_K*>(w.RowData(row)), r);
      case PackedFormat::kNibblesK:
        WriteNibbles(0, r);
        return WriteScalesK(reinterpret_cast<const BlockQ4_K*>(w.RowData(row)), r);
      case PackedFormat::kSixK:
        return WriteSix(reinterpret_cast<const BlockQ6_K*>(w.RowData(row)), r);
      case PackedFormat::kNibblesOffset32:
        WriteNibbles(0, r);
        return WriteF16ScalesAndOffsets(reinterpret_cast<const BlockQ4_1*>(w.RowData(row)), r);
      case PackedFormat::kTwosK:
        return WriteTwos(reinterpret_cast<const BlockQ2_K*>(w.RowData(row)), r);
      case PackedFormat::kThreesK:
        WriteThrees(4, r);
        return WriteScalesQ3(reinterpret_cast<const BlockQ3_K*>(w.RowData(row)), r);
      default:
        return WriteTableRow(w.type, w.RowData(row), r);
    }
  }

 private:
  template <class T>
  void Interleave(const void* row, size_t r) {
    for (size_t k = 0; k < cols_; ++k) {
      std::memcpy(tile_ + (k * kTileRows + r) * sizeof(T),
                  static_cast<const char*>(row) + k * sizeof(T), sizeof(T));
    }
  }

  void InterleavePairs(const char* row, size_t r) {
    size_t k = 0;
    for (; k + 2 <= cols_; k += 2) {
      std::memcpy(tile_ + (k / 2 * kTileRows + r) * 4, row + 2 * k, 4);
    }
    if (k < cols_) std::memcpy(tile_ + (k / 2 * kTileRows + r) * 4, row + 2 * k, 2);
  }

  // Group g of the tile, and the row's quad i of it as one word.
  uint8_t* Group(size_t g) const { return tile_ + layout_.Group(g); }
  uint32_t Quad(size_t g, size_t i) const {
    uint32_t word;
    std::memcpy(&word, &quants_[g * layout_.cols + 4 * i], 4);
    return word;
  }
  static void SetWord(uint8_t* section, size_t i, size_t r, uint32_t word) {
    std::memcpy(section + (i * kTileRows + r) * 4, &word, 4);
  }
  static constexpr uint32_t Bytes(uint32_t byte) { return byte * 0x01010101u; }

  // In each byte, q + 128 is q with its highest bit flipped.
  void WriteBytes(size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      uint8_t* group = Group(g);
      for (size_t i = 0; i < layout_.cols / 4; ++i) SetWord(group, i, r, Quad(g, i) ^ Bytes(0x80));
    }
  }

  // Likewise q + 8 in four bits; `flip` is 8, or 0 for quants that are not negative.
  void WriteNibbles(uint32_t flip, size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      uint8_t* group = Group(g);
      for (size_t i = 0; i < layout_.cols / 8; ++i) {
        const uint32_t low = (Quad(g, 2 * i) ^ Bytes(flip)) & Bytes(0x0F);
        const uint32_t high = (Quad(g, 2 * i + 1) ^ Bytes(flip)) & Bytes(0x0F);
        SetWord(group, i, r, low | high << 4);
      }
    }
  }

  // Likewise q + 16 or q in five bits: the low four, then the high bit of quad j at bit j; `flip`
  // is 16 or 0.
  void WriteFives(uint32_t flip, size_t r) {
    WriteNibbles(0, r);
    for (size_t g = 0; g < groups_; ++g) {
      uint32_t tops = 0;
      for (size_t j = 0; j < 8; ++j) tops |= ((Quad(g, j) ^ Bytes(flip)) >> 4 & Bytes(0x01)) << j;
      SetWord(Group(g) + layout_.high, 0, r, tops);
    }
  }

  // Likewise q + 32 in six bits: the low four, then the high two of quad j at bit 2 j.
  void WriteSix(const BlockQ6_K* blocks, size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      uint8_t* group = Group(g);
      uint32_t tops = 0;
      uint32_t nibbles[2] = {};
      for (size_t j = 0; j < 4; ++j) {
        const uint32_t quad = (Quad(g, j) ^ Bytes(0x20)) & Bytes(0x3F);
        nibbles[j / 2] |= (quad & Bytes(0x0F)) << (4 * (j % 2));
        tops |= (quad >> 4 & Bytes(0x03)) << (2 * j);
      }
      for (size_t i = 0; i < 2; ++i) SetWord(group, i, r, nibbles[i]);
      SetWord(group + layout_.high, 0, r, tops);
      group[layout_.scales + r] = static_cast<uint8_t>(blocks[g / 16].scales[g % 16]);
    }
    WriteHeaders(blocks, r);
  }

  // Two bits: those of quad j of a group at bit 2 j.
  void WriteTwos(const BlockQ2_K* blocks, size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      uint32_t bits = 0;
      for (size_t j = 0; j < 4; ++j) bits |= Quad(g, j) << (2 * j);
      SetWord(Group(g), 0, r, bits);
      Group(g)[layout_.scales + r] = blocks[g / 16].scales[g % 16];
    }
    WriteHeadersWithMins(blocks, r);
  }

  // q + 4 or q in three bits: the low two of quad j at bit 2 (j % 4), the high one at bit j; `flip`
  // is 4 or 0.
  void WriteThrees(uint32_t flip, size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      uint32_t lows[2] = {}, tops = 0;
      for (size_t j = 0; j < 8; ++j) {
        const uint32_t quad = (Quad(g, j) ^ Bytes(flip)) & Bytes(0x07);
        lows[j / 4] |= (quad & Bytes(0x03)) << (2 * (j % 4));
        tops |= (quad >> 2 & Bytes(0x01)) << j;
      }
      for (size_t i = 0; i < 2; ++i) SetWord(Group(g), i, r, lows[i]);
      SetWord(Group(g) + layout_.high, 0, r, tops);
    }
  }

  void WriteScalesQ3(const BlockQ3_K* blocks, size_t r) {
    for (size_t k = 0; k < cols_ / 16; ++k) {
      Group(k / 2)[layout_.scales + k % 2 * kTileRows + r] =
          static_cast<uint8_t>(blocks[k / 16].Scale(k % 16));
    }
    WriteHeaders(blocks, r);
  }

  // A row whose quants are indices.
  void WriteTableRow(WeightType type, const void* row, size_t r) {
    const bool threes =
        format_ == PackedFormat::kTableIq2S || format_ == PackedFormat::kTableIq2Xxs;
    threes ? WriteThrees(0, r) : WriteNibbles(0, r);
    switch (type) {
      case WeightType::kIQ4_NL:
        return WriteF16Scales(static_cast<const BlockIQ4_NL*>(row), r);
      case WeightType::kMXFP4:
        return WriteScales(static_cast<const BlockMXFP4*>(row), 1, r,
                           [](const BlockMXFP4& block, size_t) { return block.e; });
      case WeightType::kIQ4_XS:
        return WriteScalesAndHeaders(static_cast<const BlockIQ4_XS*>(row), r);
      case WeightType::kIQ3_XXS:
        return WriteScalesAndHeaders(static_cast<const BlockIQ3_XXS*>(row), r);
      case WeightType::kIQ3_S:
        return WriteScalesAndHeaders(static_cast<const BlockIQ3_S*>(row), r);
      case WeightType::kIQ2_XS:
        return WriteNibbleScales(static_cast<const BlockIQ2_XS*>(row), r);
      case WeightType::kIQ2_S:
        return WriteNibbleScales(static_cast<const BlockIQ2_S*>(row), r);
      case WeightType::kIQ2_XXS:
        return WriteScalesInHeaders(static_cast<const BlockIQ2_XXS*>(row), r);
      default:
        assert(false);
    }
  }

  template <class Block>
  void WriteF16Scales(const Block* blocks, size_t r) {
    for (size_t g = 0; g < groups_; ++g) SetF16(Group(g) + layout_.scales, r, blocks[g].d);
  }

  template <class Block>
  void WriteF16ScalesAndOffsets(const Block* blocks, size_t r) {
    WriteF16Scales(blocks, r);
    for (size_t g = 0; g < groups_; ++g) SetF16(Group(g) + layout_.offsets, r, blocks[g].m);
  }

  template <class Block>
  void WriteScalesK(const Block* blocks, size_t r) {
    for (size_t g = 0; g < groups_; ++g) {
      Group(g)[layout_.scales + r] = blocks[g / 8].scales.Scale(g % 8);
      Group(g)[layout_.offsets + r] = blocks[g / 8].scales.Min(g % 8);
    }
    WriteHeadersWithMins(blocks, r);
  }

  // The byte scale(block, k) of each group of 32 columns, number k of `per_block` in its block.
  template <class Block, class Scale>
  void WriteScales(const Block* blocks, size_t per_block, size_t r, const Scale& scale) {
    for (size_t g = 0; g < groups_; ++g) {
      Group(g)[layout_.scales + r] =
          static_cast<uint8_t>(scale(blocks[g / per_block], g % per_block));
    }
  }

  template <class Block>
  void WriteScalesAndHeaders(const Block* blocks, size_t r) {
    WriteScales(blocks, 8, r, [](const Block& block, size_t k) { return block.Scale(k); });
    WriteHeaders(blocks, r);
  }

  template <class Block>
  void WriteNibbleScales(const Block* blocks, size_t r) {
    WriteScales(blocks, 8, r, [](const Block& block, size_t k) { return block.scales[k]; });
    WriteHeaders(blocks, r);
  }

  void WriteScalesInHeaders(const BlockIQ2_XXS* blocks, size_t r) {
    WriteHeaders(blocks, r);
    for (size_t g = 0; g < groups_; ++g) {
      uint8_t* pairs = Header(g / 8) + 2 * kTileRows;
      pairs[g % 8 / 2 * kTileRows + r] |=
          static_cast<uint8_t>(blocks[g / 8].FourBits(g % 8) << (4 * (g % 2)));
    }
  }

  template <class Block>
  void WriteHeaders(const Block* blocks, size_t r) {
    for (size_t b = 0; b < cols_ / kSuperBlock; ++b) SetF16(Header(b), r, blocks[b].d);
  }

  template <class Block>
  void WriteHeadersWithMins(const Block* blocks, size_t r) {
    WriteHeaders(blocks, r);
    for (size_t b = 0; b < cols_ / kSuperBlock; ++b) SetF16(Header(b), kTileRows + r, blocks[b].m);
  }

  // The header of super-block b.
  uint8_t* Header(size_t b) const { return tile_ + layout_.Header(b * layout_.per_header); }
  static void SetF16(uint8_t* values, size_t i, const F16Bytes& value) {
    std::memcpy(values + 2 * i, value.bytes, 2);
  }

  PackedFormat format_;
  size_t cols_;
  GroupLayout layout_;
  size_t groups_;
  uint8_t* tile_;
  std::vector<int8_t> quants_;  // of a row
  uint8_t index_of_[256] = {};  // of a value in the format's table
};

}  // namespace

PackedFormat PackedFormatOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return PackedFormat::kF32;
    case WeightType::kF16:
      return PackedFormat::kF16;
    case WeightType::kBF16:
      return PackedFormat::kBF16;
    case WeightType::kQ8_0:
      return PackedFormat::kBytes32;
    case WeightType::kQ4_0:
      return PackedFormat::kNibbles32;
    case WeightType::kQ5_0:
      return PackedFormat::kFives32;
    case WeightType::kQ5_1:
      return PackedFormat::kFivesOffset32;
    case WeightType::kQ4_K:
      return PackedFormat::kNibblesK;
    case WeightType::kQ5_K:
      return PackedFormat::kFivesK;
    case WeightType::kQ6_K:
      return PackedFormat::kSixK;
    case WeightType::kQ4_1:
      return PackedFormat::kNibblesOffset32;
    case WeightType::kIQ4_NL:
      return PackedFormat::kTableIq4Nl;
    case WeightType::kMXFP4:
      return PackedFormat::kTableMxfp4;
    case WeightType::kIQ4_XS:
      return PackedFormat::kTableIq4Xs;
    case WeightType::kIQ3_XXS:
      return PackedFormat::kTableIq3Xxs;
    case WeightType::kIQ3_S:
      return PackedFormat::kTableIq3S;
    case WeightType::kQ2_K:
      return PackedFormat::kTwosK;
    case WeightType::kQ3_K:
      return PackedFormat::kThreesK;
    case WeightType::kIQ2_XS:
    case WeightType::kIQ2_S:
      return PackedFormat::kTableIq2S;
    case WeightType::kIQ2_XXS:
      return PackedFormat::kTableIq2Xxs;
  }
  return PackedFormat::kF32;
}

size_t PackedMemory::AllocatedBytes(size_t bytes) {
  if (InLargePages(bytes)) return LargePageBytes(bytes);
  return (bytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

PackedMemory::PackedMemory(size_t bytes) {
  void* const memory = InLargePages(bytes)
                           ? AllocateLargePages(bytes)
                           : std::aligned_alloc(kTileAlignment, AllocatedBytes(bytes));
  if (memory == nullptr) return;
  memory_ = std::shared_ptr<uint8_t>(static_cast<uint8_t*>(memory), std::free);
  left_ = bytes;
}

std::shared_ptr<uint8_t> PackedMemory::Allocate(size_t bytes) {
  assert(bytes % kTileAlignment == 0);
  if (bytes > left_ || memory_ == nullptr) return nullptr;
  left_ -= bytes;
  std::shared_ptr<uint8_t> result = memory_;
  memory_ = std::shared_ptr<uint8_t>(result, result.get() + bytes);
  return result;
}

PackedMatrix::PackedMatrix(WeightType type, size_t rows, size_t cols)
    : rows_(rows),
      cols_(cols),
      format_(PackedFormatOf(type)),
      tile_bytes_(GetGroupLayout(format_).TileBytes(cols)) {}

PackedMatrix PackedMatrix::View(const uint8_t* data, WeightType type, size_t rows, size_t cols) {
  assert(reinterpret_cast<uintptr_t>(data) % kTileAlignment == 0);
  PackedMatrix view(type, rows, cols);
  view.data_ = std::shared_ptr<const uint8_t>(std::shared_ptr<void>(), data);
  return view;
}

PackedMatrix PackedMatrix::ViewOf(const uint8_t* data, WeightType type, size_t whole, size_t cols,
                                  size_t first, size_t count) {
  assert(first % kTileRows == 0 && first + count <= whole);
  const size_t tile_bytes = PackedMatrix(type, whole, cols).tile_bytes_;
  PackedMatrix view = View(data + first / kTileRows * tile_bytes, type, count, cols);
  view.SetPart(first, whole);
  return view;
}

PackedMatrix PackedMatrix::ShapeOf(WeightType type, size_t rows, size_t cols) {
  return PackedMatrix(type, rows, cols);
}

size_t PackedMatrix::BytesOf(WeightType type, size_t rows, size_t cols) {
  return PackedMatrix(type, rows, cols).bytes();
}

PackedMatrix PackedMatrix::Pack(const WeightMatrix& w, Team& team) {
  PackedMemory memory(BytesOf(w.type, w.rows, w.cols));
  return Pack(w, team, memory);
}

PackedMatrix PackedMatrix::Pack(const WeightMatrix& w, Team& team, PackedMemory& memory) {
  PackedMatrix packed(w.type, w.rows, w.cols);
  const std::shared_ptr<uint8_t> allocated = memory.Allocate(packed.bytes());
  if (allocated == nullptr) return PackedMatrix();
  packed.data_ = allocated;
  uint8_t* const data = allocated.get();
  const auto work = [&](const Share& share) {
    const auto [begin, end, thread] = share;
    std::memset(data + begin * packed.tile_bytes_, 0, (end - begin) * packed.tile_bytes_);
    for (size_t i = begin; i < end; ++i) {
      TileWriter writer(packed.format_, w.cols, data + i * packed.tile_bytes_);
      const size_t rows = std::min(kTileRows, w.rows - i * kTileRows);
      for (size_t r = 0; r < rows; ++r) writer.WriteRow(w, i * kTileRows + r, r);
    }
  };
  constexpr size_t kChunk = 4;
  team.Run(packed.tiles(), kChunk, work);
  return packed;
}

}  // namespace inlay

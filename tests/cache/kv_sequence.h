// One sequence of an attention layer's rows, and what must be found in them.
#ifndef INLAY_TESTS_CACHE_KV_SEQUENCE_H_
#define INLAY_TESTS_CACHE_KV_SEQUENCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/kv_blocks.h"
#include "cache/serialize.h"

namespace inlay {

// How one layer is stored. A window of 0 is the growing form, any other is a ring.
struct KvForm {
  size_t window = 0;
  size_t max_append = 0;
  size_t rewind = 0;
  KvType type = KvType::kF32;

  constexpr KvShape Shape() const { return {.kv_heads = 2, .head_dim = 3, .type = type}; }
  constexpr size_t BlockBytes() const { return Shape().BlockBytes(); }
  constexpr size_t RowBytes() const { return BlockBytes() / kKvBlockRows; }
  constexpr size_t RingBlocks() const {
    return window == 0 ? 0 : KvBlocks::RingBlocks(window, max_append, rewind);
  }
  // The first row that a token at `position` sees.
  constexpr size_t FirstSeen(size_t position) const {
    return window == 0 ? 0 : position - std::min(position, window - 1);
  }
};

// Calls f(memory, bytes) for the pieces of a row as KvShape describes them: the elements of a key
// are a block's length apart, those of a value are neighbours, and scales follow both.
template <class F>
void ForEachPiece(const KvView& view, size_t position, F f) {
  const size_t element = KvTypeBytes(view.shape.type);
  const size_t scale = KvScaleBytes(view.shape.type);
  const size_t dim = view.shape.head_dim;
  const size_t keys_bytes = view.shape.BlockBytes() / (2 * view.shape.kv_heads);
  const size_t row = position % kKvBlockRows;
  auto* keys = static_cast<uint8_t*>(view.Block(position / kKvBlockRows));
  for (size_t head = 0; head < view.shape.kv_heads; ++head, keys += 2 * keys_bytes) {
    for (size_t d = 0; d < dim; ++d) f(keys + (d * kKvBlockRows + row) * element, element);
    f(keys + keys_bytes + row * dim * element, dim * element);
    for (uint8_t* rows : {keys, keys + keys_bytes})
      f(rows + kKvBlockRows * dim * element + row * scale, scale);
  }
}

// Byte i of a row that was written as `value`. Each value gives other bytes, and so does each i.
inline uint8_t RowByte(uint32_t value, uint32_t i) {
  return static_cast<uint8_t>((value * 2654435761u + i * 40503u) >> 16);
}

// Rows whose row of position p was written as `values[p]`.
struct KvSequence {
  explicit KvSequence(const KvForm& form)
      : form(form), blocks(form.Shape(), form.window, form.RingBlocks()) {}

  // Prepares and writes `count` rows. `all` is what the sequence holds if they are committed.
  absl::Status Write(BlockPool& pool, size_t count, uint32_t seed, std::vector<uint32_t>& all) {
    all = values;
    const absl::Status status = blocks.Prepare(pool, values.size(), count);
    if (!status.ok()) return status;
    for (size_t p = values.size(); p < values.size() + count; ++p) {
      all.push_back(seed + static_cast<uint32_t>(p));
      uint32_t i = 0;
      ForEachPiece(blocks.view(), p, [&](uint8_t* memory, size_t bytes) {
        for (size_t b = 0; b < bytes; ++b) memory[b] = RowByte(all[p], i++);
      });
    }
    return status;
  }

  // Writes rows and drops them again, or drops what an error has left of them.
  absl::Status WriteAndAbort(BlockPool& pool, size_t count) {
    std::vector<uint32_t> dropped;
    absl::Status status = Write(pool, count, uint32_t{1} << 31, dropped);
    blocks.Abort(values.size());
    return status;
  }

  absl::Status Append(BlockPool& pool, size_t count, uint32_t seed) {
    std::vector<uint32_t> all;
    if (absl::Status status = Write(pool, count, seed, all); !status.ok()) {
      blocks.Abort(values.size());
      return status;
    }
    values = all;
    blocks.Commit(values.size());
    greatest = std::max(greatest, values.size());
    return absl::OkStatus();
  }

  // Appends as many at a time as the form allows, until there are `length` rows.
  void Fill(BlockPool& pool, size_t length, uint32_t seed = 0) {
    while (values.size() < length) {
      const size_t count = std::min(form.max_append, length - values.size());
      ASSERT_TRUE(Append(pool, count, seed).ok());
    }
  }

  void Rewind(size_t length) {
    blocks.Truncate(length);
    values.resize(length);
    if (length == 0) floor = greatest = 0;
  }

  // The lowest position that has to be rewound to.
  size_t HighestFloor() const {
    return std::max(floor, greatest - std::min(greatest, form.rewind));
  }

  void Trim(BlockPool& pool, size_t rewind) {
    blocks.Trim(pool, values.size(), rewind);
    floor = std::max(HighestFloor(), values.size() - std::min(values.size(), rewind));
    greatest = values.size();
  }

  // The floor is as low as is promised, and every row that a token from it on sees is there.
  void Check() const {
    const size_t lowest = blocks.RewindFloor();
    ASSERT_LE(lowest, HighestFloor());
    ASSERT_LE(lowest, values.size());
    for (size_t p = form.FirstSeen(lowest); p < values.size(); ++p) {
      uint32_t i = 0;
      ForEachPiece(blocks.view(), p, [&](const uint8_t* memory, size_t bytes) {
        for (size_t b = 0; b < bytes; ++b, ++i) ASSERT_EQ(memory[b], RowByte(values[p], i)) << p;
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  std::vector<uint8_t> Save(size_t rewind) const {
    std::vector<uint8_t> bytes;
    MemorySink sink(bytes);
    SectionWriter writer(sink);
    EXPECT_TRUE(blocks.Save(writer, values.size(), rewind).ok());
    return bytes;
  }

  // Reads rows of this length as the section "layer 7". Does not touch `values`.
  absl::Status Load(ByteSource&& source, BlockPool& pool, size_t length) {
    SectionReader reader(source);
    reader.BeginSection("layer 7");
    return blocks.Load(reader, pool, length, form.rewind);
  }

  KvForm form;
  KvBlocks blocks;
  std::vector<uint32_t> values;
  size_t greatest = 0;  // length since Trim
  size_t floor = 0;     // no lower position has to be rewound to since Trim
};

}  // namespace inlay

#endif  // INLAY_TESTS_CACHE_KV_SEQUENCE_H_

// Attention over stored rows, and storing them.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "ops/attention/attention.h"

namespace inlay {
namespace {

constexpr size_t kKvHeads = 4, kHeads = 16, kHeadDim = 128;
constexpr KvShape kShape = {kKvHeads, kHeadDim, KvType::kBF16};

// Stored rows of `positions` tokens, of zeros.
class Stored {
 public:
  explicit Stored(size_t positions)
      : memory_((positions + kKvBlockRows - 1) / kKvBlockRows * kShape.BlockBytes()) {
    for (size_t at = 0; at < memory_.size(); at += kShape.BlockBytes())
      blocks_.push_back(&memory_[at]);
  }
  KvView view() const { return {kShape, blocks_.data(), blocks_.size()}; }

 private:
  std::vector<uint8_t> memory_;
  std::vector<void*> blocks_;
};

// Bytes of keys and values of a token.
constexpr double kRowBytes = 2.0 * kKvHeads * kHeadDim * 2;

void AttentionRow(size_t before, size_t tokens, Row& row) {
  const Stored stored(before + tokens);
  const std::vector<float> q = Values(tokens * kHeads * kHeadDim);
  std::vector<float> y(q.size());
  const AttentionParams params = {kHeads, 1 / std::sqrt(static_cast<float>(kHeadDim)), 0, 0};
  const AttentionSegment segment = {.q = ConstFloatRows(q.data(), tokens, kHeads * kHeadDim),
                                    .first_position = before,
                                    .kv = stored.view(),
                                    .y = FloatRows(y.data(), tokens, kHeads * kHeadDim)};
  std::vector<float> scratch(
      AttentionScratchFloats(kHeads, kKvHeads, kHeadDim, row.team().threads()));
  const double n = static_cast<double>(tokens), d = static_cast<double>(before);
  row.Run({.bytes = (d + n) * kRowBytes, .ops = 4.0 * kHeads * kHeadDim * n * (d + (n + 1) / 2)},
          [&] {
            Attention(params, {&segment, 1}, scratch.data(), row.team());
          });
}

void StoreRow(size_t tokens, Row& row) {
  const Stored stored(tokens);
  const std::vector<float> rows = Values(tokens * kKvHeads * kHeadDim);
  const ConstFloatRows view(rows.data(), tokens, kKvHeads * kHeadDim);
  std::vector<float> scratch(kHeadDim);
  row.Run({.bytes = static_cast<double>(tokens) * (kRowBytes + 8.0 * kKvHeads * kHeadDim)},
          [&] { StoreKv(view, view, 0, stored.view(), scratch.data()); });
}

}  // namespace

void AddAttentionRows() {
  for (size_t depth : {0, 4096, 16384, 32768}) {
    AddRows("attention/bf16/heads:16:4x128/decode/depth:" + std::to_string(depth),
            [=](Row& row) { AttentionRow(depth, 1, row); });
  }
  for (size_t depth : {0, 4096}) {
    AddRows("attention/bf16/heads:16:4x128/prefill:128/depth:" + std::to_string(depth),
            [=](Row& row) { AttentionRow(depth, 128, row); });
  }
  for (size_t tokens : {1, 128}) {
    AddRows("store_kv/bf16/heads:4x128/tokens:" + std::to_string(tokens),
            [=](Row& row) { StoreRow(tokens, row); });
  }
}

}  // namespace inlay

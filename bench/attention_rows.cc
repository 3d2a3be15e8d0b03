// Attention over stored rows, and storing them.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/rows.h"
#include "hwy/aligned_allocator.h"
#include "ops/attention/attention.h"
#include "ops/cpu/cpu_target.h"

namespace inlay {
namespace {

constexpr size_t kKvHeads = 4, kHeads = 16, kHeadDim = 128;

KvShape ShapeOf(KvType type) { return {kKvHeads, kHeadDim, type}; }

// Stored rows of `positions` tokens, of zeros.
class Stored {
 public:
  Stored(size_t positions, KvType type)
      : shape_(ShapeOf(type)),
        memory_((positions + kKvBlockRows - 1) / kKvBlockRows * shape_.BlockBytes()) {
    for (size_t at = 0; at < memory_.size(); at += shape_.BlockBytes())
      blocks_.push_back(&memory_[at]);
  }
  KvView view() const { return {shape_, blocks_.data(), blocks_.size()}; }

 private:
  KvShape shape_;
  hwy::AlignedVector<uint8_t> memory_;  // as a cache's blocks
  std::vector<void*> blocks_;
};

// Bytes of keys and values of a token.
double RowBytes(KvType type) {
  return static_cast<double>(ShapeOf(type).BlockBytes()) / kKvBlockRows;
}

// The products that attention makes of rows of a type on the target in use
// (ops/attention/attention.h): AMX multiplies floats as parts in bfloat16.
Dot DotOfRows(KvType type) {
  const bool pairs = type == KvType::kBF16 && ChosenTarget() == "AVX3_ZEN4";
  return pairs || ChosenExtension() == Extension::kAmx ? Dot::kBF16 : Dot::kF32;
}

void AttentionRow(KvType type, size_t before, size_t tokens, Row& row) {
  const Stored stored(before + tokens, type);
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
  row.Run({.bytes = (d + n) * RowBytes(type),
           .ops = 4.0 * kHeads * kHeadDim * n * (d + (n + 1) / 2),
           .dot = DotOfRows(type)},
          [&] {
            Attention(params, {&segment, 1}, scratch.data(), row.team());
          });
}

void StoreRow(KvType type, size_t tokens, Row& row) {
  const Stored stored(tokens, type);
  const std::vector<float> rows = Values(tokens * kKvHeads * kHeadDim);
  const ConstFloatRows view(rows.data(), tokens, kKvHeads * kHeadDim);
  std::vector<float> scratch(kHeadDim);
  row.Run({.bytes = static_cast<double>(tokens) * (RowBytes(type) + 8.0 * kKvHeads * kHeadDim)},
          [&] { StoreKv(view, view, 0, stored.view(), scratch.data()); });
}

}  // namespace

void AddAttentionRows() {
  constexpr std::pair<KvType, const char*> kTypes[] = {
      {KvType::kBF16, "bf16"}, {KvType::kF32, "f32"}, {KvType::kF16, "f16"}, {KvType::kQ8, "q8"}};
  for (const auto& [type, name] : kTypes) {
    const std::string prefix = "attention/" + std::string(name) + "/heads:16:4x128/";
    for (size_t depth : {0, 4096, 16384, 32768}) {
      AddRows(prefix + "decode/depth:" + std::to_string(depth),
              [type = type, depth](Row& row) { AttentionRow(type, depth, 1, row); });
    }
    for (size_t depth : {0, 4096}) {
      AddRows(prefix + "prefill:128/depth:" + std::to_string(depth),
              [type = type, depth](Row& row) { AttentionRow(type, depth, 128, row); });
    }
    for (size_t tokens : {1, 128}) {
      AddRows("store_kv/" + std::string(name) + "/heads:4x128/tokens:" + std::to_string(tokens),
              [type = type, tokens](Row& row) { StoreRow(type, tokens, row); });
    }
  }
}

}  // namespace inlay

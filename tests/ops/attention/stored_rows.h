// What the tests of attention share: stored rows, and a scalar double reference.
#ifndef INLAY_TESTS_OPS_ATTENTION_STORED_ROWS_H_
#define INLAY_TESTS_OPS_ATTENTION_STORED_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/attention/attention.h"
#include "tests/ops/op_test.h"

namespace inlay {

// Block storage whose every unwritten element is NaN.
class Store {
 public:
  Store(KvShape shape, size_t num_blocks) : memory_(num_blocks), blocks_(num_blocks) {
    for (size_t b = 0; b < num_blocks; ++b) {
      memory_[b].assign(shape.BlockBytes(), 0xFF);
      blocks_[b] = memory_[b].data();
    }
    view = {shape, blocks_.data(), num_blocks};
  }

  double Value(size_t position, size_t head, bool of_value, size_t i) const {
    const uint8_t* p = Address(position, head, of_value, i);
    if (view.shape.type == KvType::kQ8) {
      return static_cast<int8_t>(*p) * static_cast<double>(Scale(position, head, of_value));
    }
    float wide;
    uint16_t bits;
    std::memcpy(&wide, p, view.shape.type == KvType::kF32 ? 4 : 0);
    std::memcpy(&bits, p, 2);
    return view.shape.type == KvType::kF32   ? wide
           : view.shape.type == KvType::kF16 ? HalfValue(bits)
                                             : Bf16Value(bits);
  }

  // Makes the rows of a position NaN: keys (false), values (true) or both.
  void Poison(size_t position, std::initializer_list<bool> which = {false, true}) {
    for (size_t head = 0; head < view.shape.kv_heads; ++head) {
      for (bool of_value : which) {
        for (size_t i = 0; i < view.shape.head_dim; ++i) {
          std::memset(Address(position, head, of_value, i), 0xFF, KvTypeBytes(view.shape.type));
        }
        std::memset(ScaleAddress(position, head, of_value), 0xFF, KvScaleBytes(view.shape.type));
      }
    }
  }

  float Scale(size_t position, size_t head, bool of_value) const {
    float scale;
    std::memcpy(&scale, ScaleAddress(position, head, of_value), sizeof(scale));
    return scale;
  }

  KvView view;

 private:
  uint8_t* Address(size_t position, size_t head, bool of_value, size_t i) const {
    const size_t dim = view.shape.head_dim, row = position % kKvBlockRows;
    const size_t within = of_value ? row * dim + i : i * kKvBlockRows + row;
    return KeysOrValues(position, head, of_value) + within * KvTypeBytes(view.shape.type);
  }
  uint8_t* ScaleAddress(size_t position, size_t head, bool of_value) const {
    const KvType type = view.shape.type;
    return KeysOrValues(position, head, of_value) +
           kKvBlockRows * view.shape.head_dim * KvTypeBytes(type) +
           position % kKvBlockRows * KvScaleBytes(type);
  }
  // Keys or values of a head in a position's block.
  uint8_t* KeysOrValues(size_t position, size_t head, bool of_value) const {
    const KvShape& shape = view.shape;
    const size_t bytes =
        kKvBlockRows * (shape.head_dim * KvTypeBytes(shape.type) + KvScaleBytes(shape.type));
    return static_cast<uint8_t*>(view.Block(position / kKvBlockRows)) +
           (head * 2 + of_value) * bytes;
  }

  mutable std::vector<std::vector<uint8_t>> memory_;
  std::vector<void*> blocks_;
};

inline std::vector<double> Reference(const AttentionParams& params, const Array& q, size_t first,
                                     const Store& store) {
  const KvShape& shape = store.view.shape;
  const size_t dim = shape.head_dim;
  std::vector<double> y(q.size());
  for (size_t t = 0; t < q.view().rows; ++t) {
    for (size_t h = 0; h < params.heads; ++h) {
      const size_t kv_head = h / (params.heads / shape.kv_heads);
      const size_t own = first + t + 1;
      const size_t begin = params.window != 0 && params.window < own ? own - params.window : 0;
      const size_t end = own + std::min(params.ahead, q.view().rows - 1 - t);
      std::vector<double> scores;
      for (size_t p = begin; p < end; ++p) {
        double dot = 0;
        for (size_t i = 0; i < dim; ++i)
          dot += q.At(t, h * dim + i) * store.Value(p, kv_head, false, i);
        dot *= params.scale;
        if (params.soft_cap != 0) dot = params.soft_cap * std::tanh(dot / params.soft_cap);
        scores.push_back(dot);
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (size_t p = begin; p < end; ++p) {
        for (size_t i = 0; i < dim; ++i) {
          y[(t * params.heads + h) * dim + i] +=
              scores[p - begin] / sum * store.Value(p, kv_head, true, i);
        }
      }
    }
  }
  return y;
}

inline void StoreRows(const ConstFloatRows& keys, const ConstFloatRows& values, size_t first,
                      const KvView& kv) {
  std::vector<float> scratch(kv.shape.head_dim);
  StoreKv(keys, values, first, kv, scratch.data());
}

// Keys and values of positions [0, count).
struct Sequence {
  Sequence(KvShape shape, size_t count)
      : keys(RandomArray(count, shape.kv_heads * shape.head_dim, 11)),
        values(RandomArray(count, shape.kv_heads * shape.head_dim, 12)) {}

  void StoreInto(const Store& store, size_t first, size_t count) const {
    StoreRows(keys.view().Slice(first, count), values.view().Slice(first, count), first,
              store.view);
  }

  Array keys, values;
};

inline size_t BlocksFor(size_t positions) { return (positions + kKvBlockRows - 1) / kKvBlockRows; }

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_ATTENTION_STORED_ROWS_H_

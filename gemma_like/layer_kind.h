// What the engine needs of a kind of mixer or MLP.
#ifndef INLAY_GEMMA_LIKE_LAYER_KIND_H_
#define INLAY_GEMMA_LIKE_LAYER_KIND_H_

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "absl/types/span.h"
#include "configs/layer.h"
#include "gemma_like/arena.h"
#include "gemma_like/layer_binder.h"
#include "gemma_like/token_work.h"
#include "ops/matmul.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// One sequence's share of the rows of a batch. Its outputs are its last out_rows rows: fewer than
// `rows` only in the last layer that keeps something of the past, whose other outputs nobody reads.
struct SegmentRows {
  size_t position = 0;  // in the sequence, of its first row
  size_t row = 0;       // its first row in the batch
  size_t rows = 0;
  size_t out_row = 0;  // the first row of its outputs among all outputs
  size_t out_rows = 0;

  // The position of the first output.
  size_t OutPosition() const { return position + rows - out_rows; }
};

// The same with what the sequence keeps of its past in the layer at hand.
template <class Storage>
struct Segment : SegmentRows {
  Storage* storage = nullptr;
};

// What a mixer works on.
template <class Storage>
struct Batch {
  absl::Span<const Segment<Storage>> segments;
  // [outputs], ascending: the row of the batch that each output belongs to; nullptr when every row
  // has one.
  const int32_t* out_rows = nullptr;
};

// What all layers of a forward pass share and none owns.
struct Pass {
  Arena& arena;
  MatMulInput& inner;  // for products inside a part; what it holds ends with the part's Forward
  ThreadPool& pool;
  float norm_epsilon = 0;
};

// The matrices that a part multiplies its input with, so that it is rounded as they need it.
class InputMatrices {
 public:
  void Add(std::initializer_list<const PackedMatrix*> matrices) {
    for (const PackedMatrix* matrix : matrices) {
      assert(count_ < matrices_.size());
      matrices_[count_++] = matrix;
    }
  }
  std::span<const PackedMatrix* const> list() const { return {matrices_.data(), count_}; }

 private:
  std::array<const PackedMatrix*, 32> matrices_{};
  size_t count_ = 0;
};

// The engine's half of a kind P of mixer or MLP. Each kind's header in gemma_like/layers
// specialises it; nothing else in the engine names a kind.
//
// Every part has
//   Weights
//       typed views of its tensors;
//   Bind(LayerBinder& b, Weights& w)
//       asks for them, by name and shape;
//   AddInputs(w, InputMatrices& matrices)
//   ScratchFloats(rows, model_dim)
//       constexpr: floats of the arena that Forward needs at most;
//   InnerCols()
//       constexpr: floats for each row of the batch that Forward gives Pass::inner at most;
//   Work(w)
//       the products of one token;
//   Describe()
//       for people: "gated mlp 640".
//
// An MLP has
//   Forward(w, x, y, pass)
//       y [rows, model_dim] = mlp(x), x being [rows, model_dim].
//
// A mixer, whose storage is MixerStorage<P>::Type, has
//   Shared
//       what its layers can share in a pass, as it depends on positions alone;
//   SharedFloats(rows)
//       constexpr: floats of the arena that MakeShared takes;
//   MakeShared(segments, rows, pass)
//   Forward(w, shared, batch, x, y, pass)
//       y [outputs, model_dim] = mixer(x), x being [rows, model_dim]; keeps what later tokens need
//       of all rows.
template <class P>
struct LayerKind;

// Those of a mixer whose layers share nothing.
struct SharesNothing {
  struct Shared {};
  static constexpr size_t SharedFloats(size_t) { return 0; }
  static Shared MakeShared(absl::Span<const SegmentRows>, size_t, Pass&) { return {}; }
};

template <class P>
concept EnginePart = requires(const typename LayerKind<P>::Weights& w, InputMatrices& matrices) {
  LayerKind<P>::AddInputs(w, matrices);
  { LayerKind<P>::ScratchFloats(size_t{1}, size_t{1}) } -> std::same_as<size_t>;
  { LayerKind<P>::InnerCols() } -> std::same_as<size_t>;
  { LayerKind<P>::Work(w) } -> std::same_as<TokenWork>;
  { LayerKind<P>::Describe() } -> std::same_as<std::string>;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYER_KIND_H_

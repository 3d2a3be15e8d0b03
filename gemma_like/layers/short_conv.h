// The gated short convolution of LFM2.
#ifndef INLAY_GEMMA_LIKE_LAYERS_SHORT_CONV_H_
#define INLAY_GEMMA_LIKE_LAYERS_SHORT_CONV_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/layers/short_conv.h"
#include "configs/layers/short_conv.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/causal_conv.h"
#include "ops/row_ops.h"

namespace inlay {

template <ShortConvShape kShape>
struct LayerKind<ShortConv<kShape>> : SharesNothing {
  static constexpr size_t kDim = kShape.channels;
  using Conv = SegmentConv<kDim, kShape.width>;

  struct Weights {
    PackedMatrix in;          // [3 * kDim, model_dim]: B, C, X
    std::vector<float> conv;  // [width, kDim]
    PackedMatrix out;         // [model_dim, kDim]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.conv = b.Filters("shortconv.conv.weight", kDim, kShape.width);
    w.in = b.Matrix("shortconv.in_proj.weight", 3 * kDim, b.model_dim());
    w.out = b.Matrix("shortconv.out_proj.weight", b.model_dim(), kDim, TensorUse::kBranchEnd);
  }

  static void AddInputs(const Weights& w, InputMatrices& matrices) { matrices.Add({&w.in}); }

  static void Forward(const Weights& w, const Shared&, const Batch<InputWindow>& batch,
                      MatMulInput& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.floats().rows;
    FloatRows in = pass.arena.Rows(rows, 3 * kDim);
    FloatRows mixed = pass.arena.Rows(y.rows, kDim);
    MatMul(w.in, x, in, pass.pool);
    const FloatRows gated = in.Columns(0, kDim);  // B * X, in B's place
    ForRows(pass.pool, rows, [&](size_t begin, size_t end) {
      const FloatRows b = gated.Slice(begin, end - begin);
      Multiply(b, in.Slice(begin, end - begin).Columns(2 * kDim, kDim), b);
    });
    const PackedMatrix* next = &w.out;
    pass.inner.Announce(mixed, {&next, 1});
    for (const Segment<InputWindow>& segment : batch.segments) {
      Mix(w, segment, in.Slice(segment.row, segment.rows), mixed, pass);
    }
    if (y.rows > 0) MatMul(w.out, pass.inner, y, pass.pool);
  }

  static constexpr size_t ScratchFloats(size_t rows, size_t) {
    return Arena::Floats(rows, 3 * kDim) + Arena::Floats(rows, kDim);
  }
  static constexpr size_t InnerCols() { return kDim; }

  static TokenWork Work(const Weights& w) {
    TokenWork work = WorkOf(w.in);
    work += WorkOf(w.out);
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("short convolution: ", kDim, " channels, width ", kShape.width);
  }

 private:
  // The outputs of one segment, into the rows of `mixed` that are its own. `in` holds B * X, C and
  // X of its rows.
  static void Mix(const Weights& w, const Segment<InputWindow>& segment, ConstFloatRows in,
                  FloatRows mixed, Pass& pass) {
    const Conv conv{segment, *segment.storage};
    const ConstFloatRows gated = in.Columns(0, kDim);
    const size_t first = segment.rows - segment.out_rows;  // the row of the first output
    ForRows(pass.pool, segment.out_rows, [&](size_t begin, size_t end) {
      const FloatRows out = mixed.Slice(segment.out_row + begin, end - begin);
      conv.Forward({.weight = w.conv.data(), .width = kShape.width}, gated, first + begin,
                   first + end, out);
      Multiply(out, in.Slice(first + begin, end - begin).Columns(kDim, kDim), out);
      pass.inner.RoundRows(segment.out_row + begin, segment.out_row + end);
    });
    conv.Keep(gated, 0, segment.rows);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_SHORT_CONV_H_

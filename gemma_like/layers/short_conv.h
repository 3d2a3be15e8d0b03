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
  using Stored = MixerStorage<ShortConv<kShape>>;
  using Conv = SegmentConv<kDim, kShape.width>;

  // Of a rank that has some of the channels.
  struct Weights {
    std::vector<PackedMatrix> in;  // [3 * channels, model_dim] together: B, C, X
    std::vector<float> conv;       // [width, channels]
    PackedMatrix out;              // [model_dim, kDim]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    const PartRange own = Stored::PartOf(b.share());
    std::vector<PartRange> rows;
    for (size_t i = 0; i < 3 && own.count < kDim; ++i) {
      rows.push_back({i * kDim + own.first, own.count});
    }
    w.conv = ColumnsOf(b.Filters("shortconv.conv.weight", kDim, kShape.width), kDim, {own});
    w.in = b.RowRanges("shortconv.in_proj.weight", 3 * kDim, b.model_dim(), rows);
    w.out = b.Matrix("shortconv.out_proj.weight", b.model_dim(), kDim, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.in.front()}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add(MatricesOf({&w.in}));
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<InputWindow>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    const PartRange own = Stored::PartOf(pass.share());
    const size_t dim = own.count;
    FloatRows in = pass.arena.Rows(rows, 3 * dim);
    FloatRows mixed = pass.arena.Rows(y.rows, kDim);
    MatMulTasks products;
    AddProducts(w.in, in, products);
    dim == kDim ? pass.Multiply(products, x) : pass.MultiplyOwn(products, x);
    const FloatRows gated = in.Columns(0, dim);  // B * X, in B's place
    ForRows(pass.team, rows, dim, [&](size_t begin, size_t end) {
      const FloatRows b = gated.Slice(begin, end - begin);
      Multiply(b, in.Slice(begin, end - begin).Columns(2 * dim, dim), b);
    });
    const Operand convolved = pass.MakeOperandOfParts(
        mixed, RankSplit(), OperandForms::For({&w.out}), [&](size_t first, size_t last) {
          ForOutputs(batch.segments, first, last,
                     [&](const Segment<InputWindow>& segment, size_t begin, size_t end) {
                       Mix(w, segment, in.Slice(segment.row, segment.rows), begin, end,
                           mixed.Columns(own.first, dim));
                     });
        });
    for (const Segment<InputWindow>& segment : batch.segments) {
      const Conv conv{segment, *segment.storage};
      conv.Keep(gated.Slice(segment.row, segment.rows), 0, segment.rows);
    }
    if (y.rows > 0) pass.Multiply(w.out, convolved, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, 3 * kDim) + Arena::Floats(size.rows, kDim) +
           Pass::OperandFloats(size.rows, kDim);
  }

  static TokenWork Work(const Weights& w, RankShare share) {
    const bool is_part = Stored::PartOf(share).count < kDim;
    TokenWork work = WorkOfRanges({&w.in}, is_part);
    if (is_part) work += WorkOfOperand(w.out);
    work += WorkOfGathered({&w.out});
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("short convolution: ", kDim, " channels, width ", kShape.width);
  }

 private:
  // The outputs [begin, end) of one segment, into the segment's rows of `mixed` [outputs,
  // channels]. `in` holds B * X, C and X of its rows.
  static void Mix(const Weights& w, const Segment<InputWindow>& segment, ConstFloatRows in,
                  size_t begin, size_t end, FloatRows mixed) {
    const Conv conv{segment, *segment.storage};
    const size_t first = segment.rows - segment.out_rows;  // the row of the first output
    const FloatRows out = mixed.Slice(segment.out_row + begin, end - begin);
    conv.Forward({.weight = w.conv.data(), .width = kShape.width}, in.Columns(0, mixed.cols),
                 first + begin, first + end, out);
    Multiply(out, in.Slice(first + begin, end - begin).Columns(mixed.cols, mixed.cols), out);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_SHORT_CONV_H_

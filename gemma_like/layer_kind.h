// What the engine needs of a kind of mixer, MLP or input branch.
#ifndef INLAY_GEMMA_LIKE_LAYER_KIND_H_
#define INLAY_GEMMA_LIKE_LAYER_KIND_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/rank_share.h"
#include "cache/storage.h"
#include "configs/layer.h"
#include "gemma_like/model/arena.h"
#include "gemma_like/model/layer_binder.h"
#include "gemma_like/model/schedule.h"
#include "gemma_like/ranks/rank_pass.h"
#include "gemma_like/token_work.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// One sequence's share of the rows of a batch. Its outputs are its last out_rows rows: fewer than
// `rows` only in the last layer that stores state, whose other outputs are not needed.
struct SegmentRows {
  size_t position = 0;  // in the sequence, of its first row
  size_t row = 0;       // its first row in the batch
  size_t rows = 0;
  size_t out_row = 0;  // the first row of its outputs among all outputs
  size_t out_rows = 0;

  // The position of the first output.
  size_t OutPosition() const { return position + rows - out_rows; }
};

// The same with the state that the sequence stores in the current layer.
template <class Storage>
struct Segment : SegmentRows {
  Storage* storage = nullptr;
};

// What products with these matrices cost a rank for each token.
inline TokenWork WorkOf(std::initializer_list<const PackedMatrix*> matrices) {
  TokenWork work;
  for (const PackedMatrix* w : matrices) {
    work.bytes += static_cast<double>(w->bytes());
    work.ops += 2.0 * static_cast<double>(w->rows()) * static_cast<double>(w->cols());
  }
  return work;
}

// The same with the gathering of their results, as Pass::Multiply does it for all of them at once.
inline TokenWork WorkOfGathered(std::initializer_list<const PackedMatrix*> matrices) {
  TokenWork work = WorkOf(matrices);
  for (const PackedMatrix* w : matrices) {
    if (!w->is_part()) continue;
    work.collectives = 1;
    work.gathered += static_cast<double>(w->whole_rows() * sizeof(float));
  }
  return work;
}

// What ranks gather of each row of an operand of products with w, of whose columns each has some.
inline TokenWork WorkOfOperand(const PackedMatrix& w) {
  const OperandForms forms = OperandForms::For({&w});
  const size_t bytes = forms.quantized ? w.cols() / kQuantBlock * kGatheredBlockBytes
                                       : w.cols() * (forms.bf16 ? sizeof(Bf16) : sizeof(float));
  return {.collectives = 1, .gathered = static_cast<double>(bytes)};
}

// Of an MLP: the products with its input, of which each rank keeps its part, and with `down`.
inline TokenWork WorkOfMlp(std::initializer_list<const PackedMatrix*> inputs,
                           const PackedMatrix& down) {
  TokenWork work = WorkOf(inputs);
  if ((*inputs.begin())->is_part()) work += WorkOfOperand(down);
  work += WorkOfGathered({&down});
  return work;
}

// The products of one phase.
using MatMulTasks = absl::InlinedVector<MatMulTask, 16>;

// Adds the products with matrices that are ranges of rows of one, whose results follow each other
// in y; `rows` are those of the operand, as in MatMulTask.
inline void AddProducts(const std::vector<PackedMatrix>& ranges, FloatRows y, MatMulTasks& products,
                        const int32_t* rows = nullptr) {
  size_t first = 0;
  for (const PackedMatrix& w : ranges) {
    const size_t cols = ranges.size() == 1 ? y.cols : w.rows();
    products.push_back({&w, y.Columns(first, cols), rows});
    first += cols;
  }
}

// All of several such lists.
inline std::vector<const PackedMatrix*> MatricesOf(
    std::initializer_list<const std::vector<PackedMatrix>*> lists) {
  std::vector<const PackedMatrix*> matrices;
  for (const std::vector<PackedMatrix>* list : lists) {
    for (const PackedMatrix& w : *list) matrices.push_back(&w);
  }
  return matrices;
}

// What the products with such lists cost: those of one matrix, whose results are gathered if ranks
// share it, or of the ranges of rows that a rank keeps the results of.
inline TokenWork WorkOfRanges(std::initializer_list<const std::vector<PackedMatrix>*> lists,
                              bool keeps_results) {
  TokenWork work;
  for (const std::vector<PackedMatrix>* list : lists) {
    for (const PackedMatrix& w : *list) work += keeps_results ? WorkOf({&w}) : WorkOfGathered({&w});
  }
  work.collectives = std::min<size_t>(work.collectives, 1);
  return work;
}

// Of each row of `width` columns those in the ranges, one range after the other.
inline std::vector<float> ColumnsOf(std::vector<float> values, size_t width,
                                    absl::Span<const PartRange> ranges) {
  size_t cols = 0;
  for (const PartRange& range : ranges) cols += range.count;
  if (values.empty() || cols == width) return values;
  std::vector<float> some;
  some.reserve(values.size() / width * cols);
  for (size_t row = 0; row < values.size(); row += width) {
    for (const PartRange& range : ranges) {
      const auto first = values.begin() + static_cast<ptrdiff_t>(row + range.first);
      some.insert(some.end(), first, first + static_cast<ptrdiff_t>(range.count));
    }
  }
  return some;
}

// The columns of y [rows, w.whole_rows()] that the rows of w at this rank give.
inline FloatRows OwnColumns(const PackedMatrix& w, FloatRows y) {
  return y.Columns(w.first_row(), w.rows());
}
inline ConstFloatRows OwnColumns(const PackedMatrix& w, ConstFloatRows y) {
  return y.Columns(w.first_row(), w.rows());
}

// The batch as a mixer sees it.
template <class Storage>
struct Batch {
  absl::Span<const Segment<Storage>> segments;
  // [outputs], ascending: the row of the batch that each output belongs to; nullptr when every row
  // has one.
  const int32_t* out_rows = nullptr;
};

// Calls f(segment, begin, end) for each segment that overlaps the rows [first, last). Its own rows
// are the `rows` many from `row` on (both are members of SegmentRows); those that overlap are
// [begin, end), counted from its first.
template <class SegmentType, class F>
void ForSegmentRows(absl::Span<const SegmentType> segments, size_t SegmentRows::*row,
                    size_t SegmentRows::*rows, size_t first, size_t last, const F& f) {
  for (const SegmentType& segment : segments) {
    const size_t start = segment.*row, end = start + segment.*rows;
    if (end <= first) continue;
    if (start >= last) return;
    f(segment, std::max(first, start) - start, std::min(last, end) - start);
  }
}

// For the batch's rows [first, last).
template <class SegmentType, class F>
void ForSegments(absl::Span<const SegmentType> segments, size_t first, size_t last, const F& f) {
  ForSegmentRows(segments, &SegmentRows::row, &SegmentRows::rows, first, last, f);
}

// For the outputs [first, last) of the batch.
template <class SegmentType, class F>
void ForOutputs(absl::Span<const SegmentType> segments, size_t first, size_t last, const F& f) {
  ForSegmentRows(segments, &SegmentRows::out_row, &SegmentRows::out_rows, first, last, f);
}

// What the scratch memory of a part depends on.
struct PassSize {
  size_t rows = 0;  // of the batch
  size_t model_dim = 0;
  size_t threads = 0;
};

// What all layers share in a forward pass.
struct Pass {
  Arena& arena;
  Team& team;
  Schedule::Cursor schedule;
  float norm_epsilon = 0;
  RankPass* ranks = nullptr;  // of a model that several ranks compute; else nullptr

  // x as the operand of products with matrices that read these forms; its rows [begin, end) are
  // made by compute(begin, end). It is valid until the arena's current scope ends.
  template <class Compute>
  Operand MakeOperand(ConstFloatRows x, OperandForms forms, const Compute& compute) {
    return Operand::Make(x, forms, arena.Memory(Operand::MemoryFloats(x.rows, x.cols)), team,
                         compute);
  }
  Operand MakeOperand(ConstFloatRows x, OperandForms forms) {
    return MakeOperand(x, forms, [](size_t, size_t) {});
  }
  // Floats of the arena that MakeOperand needs.
  static constexpr size_t OperandFloats(size_t rows, size_t cols) {
    return Arena::Floats(1, Operand::MemoryFloats(rows, cols));
  }

  // Computes the products of all tasks; meanwhile threads prefetch the weights that the schedule
  // names next. The results are whole: those of other ranks are gathered.
  void Multiply(std::span<const MatMulTask> tasks, const Operand& x, GatherTo to = GatherTo::kAll) {
    const PhaseAhead* const ahead = schedule.After(tasks.front().w);
    if (ranks == nullptr) return MatMul(tasks, x, team, ahead);
    MatMul(ranks->OwnRows(tasks), x, team, ahead);
    ranks->Complete(tasks, to);
  }
  void Multiply(const PackedMatrix& w, const Operand& x, FloatRows y,
                GatherTo to = GatherTo::kAll) {
    const MatMulTask task{&w, y};
    Multiply({&task, 1}, x, to);
  }

  // Of this rank, among those that compute the model.
  RankShare share() const { return ranks == nullptr ? RankShare() : ShareOf(&ranks->group()); }

  // Computes the products of the rows that this rank holds, for y [tokens, w.rows()] of each task.
  void MultiplyOwn(std::span<const MatMulTask> tasks, const Operand& x) {
    MatMul(tasks, x, team, schedule.After(tasks.front().w));
  }

  // As MakeOperand, for x whose columns ranks share as `split` says: compute makes this rank's
  // columns, and those of the others are gathered in the forms that the products read. x itself
  // holds this rank's columns alone, unless a product reads floats.
  template <class Compute>
  Operand MakeOperandOfParts(FloatRows x, RankSplit split, OperandForms forms,
                             const Compute& compute) {
    if (split.IsWhole(x.cols, share())) return MakeOperand(x, forms, compute);
    const PartRange own = split.Columns(x.cols, share());
    const Operand operand =
        Operand::MakeColumns(x, own.first, own.count, split.spans, forms,
                             arena.Memory(Operand::MemoryFloats(x.rows, x.cols)), team, compute);
    ranks->Complete(operand, x, split);
    return operand;
  }
  // Gathers the columns of x that other ranks have computed.
  void CompleteRows(FloatRows x, RankSplit split) {
    if (!split.IsWhole(x.cols, share())) ranks->Complete(x, split);
  }
};

// The engine's half of a kind P of mixer, MLP or input branch. Each kind's header in
// gemma_like/layers specialises it; no other code of the engine names a kind. Single tensors and
// keys of kinds are named where files deviate from the usual: in model/weight_binder.cc,
// model/metadata_check.cc and files/quantization.cc, which lists the convolutions' tensors.
//
// Every part has
//   Weights
//       typed views of its tensors;
//   Bind(LayerBinder& b, Weights& w)
//       asks for them, by name and shape;
//   InputForms(w)
//       the forms that products with its input read;
//   ListProducts(w, Schedule& schedule)
//       adds the products of Forward, each as Pass::Multiply is given it;
//   ScratchFloats(const PassSize& size)
//       constexpr: floats of the arena that Forward needs at most;
//   Work(w, share)
//       the products of one token at a rank, and what it gathers of other ranks' results;
//   Describe()
//       for people: "gated mlp 640".
//
// An MLP has
//   Forward(w, x, y, pass)
//       y [rows, model_dim] = mlp(x), x being [rows, model_dim];
//   Forward(w, x, stream, y, pass)
//       instead, if P::kReadsStream: `stream` is the residual stream, of which x is the norm.
//
// An input branch has
//   Forward(w, x, input, y, pass)
//       y [rows, model_dim] = branch(x, input), x being the residual stream, not normed, and input
//       [rows, P::kDim].
//
// A mixer, whose storage is MixerStorage<P>::Type, has
//   Shared
//       what its layers can share in a pass, as it depends on positions alone;
//   SharedFloats(rows)
//       constexpr: floats of the arena that MakeShared needs;
//   MakeShared(segments, rows, pass)
//   Forward(w, shared, batch, x, y, pass)
//       y [outputs, model_dim] = mixer(x), x being [rows, model_dim]; stores the state of all rows
//       that later tokens need.
template <class P>
struct LayerKind;

// The base class for mixers whose layers share nothing.
struct SharesNothing {
  struct Shared {};
  static constexpr size_t SharedFloats(size_t) { return 0; }
  static Shared MakeShared(absl::Span<const SegmentRows>, size_t, Pass&) { return {}; }
};

// Whether the header with LayerKind<P> is included.
template <class P>
concept HasLayerKind = requires {
  sizeof(LayerKind<P>);
};

namespace layer_kind_internal {

struct AnyBinder;

// The mixer whose storage M reads.
template <class M>
struct StorageOwner {
  using Type = M;
};
template <class M>
requires requires { typename M::StorageOwner; }
struct StorageOwner<M> {
  using Type = typename M::StorageOwner;
};

template <class M>
concept MixerForward =
    requires(const typename LayerKind<M>::Weights& w, const typename LayerKind<M>::Shared& shared,
             const Batch<typename MixerStorage<typename StorageOwner<M>::Type>::Type>& batch,
             const Operand& x, FloatRows y, absl::Span<const SegmentRows> segments, Pass& pass) {
  { LayerKind<M>::SharedFloats(y.rows) } -> std::same_as<size_t>;
  {
    LayerKind<M>::MakeShared(segments, y.rows, pass)
    } -> std::same_as<typename LayerKind<M>::Shared>;
  LayerKind<M>::Forward(w, shared, batch, x, y, pass);
};

template <class P>
concept Forward = requires(const typename LayerKind<P>::Weights& w, const Operand& x, FloatRows y,
                           Pass& pass) {
  LayerKind<P>::Forward(w, x, y, pass);
};

// Of input branches, and of MLPs that read the residual stream.
template <class P>
concept ForwardWithRows = requires(const typename LayerKind<P>::Weights& w, const Operand& x,
                                   FloatRows rows, FloatRows y, Pass& pass) {
  LayerKind<P>::Forward(w, x, rows, y, pass);
};

// Whether P has the Forward of its sort of part. Of a mixer without MixerStorage nothing can be
// said; the cache refuses it.
template <class P>
constexpr bool HasForward() {
  if constexpr (std::derived_from<P, MixerPart>) {
    using Owner = typename StorageOwner<P>::Type;
    return MixerForward<P> || !requires { sizeof(MixerStorage<Owner>); };
  } else if constexpr (std::derived_from<P, InputPart> || requires { P::kReadsStream; }) {
    return ForwardWithRows<P>;
  } else {
    return Forward<P>;
  }
}

}  // namespace layer_kind_internal

// Whether LayerKind<P> has what is listed above.
template <class P>
concept EnginePart = layer_kind_internal::HasForward<P>() &&
    requires(LayerBinder<layer_kind_internal::AnyBinder>& b, typename LayerKind<P>::Weights& bound,
             const typename LayerKind<P>::Weights& w, Schedule& schedule) {
  LayerKind<P>::Bind(b, bound);
  { LayerKind<P>::InputForms(w) } -> std::same_as<OperandForms>;
  LayerKind<P>::ListProducts(w, schedule);
  { LayerKind<P>::ScratchFloats(PassSize()) } -> std::same_as<size_t>;
  { LayerKind<P>::Work(w, RankShare()) } -> std::same_as<TokenWork>;
  { LayerKind<P>::Describe() } -> std::same_as<std::string>;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYER_KIND_H_

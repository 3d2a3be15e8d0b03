// The gated delta net: projections around the convolution and the chunked delta rule.
#ifndef INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_
#define INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/layers/delta_net.h"
#include "configs/layers/delta_net.h"
#include "configs/math.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/causal_conv.h"
#include "gemma_like/layers/state_chunks.h"
#include "ops/delta_rule.h"
#include "ops/row_ops.h"
#include "ops/ssd.h"

namespace inlay {

template <DeltaNetShape kShape>
struct LayerKind<DeltaNet<kShape>> : SharesNothing {
  using Stored = MixerStorage<DeltaNet<kShape>>;
  using Storage = typename Stored::Type;
  using Part = typename Stored::Part;
  static constexpr DeltaShape kDelta = Stored::kDelta;
  static constexpr size_t kHeads = kShape.value_heads;
  static constexpr size_t kHeadDim = kShape.head_dim;
  static constexpr size_t kKeyDim = kDelta.KeyDim();
  static constexpr size_t kInner = kDelta.Inner();
  static constexpr size_t kQkvDim = kDelta.QkvDim();
  // The stride of the rows that DeltaMix reads. With a multiple of a page, one head's rows would
  // all map to the same sets of the L1 cache, which costs 3 to 6 % of the time of a prefill.
  static constexpr size_t kQkvStride = kQkvDim + 16;
  using Conv = SegmentConv<kQkvDim, kShape.conv_width>;
  using Chunks = StateChunks<DeltaLog>;

  // own_inner, own_qkv and own_heads are kInner, kQkvDim and kHeads or, where ranks share the
  // heads, the parts of them that this rank computes. What has kHeads rows is whole at every rank.
  struct Weights {
    std::vector<PackedMatrix> qkv;   // [own_qkv, model_dim] together: queries, keys, values
    std::vector<PackedMatrix> gate;  // [own_inner, model_dim] together
    // [kHeads, model_dim]: the time steps, which decays depend on, and the step sizes of the delta
    // rule.
    std::vector<PackedMatrix> alpha;
    std::vector<PackedMatrix> beta;
    std::vector<float> conv;     // [conv_width, own_qkv]
    std::vector<float> dt_bias;  // [kHeads]
    std::vector<float> a;        // [own_heads], negative
    std::vector<float> norm;     // [kHeadDim]
    PackedMatrix out;            // [model_dim, kInner]
  };

  // `each` columns for each of the heads of a rank, among those of kHeads heads from `first` on.
  static std::vector<PartRange> ValueColumns(const Part& part, size_t each, size_t first = 0) {
    std::vector<PartRange> ranges;
    for (size_t s = 0; s < Stored::kValueSpans; ++s) {
      const size_t head = s * kDelta.key_heads + part.key_heads.first;
      ranges.push_back({first + head * each, part.key_heads.count * each});
    }
    return ranges;
  }
  // Those of queries, keys and values.
  static std::vector<PartRange> QkvColumns(const Part& part) {
    const PartRange queries = {part.key_heads.first * kHeadDim, part.key_heads.count * kHeadDim};
    std::vector<PartRange> ranges = ValueColumns(part, kHeadDim, 2 * kKeyDim);
    ranges.insert(ranges.begin(), {queries, {kKeyDim + queries.first, queries.count}});
    return ranges;
  }

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    const Part part = Stored::PartOf(b.share());
    const auto some = [&](absl::string_view tensor, size_t rows, std::vector<PartRange> ranges) {
      if (part.IsWhole()) ranges.clear();
      return b.RowRanges(tensor, rows, b.model_dim(), ranges);
    };
    w.qkv = some("attn_qkv.weight", kQkvDim, QkvColumns(part));
    w.gate = some("attn_gate.weight", kInner, ValueColumns(part, kHeadDim));
    w.alpha = some("ssm_alpha.weight", kHeads, {{0, kHeads}});
    w.beta = some("ssm_beta.weight", kHeads, {{0, kHeads}});
    w.conv = ColumnsOf(b.Filters("ssm_conv1d.weight", kQkvDim, kShape.conv_width), kQkvDim,
                       QkvColumns(part));
    w.dt_bias = b.Vector("ssm_dt.bias", TensorUse::kTimeStepBias, kHeads);
    w.a =
        ColumnsOf(b.Vector("ssm_a", TensorUse::kDecayRate, kHeads), kHeads, ValueColumns(part, 1));
    w.norm = b.Vector("ssm_norm.weight", TensorUse::kNorm, kHeadDim);
    w.out = b.Matrix("ssm_out.weight", b.model_dim(), kInner, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) {
    return OperandForms::For({&w.qkv.front(), &w.gate.front(), &w.alpha.front(), &w.beta.front()});
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add(MatricesOf({&w.qkv, &w.gate, &w.alpha, &w.beta}));
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<Storage>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    const Part part = Stored::PartOf(pass.share());
    const DeltaShape own = part.Shape();
    FloatRows in = pass.arena.Rows(rows, own.QkvDim());
    FloatRows qkv = pass.arena.Rows(rows, kQkvStride).Columns(0, own.QkvDim());
    FloatRows dt = pass.arena.Rows(rows, kHeads);
    FloatRows beta = pass.arena.Rows(rows, kHeads);
    FloatRows gate = pass.arena.Rows(y.rows, own.Inner());
    FloatRows mixed = pass.arena.Rows(y.rows, kInner);
    // This rank's heads, which later go to their columns among all.
    const FloatRows own_mixed = mixed.Columns(0, own.Inner());
    float* const scratch = pass.arena.Memory(DeltaScratchFloats(own, rows, pass.team.threads()));
    MatMulTasks projections;
    AddProducts(w.qkv, in, projections);
    AddProducts(w.gate, gate, projections, batch.out_rows);
    AddProducts(w.alpha, dt, projections);
    AddProducts(w.beta, beta, projections);
    part.IsWhole() ? pass.Multiply(projections, x) : pass.MultiplyOwn(projections, x);

    const Chunks chunks(
        batch.segments, [](const Segment<Storage>& segment) -> const auto& {
          return segment.storage->template Get<1>();
        });
    ForRows(pass.team, rows, 2 * kQkvDim, [&](size_t first, size_t last) {
      SsdTimeSteps(dt.Slice(first, last - first), w.dt_bias.data(), dt.Slice(first, last - first));
      Logistic(beta.Slice(first, last - first));
      for (size_t row = first; row < last && !part.IsWhole(); ++row) {
        Gather(part, dt.Row(row));
        Gather(part, beta.Row(row));
      }
      ForSegments(batch.segments, first, last,
                  [&](const Segment<Storage>& segment, size_t begin, size_t end) {
                    const auto index = static_cast<size_t>(&segment - batch.segments.data());
                    const auto of = [&](FloatRows all) {
                      return all.Slice(segment.row, segment.rows);
                    };
                    Convolve(w, own, segment, of(in), begin, end, of(qkv), pass.norm_epsilon);
                    KeepKeys(chunks, own, index, of(qkv), begin, end);
                  });
    });
    absl::InlinedVector<DeltaAppend, 8> appends;
    for (size_t i = 0; i < batch.segments.size(); ++i) {
      const Segment<Storage>& segment = batch.segments[i];
      appends.push_back({.shape = own,
                         .chunks = chunks.Of(i).data(),
                         .count = chunks.Of(i).size(),
                         .qkv = qkv.Slice(segment.row, segment.rows),
                         .dt = dt.Slice(segment.row, segment.rows).Columns(0, own.value_heads),
                         .beta = beta.Slice(segment.row, segment.rows).Columns(0, own.value_heads),
                         .a = w.a.data(),
                         .row = segment.row,
                         .first_output = segment.rows - segment.out_rows,
                         .y = own_mixed.Slice(segment.out_row, segment.out_rows)});
    }
    DeltaMix(appends, scratch, pass.team);
    if (y.rows == 0) return;
    const RankSplit split{.unit = Stored::UnitKeyHeads() * kHeadDim, .spans = Stored::kValueSpans};
    const Operand gated = pass.MakeOperandOfParts(
        mixed, split, OperandForms::For({&w.out}), [&](size_t begin, size_t end) {
          const FloatRows outputs = own_mixed.Slice(begin, end - begin);
          for (size_t r = 0; r < outputs.rows; ++r) {
            const FloatRows heads(outputs.Row(r), own.value_heads, kHeadDim);
            RmsNorm(heads, w.norm.data(), pass.norm_epsilon, heads);
          }
          SiluGate(gate.Slice(begin, end - begin), outputs, outputs);
          for (size_t r = begin; r < end && !part.IsWhole(); ++r) Scatter(part, mixed.Row(r));
        });
    pass.Multiply(w.out, gated, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kQkvDim) + Arena::Floats(size.rows, kQkvStride) +
           2 * Arena::Floats(size.rows, kHeads) + 2 * Arena::Floats(size.rows, kInner) +
           Arena::Floats(1, DeltaScratchFloats(kDelta, size.rows, size.threads)) +
           Pass::OperandFloats(size.rows, kInner);
  }

  static TokenWork Work(const Weights& w, RankShare share) {
    const bool is_part = !Stored::PartOf(share).IsWhole();
    TokenWork work = WorkOfRanges({&w.qkv, &w.gate, &w.alpha, &w.beta}, is_part);
    if (is_part) work += WorkOfOperand(w.out);
    work += WorkOfGathered({&w.out});
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("delta net: ", kHeads, " heads of ", kHeadDim, ", ", kShape.key_heads,
                        " of keys, conv ", kShape.conv_width);
  }

 private:
  // Moves the numbers of a rank's heads, of one for each head, to the front.
  static void Gather(const Part& part, float* row) {
    const auto [first, count] = part.key_heads;
    for (size_t s = 0; s < Stored::kValueSpans; ++s) {
      std::memmove(row + s * count, row + s * kDelta.key_heads + first, count * sizeof(float));
    }
  }
  // Moves a rank's heads from the front of a row of all heads to where they belong.
  static void Scatter(const Part& part, float* row) {
    const auto [first, count] = part.key_heads;
    for (size_t s = Stored::kValueSpans; s-- > 0;) {
      std::memmove(row + (s * kDelta.key_heads + first) * kHeadDim, row + s * count * kHeadDim,
                   count * kHeadDim * sizeof(float));
    }
  }

  // Queries, keys and values of the segment's rows [begin, end), and stores the inputs of the
  // convolution that later tokens need. `in` and `qkv` are all of its rows.
  static void Convolve(const Weights& w, const DeltaShape& own, const Segment<Storage>& segment,
                       ConstFloatRows in, size_t begin, size_t end, FloatRows qkv, float epsilon) {
    const Conv conv{segment, segment.storage->template Get<0>()};
    conv.Forward(
        {.weight = w.conv.data(), .width = kShape.conv_width, .bias = nullptr, .silu = true}, in,
        begin, end, qkv.Slice(begin, end - begin));
    conv.Keep(in, begin, end);
    constexpr auto kScale = static_cast<float>(1 / ConstexprSqrt(kHeadDim));
    for (size_t row = begin; row < end; ++row) {
      const FloatRows queries(qkv.Row(row), own.key_heads, kHeadDim);
      const FloatRows keys(qkv.Row(row) + own.KeyDim(), own.key_heads, kHeadDim);
      L2Norm(queries, epsilon, kScale, queries);
      L2Norm(keys, epsilon, 1, keys);
    }
  }

  // Copies the keys of those of the segment's rows [begin, end) whose log is kept.
  static void KeepKeys(const Chunks& chunks, const DeltaShape& own, size_t segment,
                       ConstFloatRows qkv, size_t begin, size_t end) {
    chunks.ForKept(segment, begin, end, [&](size_t row, size_t at, const DeltaLog& log) {
      std::copy_n(qkv.Row(row) + own.KeyDim(), own.KeyDim(), log.keys().Row(at));
    });
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_

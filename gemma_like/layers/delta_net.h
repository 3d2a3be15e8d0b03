// The gated delta net: projections around the convolution and the chunked delta rule.
#ifndef INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_
#define INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
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
  using Storage = typename MixerStorage<DeltaNet<kShape>>::Type;
  static constexpr DeltaShape kDelta = MixerStorage<DeltaNet<kShape>>::kDelta;
  static constexpr size_t kHeads = kShape.value_heads;
  static constexpr size_t kHeadDim = kShape.head_dim;
  static constexpr size_t kKeyDim = kDelta.KeyDim();
  static constexpr size_t kInner = kDelta.Inner();
  static constexpr size_t kQkvDim = kDelta.QkvDim();
  // Of the rows that DeltaMix reads. If they were a multiple of a page apart, those of one head
  // would have the same place in the L1 cache, which takes 3 to 6 % of the time of a prefill.
  static constexpr size_t kQkvStride = kQkvDim + 16;
  using Conv = SegmentConv<kQkvDim, kShape.conv_width>;
  using Chunks = StateChunks<DeltaLog>;

  struct Weights {
    PackedMatrix qkv;            // [kQkvDim, model_dim]: queries, keys, values
    PackedMatrix gate;           // [kInner, model_dim]
    PackedMatrix alpha;          // [heads, model_dim]: the time steps, which decays depend on
    PackedMatrix beta;           // [heads, model_dim]: the step sizes of the delta rule
    std::vector<float> conv;     // [conv_width, kQkvDim]
    std::vector<float> dt_bias;  // [heads]
    std::vector<float> a;        // [heads], negative
    std::vector<float> norm;     // [kHeadDim]
    PackedMatrix out;            // [model_dim, kInner]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.qkv = b.Matrix("attn_qkv.weight", kQkvDim, b.model_dim());
    w.gate = b.Matrix("attn_gate.weight", kInner, b.model_dim());
    w.alpha = b.Matrix("ssm_alpha.weight", kHeads, b.model_dim());
    w.beta = b.Matrix("ssm_beta.weight", kHeads, b.model_dim());
    w.conv = b.Filters("ssm_conv1d.weight", kQkvDim, kShape.conv_width);
    w.dt_bias = b.Vector("ssm_dt.bias", TensorUse::kTimeStepBias, kHeads);
    w.a = b.Vector("ssm_a", TensorUse::kDecayRate, kHeads);
    w.norm = b.Vector("ssm_norm.weight", TensorUse::kNorm, kHeadDim);
    w.out = b.Matrix("ssm_out.weight", b.model_dim(), kInner, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) {
    return OperandForms::For({&w.qkv, &w.gate, &w.alpha, &w.beta});
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.qkv, &w.gate, &w.alpha, &w.beta});
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<Storage>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    FloatRows in = pass.arena.Rows(rows, kQkvDim);
    FloatRows qkv = pass.arena.Rows(rows, kQkvStride).Columns(0, kQkvDim);
    FloatRows dt = pass.arena.Rows(rows, kHeads);
    FloatRows beta = pass.arena.Rows(rows, kHeads);
    FloatRows gate = pass.arena.Rows(y.rows, kInner);
    FloatRows mixed = pass.arena.Rows(y.rows, kInner);
    float* const scratch = pass.arena.Memory(DeltaScratchFloats(kDelta, rows, pass.team.threads()));
    const MatMulTask projections[] = {
        {&w.qkv, in}, {&w.gate, gate, batch.out_rows}, {&w.alpha, dt}, {&w.beta, beta}};
    pass.Multiply(projections, x);

    const Chunks chunks(
        batch.segments, [](const Segment<Storage>& segment) -> const auto& {
          return segment.storage->template Get<1>();
        });
    ForRows(pass.team, rows, 2 * kQkvDim, [&](size_t first, size_t last) {
      SsdTimeSteps(dt.Slice(first, last - first), w.dt_bias.data(), dt.Slice(first, last - first));
      Logistic(beta.Slice(first, last - first));
      ForSegments(batch.segments, first, last,
                  [&](const Segment<Storage>& segment, size_t begin, size_t end) {
                    const auto index = static_cast<size_t>(&segment - batch.segments.data());
                    const auto of = [&](FloatRows all) {
                      return all.Slice(segment.row, segment.rows);
                    };
                    Convolve(w, segment, of(in), begin, end, of(qkv), pass.norm_epsilon);
                    KeepKeys(chunks, index, of(qkv), begin, end);
                  });
    });
    absl::InlinedVector<DeltaAppend, 8> appends;
    for (size_t i = 0; i < batch.segments.size(); ++i) {
      const Segment<Storage>& segment = batch.segments[i];
      appends.push_back({.shape = kDelta,
                         .chunks = chunks.Of(i).data(),
                         .count = chunks.Of(i).size(),
                         .qkv = qkv.Slice(segment.row, segment.rows),
                         .dt = dt.Slice(segment.row, segment.rows),
                         .beta = beta.Slice(segment.row, segment.rows),
                         .a = w.a.data(),
                         .row = segment.row,
                         .first_output = segment.rows - segment.out_rows,
                         .y = mixed.Slice(segment.out_row, segment.out_rows)});
    }
    DeltaMix(appends, scratch, pass.team);
    if (y.rows == 0) return;
    const Operand gated =
        pass.MakeOperand(mixed, OperandForms::For({&w.out}), [&](size_t begin, size_t end) {
          const FloatRows outputs = mixed.Slice(begin, end - begin);
          const FloatRows heads(outputs.data, outputs.rows * kHeads, kHeadDim);
          RmsNorm(heads, w.norm.data(), pass.norm_epsilon, heads);
          SiluGate(gate.Slice(begin, end - begin), outputs, outputs);
        });
    pass.Multiply(w.out, gated, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kQkvDim) + Arena::Floats(size.rows, kQkvStride) +
           2 * Arena::Floats(size.rows, kHeads) + 2 * Arena::Floats(size.rows, kInner) +
           Arena::Floats(1, DeltaScratchFloats(kDelta, size.rows, size.threads)) +
           Pass::OperandFloats(size.rows, kInner);
  }

  static TokenWork Work(const Weights& w) {
    TokenWork work;
    for (const PackedMatrix* m : {&w.qkv, &w.gate, &w.alpha, &w.beta, &w.out}) work += WorkOf(*m);
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("delta net: ", kHeads, " heads of ", kHeadDim, ", ", kShape.key_heads,
                        " of keys, conv ", kShape.conv_width);
  }

 private:
  // Queries, keys and values of the segment's rows [begin, end), and stores the inputs of the
  // convolution that later tokens need. `in` and `qkv` are all of its rows.
  static void Convolve(const Weights& w, const Segment<Storage>& segment, ConstFloatRows in,
                       size_t begin, size_t end, FloatRows qkv, float epsilon) {
    const Conv conv{segment, segment.storage->template Get<0>()};
    conv.Forward(
        {.weight = w.conv.data(), .width = kShape.conv_width, .bias = nullptr, .silu = true}, in,
        begin, end, qkv.Slice(begin, end - begin));
    conv.Keep(in, begin, end);
    constexpr auto kScale = static_cast<float>(1 / ConstexprSqrt(kHeadDim));
    for (size_t row = begin; row < end; ++row) {
      const FloatRows queries(qkv.Row(row), kShape.key_heads, kHeadDim);
      const FloatRows keys(qkv.Row(row) + kKeyDim, kShape.key_heads, kHeadDim);
      L2Norm(queries, epsilon, kScale, queries);
      L2Norm(keys, epsilon, 1, keys);
    }
  }

  // Copies the keys of those of the segment's rows [begin, end) whose log is kept.
  static void KeepKeys(const Chunks& chunks, size_t segment, ConstFloatRows qkv, size_t begin,
                       size_t end) {
    chunks.ForKept(segment, begin, end, [&](size_t row, size_t at, const DeltaLog& log) {
      std::copy_n(qkv.Row(row) + kKeyDim, kKeyDim, log.keys().Row(at));
    });
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_DELTA_NET_H_

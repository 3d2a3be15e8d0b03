// Mamba2: projections around the convolution and the chunked state space recurrence.
#ifndef INLAY_GEMMA_LIKE_LAYERS_MAMBA2_H_
#define INLAY_GEMMA_LIKE_LAYERS_MAMBA2_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cache/layers/mamba2.h"
#include "configs/layers/mamba2.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/causal_conv.h"
#include "gemma_like/layers/state_chunks.h"
#include "ops/row_ops.h"
#include "ops/ssd.h"

namespace inlay {

template <Mamba2Shape kShape>
struct LayerKind<Mamba2<kShape>> : SharesNothing {
  using Storage = typename MixerStorage<Mamba2<kShape>>::Type;
  static constexpr SsdShape kSsd = MixerStorage<Mamba2<kShape>>::kSsd;
  static constexpr size_t kHeads = kShape.heads;
  static constexpr size_t kInner = kSsd.Inner();
  static constexpr size_t kXbcDim = kSsd.XbcDim();
  static constexpr size_t kInDim = kInner + kXbcDim + kHeads;  // z; x, B, C; dt
  static constexpr size_t kGroup = kInner / kShape.groups;     // channels normalised together
  using Conv = SegmentConv<kXbcDim, kShape.conv_width>;
  using Chunks = StateChunks<SsdLog>;

  struct Weights {
    PackedMatrix in;               // [kInDim, model_dim]
    std::vector<float> conv;       // [conv_width, kXbcDim]
    std::vector<float> conv_bias;  // [kXbcDim]
    std::vector<float> dt_bias;    // [heads]
    std::vector<float> a;          // [heads], negative
    std::vector<float> d;          // [heads]
    std::vector<float> norm;       // [kInner]; empty unless the output is normed
    PackedMatrix out;              // [model_dim, kInner]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.in = b.Matrix("ssm_in.weight", kInDim, b.model_dim());
    w.conv = b.Filters("ssm_conv1d.weight", kXbcDim, kShape.conv_width);
    w.conv_bias = b.Vector("ssm_conv1d.bias", TensorUse::kBias, kXbcDim);
    w.dt_bias = b.Vector("ssm_dt.bias", TensorUse::kTimeStepBias, kHeads);
    w.a = b.Vector("ssm_a", TensorUse::kDecayRate, 1, kHeads);
    w.d = b.Vector("ssm_d", TensorUse::kNorm, 1, kHeads);
    if constexpr (kShape.normed) {
      w.norm = b.Vector("ssm_norm.weight", TensorUse::kBranchNorm, kGroup, kShape.groups);
    }
    w.out = b.Matrix("ssm_out.weight", b.model_dim(), kInner,
                     kShape.normed ? TensorUse::kMatrix : TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.in}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.in});
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<Storage>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    FloatRows in = pass.arena.Rows(rows, kInDim);
    FloatRows xbc = pass.arena.Rows(rows, kXbcDim);
    FloatRows dt = pass.arena.Rows(rows, kHeads);
    FloatRows mixed = pass.arena.Rows(y.rows, kInner);
    float* const scratch = pass.arena.Memory(SsdScratchFloats(kSsd, rows, pass.team.threads()));
    pass.Multiply(w.in, x, in);

    const Chunks chunks(
        batch.segments, [](const Segment<Storage>& segment) -> const auto& {
          return segment.storage->template Get<1>();
        });
    ForRows(pass.team, rows, 2 * kXbcDim, [&](size_t first, size_t last) {
      ForSegments(batch.segments, first, last,
                  [&](const Segment<Storage>& segment, size_t begin, size_t end) {
                    const auto index = static_cast<size_t>(&segment - batch.segments.data());
                    const auto of = [&](FloatRows all) {
                      return all.Slice(segment.row, segment.rows);
                    };
                    Convolve(w, segment, of(in), begin, end, of(xbc), of(dt));
                    KeepInLog(chunks, index, of(xbc), of(dt), begin, end);
                  });
    });
    absl::InlinedVector<SsdAppend, 8> appends;
    for (size_t i = 0; i < batch.segments.size(); ++i) {
      const Segment<Storage>& segment = batch.segments[i];
      appends.push_back({.shape = kSsd,
                         .chunks = chunks.Of(i).data(),
                         .count = chunks.Of(i).size(),
                         .xbc = xbc.Slice(segment.row, segment.rows),
                         .dt = dt.Slice(segment.row, segment.rows),
                         .a = w.a.data(),
                         .d = w.d.data(),
                         .row = segment.row,
                         .first_output = segment.rows - segment.out_rows,
                         .y = mixed.Slice(segment.out_row, segment.out_rows)});
    }
    SsdMix(appends, scratch, pass.team);
    if (y.rows == 0) return;
    const Operand normed =
        pass.MakeOperand(mixed, OperandForms::For({&w.out}), [&](size_t begin, size_t end) {
          GateAndNorm(w, in, batch.out_rows, begin, mixed.Slice(begin, end - begin),
                      pass.norm_epsilon);
        });
    pass.Multiply(w.out, normed, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kInDim) + Arena::Floats(size.rows, kXbcDim) +
           Arena::Floats(size.rows, kHeads) + Arena::Floats(size.rows, kInner) +
           Arena::Floats(1, SsdScratchFloats(kSsd, size.rows, size.threads)) +
           Pass::OperandFloats(size.rows, kInner);
  }

  static TokenWork Work(const Weights& w) {
    TokenWork work = WorkOf(w.in);
    work += WorkOf(w.out);
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("mamba2: ", kHeads, " heads of ", kShape.head_dim, ", state ",
                        kShape.state_dim, ", ", kShape.groups,
                        kShape.groups == 1 ? " group" : " groups", ", conv ", kShape.conv_width);
  }

 private:
  // Convolution and time steps of the segment's rows [begin, end), and stores the inputs of the
  // convolution that later tokens need. `in` holds the outputs of the first projection for all of
  // its rows.
  static void Convolve(const Weights& w, const Segment<Storage>& segment, ConstFloatRows in,
                       size_t begin, size_t end, FloatRows xbc, FloatRows dt) {
    const size_t n = end - begin;
    const ConstFloatRows raw = in.Columns(kInner, kXbcDim);
    const Conv conv{segment, segment.storage->template Get<0>()};
    conv.Forward({.weight = w.conv.data(),
                  .width = kShape.conv_width,
                  .bias = w.conv_bias.data(),
                  .silu = true},
                 raw, begin, end, xbc.Slice(begin, n));
    conv.Keep(raw, begin, end);
    SsdTimeSteps(in.Slice(begin, n).Columns(kInner + kXbcDim, kHeads), w.dt_bias.data(),
                 dt.Slice(begin, n));
  }

  // Copies those of the segment's rows [begin, end) whose log is kept.
  static void KeepInLog(const Chunks& chunks, size_t segment, ConstFloatRows xbc, ConstFloatRows dt,
                        size_t begin, size_t end) {
    chunks.ForKept(segment, begin, end, [&](size_t row, size_t at, const SsdLog& log) {
      std::copy_n(xbc.Row(row), kInner, log.x().Row(at));
      std::copy_n(xbc.Row(row) + kInner, kSsd.BcDim(), log.b().Row(at));
      std::copy_n(dt.Row(row), kHeads, log.dt().Row(at));
    });
  }

  // outputs = norm(outputs * silu(z)), if normed, where `outputs` begins with output `first`.
  static void GateAndNorm(const Weights& w, ConstFloatRows in, const int32_t* out_rows,
                          size_t first, FloatRows outputs, float epsilon) {
    if (out_rows == nullptr) {
      SiluGate(in.Slice(first, outputs.rows).Columns(0, kInner), outputs, outputs);
    } else {
      for (size_t r = 0; r < outputs.rows; ++r) {
        const FloatRows output = outputs.Slice(r, 1);
        SiluGate(in.Slice(static_cast<size_t>(out_rows[first + r]), 1).Columns(0, kInner), output,
                 output);
      }
    }
    for (size_t g = 0; kShape.normed && g < kShape.groups; ++g) {
      const FloatRows group = outputs.Columns(g * kGroup, kGroup);
      RmsNorm(group, w.norm.data() + g * kGroup, epsilon, group);
    }
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_MAMBA2_H_

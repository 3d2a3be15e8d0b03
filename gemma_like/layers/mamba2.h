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
  using Stored = MixerStorage<Mamba2<kShape>>;
  using Storage = typename Stored::Type;
  using Part = typename Stored::Part;
  static constexpr SsdShape kSsd = Stored::kSsd;
  static constexpr size_t kHeads = kShape.heads;
  static constexpr size_t kInner = kSsd.Inner();
  static constexpr size_t kXbcDim = kSsd.XbcDim();
  static constexpr size_t kInDim = kInner + kXbcDim + kHeads;  // z; x, B, C; dt
  static constexpr size_t kGroup = kInner / kShape.groups;     // channels normalised together
  // A rank that has some of the heads cannot normalise its channels without the others.
  static constexpr bool kNormsAll = kShape.normed && kShape.groups == 1;
  using Conv = SegmentConv<kXbcDim, kShape.conv_width>;
  using Chunks = StateChunks<SsdLog>;

  // Of a rank that has some of the heads, own_xbc is what its shape has in place of kXbcDim, and
  // its rows of `in` are z and x of its heads, B and C of its groups, and dt of all heads.
  struct Weights {
    std::vector<PackedMatrix> in;  // [kInDim, model_dim], or the rank's rows together
    std::vector<float> conv;       // [conv_width, own_xbc]
    std::vector<float> conv_bias;  // [own_xbc]
    std::vector<float> dt_bias;    // [kHeads]
    std::vector<float> a;          // [kHeads], negative
    std::vector<float> d;          // [kHeads]
    std::vector<float> norm;       // [kInner]; empty unless the output is normed
    PackedMatrix out;              // [model_dim, kInner]
  };

  // x, B and C of a rank, among those of all, from column `first` on.
  static std::vector<PartRange> XbcColumns(const Part& part, size_t first = 0) {
    const SsdShape own = part.Shape();
    const size_t group = first + kInner + part.groups.first * kShape.state_dim;
    return {{first + part.heads.first * kShape.head_dim, own.Inner()},
            {group, own.BcDim()},
            {group + kSsd.BcDim(), own.BcDim()}};
  }

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    const Part part = Stored::PartOf(b.share());
    const std::vector<PartRange> xbc = XbcColumns(part);
    std::vector<PartRange> rows;
    if (!part.IsWhole()) {
      rows = XbcColumns(part, kInner);
      rows.insert(rows.begin(), xbc.front());  // z
      rows.push_back({kInner + kXbcDim, kHeads});
    }
    w.in = b.RowRanges("ssm_in.weight", kInDim, b.model_dim(), rows);
    w.conv = ColumnsOf(b.Filters("ssm_conv1d.weight", kXbcDim, kShape.conv_width), kXbcDim, xbc);
    w.conv_bias = ColumnsOf(b.OptionalVector("ssm_conv1d.bias", TensorUse::kBias, kXbcDim, 0.0f),
                            kXbcDim, xbc);
    w.dt_bias = b.Vector("ssm_dt.bias", TensorUse::kTimeStepBias, kHeads);
    w.a = b.Vector("ssm_a", TensorUse::kDecayRate, 1, kHeads);
    w.d = b.Vector("ssm_d", TensorUse::kNorm, 1, kHeads);
    if constexpr (kShape.normed) {
      w.norm = b.Vector("ssm_norm.weight", TensorUse::kBranchNorm, kGroup, kShape.groups);
    }
    w.out = b.Matrix("ssm_out.weight", b.model_dim(), kInner,
                     kShape.normed ? TensorUse::kMatrix : TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.in.front()}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add(MatricesOf({&w.in}));
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<Storage>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    const Part part = Stored::PartOf(pass.share());
    const SsdShape own = part.Shape();
    FloatRows in = pass.arena.Rows(rows, own.Inner() + own.XbcDim() + kHeads);
    FloatRows xbc = pass.arena.Rows(rows, own.XbcDim());
    FloatRows dt = pass.arena.Rows(rows, kHeads);
    FloatRows mixed = pass.arena.Rows(y.rows, kInner);
    const FloatRows own_mixed = mixed.Columns(part.heads.first * kShape.head_dim, own.Inner());
    float* const scratch = pass.arena.Memory(SsdScratchFloats(own, rows, pass.team.threads()));
    MatMulTasks projections;
    AddProducts(w.in, in, projections);
    part.IsWhole() ? pass.Multiply(projections, x) : pass.MultiplyOwn(projections, x);
    const FloatRows own_dt = dt.Columns(part.heads.first, own.heads);

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
                    Convolve(w, own, segment, of(in), begin, end, of(xbc), of(dt));
                    KeepInLog(chunks, own, index, of(xbc), of(own_dt), begin, end);
                  });
    });
    absl::InlinedVector<SsdAppend, 8> appends;
    for (size_t i = 0; i < batch.segments.size(); ++i) {
      const Segment<Storage>& segment = batch.segments[i];
      appends.push_back({.shape = own,
                         .chunks = chunks.Of(i).data(),
                         .count = chunks.Of(i).size(),
                         .xbc = xbc.Slice(segment.row, segment.rows),
                         .dt = own_dt.Slice(segment.row, segment.rows),
                         .a = w.a.data() + part.heads.first,
                         .d = w.d.data() + part.heads.first,
                         .row = segment.row,
                         .first_output = segment.rows - segment.out_rows,
                         .y = own_mixed.Slice(segment.out_row, segment.out_rows)});
    }
    SsdMix(appends, scratch, pass.team);
    if (y.rows == 0) return;
    const auto gate = [&](size_t begin, size_t end) {
      Gate(in.Columns(0, own.Inner()), batch.out_rows, begin, own_mixed.Slice(begin, end - begin));
    };
    const RankSplit split{.unit = Stored::UnitHeads() * kShape.head_dim};
    const OperandForms forms = OperandForms::For({&w.out});
    if (kNormsAll && !part.IsWhole()) {
      ForRows(pass.team, y.rows, own.Inner(), gate);
      pass.CompleteRows(mixed, split);
      const Operand normed = pass.MakeOperand(mixed, forms, [&](size_t begin, size_t end) {
        Norm(w, {0, 1}, mixed.Slice(begin, end - begin), pass.norm_epsilon);
      });
      return pass.Multiply(w.out, normed, y);
    }
    const Operand normed =
        pass.MakeOperandOfParts(mixed, split, forms, [&](size_t begin, size_t end) {
          gate(begin, end);
          Norm(w, part.groups, own_mixed.Slice(begin, end - begin), pass.norm_epsilon);
        });
    pass.Multiply(w.out, normed, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kInDim) + Arena::Floats(size.rows, kXbcDim) +
           Arena::Floats(size.rows, kHeads) + Arena::Floats(size.rows, kInner) +
           Arena::Floats(1, SsdScratchFloats(kSsd, size.rows, size.threads)) +
           Pass::OperandFloats(size.rows, kInner);
  }

  static TokenWork Work(const Weights& w, RankShare share) {
    const bool is_part = !Stored::PartOf(share).IsWhole();
    TokenWork work = WorkOfRanges({&w.in}, is_part);
    if (is_part && kNormsAll) {
      work += {.collectives = 1, .gathered = kInner * sizeof(float)};
    } else if (is_part) {
      work += WorkOfOperand(w.out);
    }
    work += WorkOfGathered({&w.out});
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
  static void Convolve(const Weights& w, const SsdShape& own, const Segment<Storage>& segment,
                       ConstFloatRows in, size_t begin, size_t end, FloatRows xbc, FloatRows dt) {
    const size_t n = end - begin;
    const ConstFloatRows raw = in.Columns(own.Inner(), own.XbcDim());
    const Conv conv{segment, segment.storage->template Get<0>()};
    conv.Forward({.weight = w.conv.data(),
                  .width = kShape.conv_width,
                  .bias = w.conv_bias.data(),
                  .silu = true},
                 raw, begin, end, xbc.Slice(begin, n));
    conv.Keep(raw, begin, end);
    SsdTimeSteps(in.Slice(begin, n).Columns(own.Inner() + own.XbcDim(), kHeads), w.dt_bias.data(),
                 dt.Slice(begin, n));
  }

  // Copies those of the segment's rows [begin, end) whose log is kept.
  static void KeepInLog(const Chunks& chunks, const SsdShape& own, size_t segment,
                        ConstFloatRows xbc, ConstFloatRows dt, size_t begin, size_t end) {
    chunks.ForKept(segment, begin, end, [&](size_t row, size_t at, const SsdLog& log) {
      std::copy_n(xbc.Row(row), own.Inner(), log.x().Row(at));
      std::copy_n(xbc.Row(row) + own.Inner(), own.BcDim(), log.b().Row(at));
      std::copy_n(dt.Row(row), own.heads, log.dt().Row(at));
    });
  }

  // outputs *= silu(z), where `outputs` begins with output `first` and z has a row for each of the
  // batch.
  static void Gate(ConstFloatRows z, const int32_t* out_rows, size_t first, FloatRows outputs) {
    if (out_rows == nullptr) return SiluGate(z.Slice(first, outputs.rows), outputs, outputs);
    for (size_t r = 0; r < outputs.rows; ++r) {
      const FloatRows output = outputs.Slice(r, 1);
      SiluGate(z.Slice(static_cast<size_t>(out_rows[first + r]), 1), output, output);
    }
  }

  // Normalises outputs, whose columns are these groups of all, if they are normed.
  static void Norm(const Weights& w, PartRange groups, FloatRows outputs, float epsilon) {
    for (size_t g = 0; kShape.normed && g < groups.count; ++g) {
      const FloatRows group = outputs.Columns(g * kGroup, kGroup);
      RmsNorm(group, w.norm.data() + (groups.first + g) * kGroup, epsilon, group);
    }
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_MAMBA2_H_

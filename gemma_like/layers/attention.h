// Attention: projections, head norms, rotation, storing of keys and values, attention.
#ifndef INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_
#define INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/layers/attention.h"
#include "configs/layers/attention.h"
#include "gemma_like/layer_kind.h"
#include "ops/attention/attention.h"
#include "ops/row_ops.h"

namespace inlay {

template <AttentionShape kShape, Rope kRope, int kWindow>
struct LayerKind<AttentionMixer<kShape, kRope, kWindow>> {
  static constexpr size_t kHeads = kShape.heads;
  static constexpr size_t kKvHeads = kShape.kv_heads;
  static constexpr size_t kHeadDim = kShape.head_dim;
  static constexpr size_t kQueryDim = kHeads * kHeadDim;
  static constexpr size_t kKvDim = kKvHeads * kHeadDim;
  static constexpr bool kRotates = kRope.base != 0;
  static constexpr size_t kRotated = AttentionMixer<kShape, kRope, kWindow>::kRotated;
  static constexpr size_t kTurning = AttentionMixer<kShape, kRope, kWindow>::kTurning;
  static constexpr bool kHasValues = !kShape.values_are_keys;  // a matrix for them
  // Of each head: its query and, if gated, its gate.
  static constexpr size_t kProjectedHead = (kShape.gated ? 2 : 1) * kHeadDim;
  static constexpr size_t kProjectedDim = kHeads * kProjectedHead;
  static constexpr RopePairs kPairs =
      kRope.interleaved ? RopePairs::kNeighbours : RopePairs::kHalves;

  // How far a token that attends to both sides sees.
  static constexpr size_t kEachSide =
      kWindow == 0 ? std::numeric_limits<size_t>::max() : size_t{kWindow} / 2;
  static constexpr AttentionParams kParams{
      .heads = kHeads,
      .scale = static_cast<float>(kShape.Scale()),
      .soft_cap = kShape.soft_cap,
      .window = kShape.bidirectional && kWindow != 0 ? kEachSide + 1 : size_t{kWindow},
      .ahead = kShape.bidirectional ? kEachSide : 0};

  struct Weights {
    PackedMatrix q;             // [kProjectedDim, model_dim]
    PackedMatrix k;             // [kKvDim, model_dim]
    PackedMatrix v;             // as k; empty if values are keys
    PackedMatrix output;        // [model_dim, kQueryDim]
    std::vector<float> q_norm;  // [kHeadDim], empty without qk_norm
    std::vector<float> k_norm;  // likewise
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    std::vector<StackedMatrix> projections = {{"attn_q.weight", kProjectedDim},
                                              {"attn_k.weight", kKvDim}};
    if constexpr (kHasValues) projections.push_back({"attn_v.weight", kKvDim});
    std::vector<PackedMatrix> qkv =
        b.Stacked("attn_qkv.weight", std::move(projections), b.model_dim());
    w.q = std::move(qkv[0]);
    w.k = std::move(qkv[1]);
    if constexpr (kHasValues) w.v = std::move(qkv[2]);
    w.output = b.Matrix("attn_output.weight", b.model_dim(), kQueryDim, TensorUse::kBranchEnd);
    if constexpr (kShape.qk_norm) {
      w.q_norm = b.Vector("attn_q_norm.weight", TensorUse::kNorm, kHeadDim);
      w.k_norm = b.Vector("attn_k_norm.weight", TensorUse::kNorm, kHeadDim);
    }
    if constexpr (kRope.proportional) BindAngleDivisors(b);
  }

  static OperandForms InputForms(const Weights& w) {
    if constexpr (!kHasValues) return OperandForms::For({&w.q, &w.k});
    return OperandForms::For({&w.q, &w.k, &w.v});
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    if constexpr (kHasValues) {
      schedule.Add({&w.q, &w.k, &w.v});
    } else {
      schedule.Add({&w.q, &w.k});
    }
    schedule.Add({&w.output});
  }

  struct Shared {
    FloatRows angles;  // [rows, kRotated], the rotations of the batch's positions
  };

  static constexpr size_t SharedFloats(size_t rows) {
    return kRotates ? Arena::Floats(rows, kRotated) : 0;
  }

  static Shared MakeShared(absl::Span<const SegmentRows> segments, size_t rows, Pass& pass) {
    Shared shared;
    if constexpr (kRotates) {
      shared.angles = pass.arena.Rows(rows, kRotated);
      ForRows(pass.team, rows, kRotated, [&](size_t first, size_t last) {
        ForSegments(segments, first, last,
                    [&](const SegmentRows& segment, size_t begin, size_t end) {
                      RopeAngles(segment.position + begin, kRope.base, kRope.scale,
                                 shared.angles.Slice(segment.row + begin, end - begin), kTurning);
                    });
      });
    }
    return shared;
  }

  static void Forward(const Weights& w, const Shared& shared, const Batch<KvBlocks>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    FloatRows projected = pass.arena.Rows(y.rows, kProjectedDim);
    FloatRows q = kShape.gated ? pass.arena.Rows(y.rows, kQueryDim) : projected;
    FloatRows k = pass.arena.Rows(rows, kKvDim);
    FloatRows v = pass.arena.Rows(rows, kKvDim);
    FloatRows mixed = pass.arena.Rows(y.rows, kQueryDim);
    float* const scratch = pass.arena.Memory(MixScratchFloats(pass.team.threads()));
    const MatMulTask projections[] = {{&w.q, projected, batch.out_rows}, {&w.k, k}, {&w.v, v}};
    pass.Multiply(std::span(projections).first(kHasValues ? 3 : 2), x);
    const auto prepare_queries = [&](size_t begin, size_t end) {
      const FloatRows queries = q.Slice(begin, end - begin);
      NormHeads(w.q_norm, Heads(projected, begin, end), Heads(q, begin, end), pass.norm_epsilon);
      if constexpr (kRotates) RotateQueries(shared.angles, batch.out_rows, begin, queries);
    };
    constexpr size_t kPrepared = kQueryDim + 4 * kKvDim;  // storing rows costs extra
    pass.team.Run(rows, RowsOfChunk(kPrepared), [&](const Share& share) {
      const auto [begin, end, thread] = share;
      if (batch.out_rows == nullptr) prepare_queries(begin, end);
      const FloatRows keys = k.Slice(begin, end - begin);
      const FloatRows key_heads(keys.data, keys.rows * kKvHeads, kHeadDim);
      if constexpr (kShape.v_norm) {
        const FloatRows value_heads(v.Slice(begin, end - begin).data, key_heads.rows, kHeadDim);
        RmsNorm(kHasValues ? value_heads : key_heads, kOnes.data(), pass.norm_epsilon, value_heads);
      }
      NormHeads(w.k_norm, key_heads, key_heads, pass.norm_epsilon);
      if constexpr (kRotates) {
        ApplyRope(shared.angles.Slice(begin, end - begin), keys, kPairs, kHeadDim);
      }
      Store(batch.segments, k, v, begin, end, scratch + thread * kHeadDim);
    });
    if (y.rows == 0) return;
    if (batch.out_rows != nullptr) ForRows(pass.team, y.rows, kQueryDim, prepare_queries);
    absl::InlinedVector<AttentionSegment, 8> segments;
    for (const Segment<KvBlocks>& segment : batch.segments) {
      segments.push_back({.q = q.Slice(segment.out_row, segment.out_rows),
                          .first_position = segment.OutPosition(),
                          .kv = segment.storage->view(),
                          .y = mixed.Slice(segment.out_row, segment.out_rows)});
    }
    Attention(kParams, segments, scratch, pass.team);
    const Operand attended =
        pass.MakeOperand(mixed, OperandForms::For({&w.output}), [&](size_t begin, size_t end) {
          if constexpr (kShape.gated) {
            const FloatRows gates = Heads(projected, begin, end, kHeadDim);
            Logistic(gates);
            Multiply(Heads(mixed, begin, end), gates, Heads(mixed, begin, end));
          }
        });
    pass.Multiply(w.output, attended, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return (kShape.gated ? 2 : 1) * Arena::Floats(size.rows, kQueryDim) +
           Arena::Floats(size.rows, kProjectedDim) + 2 * Arena::Floats(size.rows, kKvDim) +
           Arena::Floats(1, MixScratchFloats(size.threads)) +
           Pass::OperandFloats(size.rows, kQueryDim);
  }

  static TokenWork Work(const Weights& w) {
    TokenWork work;
    for (const PackedMatrix* m : {&w.q, &w.k, &w.v, &w.output}) work += WorkOf(*m);
    return work;  // an empty matrix has none
  }

  static std::string Describe() {
    return absl::StrCat(
        kShape.bidirectional ? "bidirectional " : "", kShape.gated ? "gated " : "",
        kWindow == 0 ? "full attention" : absl::StrCat("sliding attention ", kWindow), ": ", kHeads,
        " heads of ", kHeadDim, ", ", kKvHeads, " kv", kHasValues ? "" : ", values are keys");
  }

 private:
  // The weight of a norm without one.
  static constexpr std::array<float, kHeadDim> kOnes = [] {
    std::array<float, kHeadDim> ones{};
    ones.fill(1.0f);
    return ones;
  }();

  // Files say which angles do not turn by what angles are divided by: 1, or so much that nothing is
  // left. The config has said it already; other numbers are of another model.
  template <class Binder>
  static void BindAngleDivisors(LayerBinder<Binder>& b) {
    std::vector<float> divisors(kHeadDim / 2, 1e30f);
    std::fill_n(divisors.begin(), kTurning, 1.0f);
    b.ModelConstants("rope_freqs.weight", divisors);
  }

  // Serves both storing and attention.
  static constexpr size_t MixScratchFloats(size_t threads) {
    return std::max(AttentionScratchFloats(kHeads, kKvHeads, kHeadDim, threads),
                    threads * kHeadDim);
  }

  // The heads of the rows [begin, end) of queries [rows, kQueryDim] or projections [rows,
  // kProjectedDim]: of each the kHeadDim elements from `first` on.
  static FloatRows Heads(FloatRows x, size_t begin, size_t end, size_t first = 0) {
    return {x.Slice(begin, end - begin).data + first, (end - begin) * kHeads, kHeadDim,
            x.cols / kHeads};
  }

  // Normalises heads of queries or keys, if the layer does.
  static void NormHeads(const std::vector<float>& norm, ConstFloatRows x, FloatRows y,
                        float epsilon) {
    if constexpr (kShape.qk_norm) RmsNorm(x, norm.data(), epsilon, y);
  }

  // `queries` holds the outputs from `first` on.
  static void RotateQueries(ConstFloatRows angles, const int32_t* out_rows, size_t first,
                            FloatRows queries) {
    if (out_rows == nullptr) {
      return ApplyRope(angles.Slice(first, queries.rows), queries, kPairs, kHeadDim);
    }
    for (size_t r = 0; r < queries.rows; ++r) {
      ApplyRope(angles.Slice(static_cast<size_t>(out_rows[first + r]), 1), queries.Slice(r, 1),
                kPairs, kHeadDim);
    }
  }

  // Stores the keys and values of the batch's rows [first, last).
  static void Store(absl::Span<const Segment<KvBlocks>> segments, ConstFloatRows k,
                    ConstFloatRows v, size_t first, size_t last, float* scratch) {
    ForSegments(segments, first, last,
                [&](const Segment<KvBlocks>& segment, size_t begin, size_t end) {
                  const size_t row = segment.row + begin;
                  StoreKv(k.Slice(row, end - begin), v.Slice(row, end - begin),
                          segment.position + begin, segment.storage->view(), scratch);
                });
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_

// What attention computes for its queries, whoever has stored the keys and values.
#ifndef INLAY_GEMMA_LIKE_LAYERS_ATTENTION_QUERIES_H_
#define INLAY_GEMMA_LIKE_LAYERS_ATTENTION_QUERIES_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/rank_share.h"
#include "cache/kv_blocks.h"
#include "cache/layers/attention.h"
#include "configs/layers/attention.h"
#include "gemma_like/layer_kind.h"
#include "ops/attention/attention.h"
#include "ops/attention/kv_shape.h"
#include "ops/row_ops.h"

namespace inlay {

template <AttentionShape kShape, Rope kRope, int kWindow>
struct AttentionQueries {
  static constexpr size_t kHeads = kShape.heads;
  static constexpr size_t kKvHeads = kShape.kv_heads;
  static constexpr size_t kHeadDim = kShape.head_dim;
  static_assert(kHeadDim <= kMaxHeadDim);
  static constexpr size_t kQueryDim = kHeads * kHeadDim;
  static constexpr bool kRotates = kRope.base != 0;
  static constexpr size_t kRotated = AttentionMixer<kShape, kRope, kWindow>::kRotated;
  static constexpr size_t kTurning = AttentionMixer<kShape, kRope, kWindow>::kTurning;
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

  // The heads that this rank computes and, in the rows that it attends to, stores; and whether they
  // are a part of the layer's.
  struct OwnHeads {
    PartRange queries;
    size_t kv = 0;
    bool is_part = false;

    PartRange Columns() const { return {queries.first * kHeadDim, queries.count * kHeadDim}; }
  };
  static OwnHeads HeadsOf(const Pass& pass) {
    const RankShare share = pass.share();
    const size_t units = HeadUnits(kShape, share.count);
    if (units == 1) return {{0, kHeads}, kKvHeads, false};
    const PartRange own = PartOfRank(units, share);
    const size_t heads = kHeads / units;
    return {{own.first * heads, own.count * heads}, OwnKvHeads(kShape, share), true};
  }
  // Rows that stay together, of the matrix of queries and of those of keys and values.
  static size_t QueryUnit(RankShare share) {
    const size_t units = HeadUnits(kShape, share.count);
    return units == 1 ? kRankRows : kProjectedDim / units;
  }
  static size_t KvUnit(RankShare share) {
    return HeadUnits(kShape, share.count) == 1 ? kRankRows : kHeadDim;
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

  // The scratch of Attend.
  static constexpr size_t AttendScratchFloats(size_t threads) {
    return AttentionScratchFloats(kHeads, kKvHeads, kHeadDim, threads);
  }

  // Norms and rotates the outputs [begin, end) of some heads: `projected` [outputs, heads *
  // kProjectedHead] to q [outputs, heads * kHeadDim], which is the same memory unless there are
  // gates.
  static void PrepareQueries(const std::vector<float>& norm, const Shared& shared,
                             const int32_t* out_rows, FloatRows projected, FloatRows q,
                             size_t begin, size_t end, float epsilon) {
    NormHeads(norm, Heads(projected, begin, end, kProjectedHead), Heads(q, begin, end, kHeadDim),
              epsilon);
    if constexpr (kRotates) {
      RotateQueries(shared.angles, out_rows, begin, q.Slice(begin, end - begin));
    }
  }

  // y = output * (what the queries q of this rank's heads, and those of other ranks, find in the
  // segments' rows, times the gates of `projected`). `mixed` [outputs, kQueryDim] and `scratch` are
  // overwritten.
  static void Attend(absl::Span<const Segment<KvBlocks>> batch, const OwnHeads& heads, FloatRows q,
                     FloatRows projected, FloatRows mixed, float* scratch,
                     const PackedMatrix& output, FloatRows y, Pass& pass) {
    const PartRange columns = heads.Columns();
    const FloatRows own = mixed.Columns(columns.first, columns.count);
    AttentionParams params = kParams;
    params.heads = heads.queries.count;
    absl::InlinedVector<AttentionSegment, 8> segments;
    for (const Segment<KvBlocks>& segment : batch) {
      segments.push_back({.q = q.Slice(segment.out_row, segment.out_rows),
                          .first_position = segment.OutPosition(),
                          .kv = segment.storage->view(),
                          .y = own.Slice(segment.out_row, segment.out_rows)});
    }
    Attention(params, segments, scratch, pass.team);
    const auto close_gates = [&](size_t begin, size_t end) {
      if constexpr (kShape.gated) {
        const FloatRows gates = Heads(projected, begin, end, kProjectedHead, kHeadDim);
        Logistic(gates);
        for (size_t r = begin; r < end; ++r) {
          const FloatRows row(own.Row(r), heads.queries.count, kHeadDim);
          Multiply(row, gates.Slice((r - begin) * row.rows, row.rows), row);
        }
      }
    };
    const OperandForms forms = OperandForms::For({&output});
    const RankSplit split{.unit = kQueryDim / HeadUnits(kShape, pass.share().count)};
    const Operand attended = pass.MakeOperandOfParts(mixed, split, forms, close_gates);
    pass.Multiply(output, attended, y);
  }

  // The products with the layer's input, some of which may be of empty matrices, and with what
  // attention gives.
  static TokenWork WorkOfAttention(std::initializer_list<const PackedMatrix*> projections,
                                   const PackedMatrix& output, RankShare share) {
    const bool is_part = HeadUnits(kShape, share.count) > 1;
    TokenWork work = is_part ? WorkOf(projections) : WorkOfGathered(projections);
    if (is_part) work += WorkOfOperand(output);
    work += WorkOfGathered({&output});
    return work;
  }

  // Normalises heads of queries or keys, if the layer does.
  static void NormHeads(const std::vector<float>& norm, ConstFloatRows x, FloatRows y,
                        float epsilon) {
    if constexpr (kShape.qk_norm) RmsNorm(x, norm.data(), epsilon, y);
  }

  // Files say which angles do not turn by what angles are divided by: 1, or so much that nothing is
  // left. The config has said it already; other numbers are of another model.
  template <class Binder>
  static void BindAngleDivisors(LayerBinder<Binder>& b) {
    std::vector<float> divisors(kHeadDim / 2, 1e30f);
    std::fill_n(divisors.begin(), kTurning, 1.0f);
    b.ModelConstants("rope_freqs.weight", divisors);
  }

  // "full attention: 8 heads of 256, 4 kv".
  static std::string DescribeHeads() {
    return absl::StrCat(
        kShape.bidirectional ? "bidirectional " : "", kShape.gated ? "gated " : "",
        kWindow == 0 ? "full attention" : absl::StrCat("sliding attention ", kWindow), ": ", kHeads,
        " heads of ", kHeadDim, ", ", kKvHeads, " kv");
  }

 private:
  // The heads of the rows [begin, end), which have `each` elements a head: of each the kHeadDim
  // elements from `first` on.
  static FloatRows Heads(FloatRows x, size_t begin, size_t end, size_t each, size_t first = 0) {
    assert(x.stride == x.cols);
    return {x.Slice(begin, end - begin).data + first, (end - begin) * (x.cols / each), kHeadDim,
            each};
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
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_ATTENTION_QUERIES_H_

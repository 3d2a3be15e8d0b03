// Attention: projections, head norms, rotation, storing of keys and values, attention.
#ifndef INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_
#define INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/layers/attention.h"
#include "configs/layers/attention.h"
#include "gemma_like/layer_kind.h"
#include "ops/attention.h"
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

  struct Weights {
    PackedMatrix q;             // [kQueryDim, model_dim]
    PackedMatrix k;             // [kKvDim, model_dim]
    PackedMatrix v;             // as k
    PackedMatrix output;        // [model_dim, kQueryDim]
    std::vector<float> q_norm;  // [kHeadDim], empty without qk_norm
    std::vector<float> k_norm;  // likewise
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.q = b.Matrix("attn_q.weight", kQueryDim, b.model_dim());
    w.k = b.Matrix("attn_k.weight", kKvDim, b.model_dim());
    w.v = b.Matrix("attn_v.weight", kKvDim, b.model_dim());
    w.output = b.Matrix("attn_output.weight", b.model_dim(), kQueryDim, TensorUse::kBranchEnd);
    if constexpr (kShape.qk_norm) {
      w.q_norm = b.Vector("attn_q_norm.weight", TensorUse::kNorm, kHeadDim);
      w.k_norm = b.Vector("attn_k_norm.weight", TensorUse::kNorm, kHeadDim);
    }
  }

  static void AddInputs(const Weights& w, InputMatrices& matrices) {
    matrices.Add({&w.q, &w.k, &w.v});
  }

  struct Shared {
    FloatRows angles;  // [rows, kHeadDim], the rotations of the batch's positions
  };

  static constexpr size_t SharedFloats(size_t rows) {
    return kRotates ? Arena::Floats(rows, kHeadDim) : 0;
  }

  static Shared MakeShared(absl::Span<const SegmentRows> segments, size_t rows, Pass& pass) {
    Shared shared;
    if constexpr (kRotates) {
      shared.angles = pass.arena.Rows(rows, kHeadDim);
      for (const SegmentRows& segment : segments) {
        ForRows(pass.pool, segment.rows, [&](size_t begin, size_t end) {
          RopeAngles(segment.position + begin, kRope.base, kRope.scale,
                     shared.angles.Slice(segment.row + begin, end - begin));
        });
      }
    }
    return shared;
  }

  static void Forward(const Weights& w, const Shared& shared, const Batch<KvBlocks>& batch,
                      MatMulInput& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.floats().rows;
    FloatRows q = pass.arena.Rows(y.rows, kQueryDim);
    FloatRows k = pass.arena.Rows(rows, kKvDim);
    FloatRows v = pass.arena.Rows(rows, kKvDim);
    FloatRows mixed = pass.arena.Rows(y.rows, kQueryDim);
    const MatMulTask projections[] = {{&w.q, q, batch.out_rows}, {&w.k, k}, {&w.v, v}};
    MatMul(projections, std::size(projections), x, pass.pool);
    const auto prepare_keys = [&](size_t begin, size_t end) {
      const FloatRows keys = k.Slice(begin, end - begin);
      NormHeads(w.k_norm, kKvHeads, keys, pass.norm_epsilon);
      if constexpr (kRotates) ApplyRope(shared.angles.Slice(begin, end - begin), keys);
    };
    const auto prepare_queries = [&](size_t begin, size_t end) {
      const FloatRows queries = q.Slice(begin, end - begin);
      NormHeads(w.q_norm, kHeads, queries, pass.norm_epsilon);
      if constexpr (kRotates) RotateQueries(shared.angles, batch.out_rows, begin, queries);
    };
    if (batch.out_rows == nullptr) {
      ForRows(pass.pool, rows, [&](size_t begin, size_t end) {
        prepare_queries(begin, end);
        prepare_keys(begin, end);
      });
    } else {
      ForRows(pass.pool, rows, prepare_keys);
      ForRows(pass.pool, y.rows, prepare_queries);
    }
    for (const Segment<KvBlocks>& segment : batch.segments) {
      Attend(segment, q, k, v, mixed, pass.pool);
    }
    if (y.rows == 0) return;
    pass.inner.Set(mixed);
    MatMul(w.output, pass.inner, y, pass.pool);
  }

  static constexpr size_t ScratchFloats(size_t rows, size_t) {
    return 2 * Arena::Floats(rows, kQueryDim) + 2 * Arena::Floats(rows, kKvDim);
  }
  static constexpr size_t InnerCols() { return kQueryDim; }

  static TokenWork Work(const Weights& w) {
    TokenWork work;
    for (const PackedMatrix* m : {&w.q, &w.k, &w.v, &w.output}) work += WorkOf(*m);
    return work;
  }

  static std::string Describe() {
    return absl::StrCat(
        kWindow == 0 ? "full attention" : absl::StrCat("sliding attention ", kWindow), ": ", kHeads,
        " heads of ", kHeadDim, ", ", kKvHeads, " kv");
  }

 private:
  // Normalises each head of each row of queries or keys, if the layer does.
  static void NormHeads(const std::vector<float>& norm, size_t heads, FloatRows x, float epsilon) {
    if constexpr (kShape.qk_norm) {
      const FloatRows by_head(x.data, x.rows * heads, kHeadDim);
      RmsNorm(by_head, norm.data(), epsilon, by_head);
    }
  }

  // `queries` are the outputs from `first` on.
  static void RotateQueries(ConstFloatRows angles, const int32_t* out_rows, size_t first,
                            FloatRows queries) {
    if (out_rows == nullptr) return ApplyRope(angles.Slice(first, queries.rows), queries);
    for (size_t r = 0; r < queries.rows; ++r) {
      ApplyRope(angles.Slice(static_cast<size_t>(out_rows[first + r]), 1), queries.Slice(r, 1));
    }
  }

  // Stores the segment's keys and values, then mixes its outputs.
  static void Attend(const Segment<KvBlocks>& segment, ConstFloatRows q, ConstFloatRows k,
                     ConstFloatRows v, FloatRows mixed, ThreadPool& pool) {
    constexpr AttentionParams kParams{.heads = kHeads,
                                      .scale = static_cast<float>(kShape.Scale()),
                                      .soft_cap = kShape.soft_cap,
                                      .window = kWindow};
    const KvView kv = segment.storage->view();
    ForRows(pool, segment.rows, [&](size_t begin, size_t end) {
      const size_t row = segment.row + begin;
      StoreKv(k.Slice(row, end - begin), v.Slice(row, end - begin), segment.position + begin, kv);
    });
    if (segment.out_rows == 0) return;
    Attention(kParams, q.Slice(segment.out_row, segment.out_rows), segment.OutPosition(), kv,
              mixed.Slice(segment.out_row, segment.out_rows), pool);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_

// Attention: projections, head norms, rotation, storing of keys and values, attention.
#ifndef INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_
#define INLAY_GEMMA_LIKE_LAYERS_ATTENTION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/layers/attention.h"
#include "configs/layers/attention.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/attention_queries.h"
#include "ops/attention/attention.h"
#include "ops/row_ops.h"

namespace inlay {

template <AttentionShape kShape, Rope kRope, int kWindow>
struct LayerKind<AttentionMixer<kShape, kRope, kWindow>>
    : AttentionQueries<kShape, kRope, kWindow> {
  using Queries = AttentionQueries<kShape, kRope, kWindow>;
  using Queries::kHeadDim, Queries::kKvHeads, Queries::kProjectedDim, Queries::kQueryDim;
  using Queries::kRotates;
  using typename Queries::Shared;
  static constexpr size_t kKvDim = kKvHeads * kHeadDim;
  static constexpr bool kHasValues = !kShape.values_are_keys;  // a matrix for them

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
    const size_t q_unit = Queries::QueryUnit(b.share()), kv_unit = Queries::KvUnit(b.share());
    const size_t holders = KvHolders(kShape, b.share().count);
    std::vector<StackedMatrix> projections = {{"attn_q.weight", kProjectedDim, q_unit},
                                              {"attn_k.weight", kKvDim, kv_unit, holders}};
    if constexpr (kHasValues) projections.push_back({"attn_v.weight", kKvDim, kv_unit, holders});
    std::vector<PackedMatrix> qkv =
        b.Stacked("attn_qkv.weight", std::move(projections), b.model_dim());
    w.q = std::move(qkv[0]);
    w.k = std::move(qkv[1]);
    if constexpr (kHasValues) w.v = std::move(qkv[2]);
    w.output = b.Matrix("attn_output.weight", b.model_dim(), kQueryDim, TensorUse::kBranchEnd);
    if constexpr (kShape.qk_norm) {
      w.q_norm = b.Vector("attn_q_norm.weight", TensorUse::kNorm, kHeadDim);
      w.k_norm = b.Vector(
          "attn_k_norm.weight",
          kShape.query_scalar == 1 ? TensorUse::kUndividedKeyNorm : TensorUse::kNorm, kHeadDim);
    }
    if constexpr (kRope.proportional) Queries::BindAngleDivisors(b);
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

  static void Forward(const Weights& w, const Shared& shared, const Batch<KvBlocks>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const size_t rows = x.rows();
    const auto heads = Queries::HeadsOf(pass);
    const size_t query_dim = heads.queries.count * kHeadDim, kv_dim = heads.kv * kHeadDim;
    FloatRows projected = pass.arena.Rows(y.rows, heads.queries.count * Queries::kProjectedHead);
    FloatRows q = kShape.gated ? pass.arena.Rows(y.rows, query_dim) : projected;
    FloatRows k = pass.arena.Rows(rows, kv_dim);
    FloatRows v = pass.arena.Rows(rows, kv_dim);
    FloatRows mixed = pass.arena.Rows(y.rows, kQueryDim);
    float* const scratch = pass.arena.Memory(MixScratchFloats(pass.team.threads()));
    const MatMulTask projections[] = {{&w.q, projected, batch.out_rows}, {&w.k, k}, {&w.v, v}};
    const auto products = std::span(projections).first(kHasValues ? 3 : 2);
    heads.is_part ? pass.MultiplyOwn(products, x) : pass.Multiply(products, x);
    const auto prepare_queries = [&](size_t begin, size_t end) {
      Queries::PrepareQueries(w.q_norm, shared, batch.out_rows, projected, q, begin, end,
                              pass.norm_epsilon);
    };
    constexpr size_t kPrepared = kQueryDim + 4 * kKvDim;  // storing rows costs extra
    pass.team.Run(rows, RowsOfChunk(kPrepared), [&](const Share& share) {
      const auto [begin, end, thread] = share;
      if (batch.out_rows == nullptr) prepare_queries(begin, end);
      const FloatRows keys = k.Slice(begin, end - begin);
      const FloatRows key_heads(keys.data, keys.rows * heads.kv, kHeadDim);
      if constexpr (kShape.v_norm) {
        const FloatRows value_heads(v.Slice(begin, end - begin).data, key_heads.rows, kHeadDim);
        RmsNorm(kHasValues ? value_heads : key_heads, kOnes.data(), pass.norm_epsilon, value_heads);
      }
      Queries::NormHeads(w.k_norm, key_heads, key_heads, pass.norm_epsilon);
      if constexpr (kRotates) {
        ApplyRope(shared.angles.Slice(begin, end - begin), keys, Queries::kPairs, kHeadDim);
      }
      Store(batch.segments, k, v, begin, end, scratch + thread * kHeadDim);
    });
    if (y.rows == 0) return;
    if (batch.out_rows != nullptr) ForRows(pass.team, y.rows, kQueryDim, prepare_queries);
    Queries::Attend(batch.segments, heads, q, projected, mixed, scratch, w.output, y, pass);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return (kShape.gated ? 2 : 1) * Arena::Floats(size.rows, kQueryDim) +
           Arena::Floats(size.rows, kProjectedDim) + 2 * Arena::Floats(size.rows, kKvDim) +
           Arena::Floats(1, MixScratchFloats(size.threads)) +
           Pass::OperandFloats(size.rows, kQueryDim);
  }

  static TokenWork Work(const Weights& w, RankShare share) {
    return Queries::WorkOfAttention({&w.q, &w.k, &w.v}, w.output, share);
  }

  static std::string Describe() {
    return absl::StrCat(Queries::DescribeHeads(), kHasValues ? "" : ", k = v");
  }

 private:
  // The weight of a norm without one.
  static constexpr std::array<float, kHeadDim> kOnes = [] {
    std::array<float, kHeadDim> ones{};
    ones.fill(1.0f);
    return ones;
  }();

  // Serves both storing and attention.
  static constexpr size_t MixScratchFloats(size_t threads) {
    return std::max(Queries::AttendScratchFloats(threads), threads * kHeadDim);
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

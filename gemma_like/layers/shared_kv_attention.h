// Attention to the keys and values that an earlier layer stores: projection, norm and rotation of
// the queries, attention.
#ifndef INLAY_GEMMA_LIKE_LAYERS_SHARED_KV_ATTENTION_H_
#define INLAY_GEMMA_LIKE_LAYERS_SHARED_KV_ATTENTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/layers/shared_kv_attention.h"
#include "configs/layers/shared_kv_attention.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/attention_queries.h"

namespace inlay {

template <AttentionShape kShape, Rope kRope, int kWindow>
struct LayerKind<SharedKvAttention<AttentionMixer<kShape, kRope, kWindow>>>
    : AttentionQueries<kShape, kRope, kWindow> {
  using Queries = AttentionQueries<kShape, kRope, kWindow>;
  using Queries::kHeadDim, Queries::kQueryDim;
  using typename Queries::Shared;

  struct Weights {
    PackedMatrix q;             // [kQueryDim, model_dim]
    PackedMatrix output;        // [model_dim, kQueryDim]
    std::vector<float> q_norm;  // [kHeadDim], empty without qk_norm
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.q = b.Matrix("attn_q.weight", kQueryDim, Queries::QueryUnit(b.share()), b.model_dim(),
                   TensorUse::kMatrix);
    w.output = b.Matrix("attn_output.weight", b.model_dim(), kQueryDim, TensorUse::kBranchEnd);
    if constexpr (kShape.qk_norm) {
      w.q_norm = b.Vector("attn_q_norm.weight", TensorUse::kNorm, kHeadDim);
    }
    if constexpr (kRope.proportional) Queries::BindAngleDivisors(b);
    // Checkpoints have them, and many files; nothing reads them.
    for (const char* unused : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"}) {
      b.Unused(unused);
    }
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.q}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.q});
    schedule.Add({&w.output});
  }

  static void Forward(const Weights& w, const Shared& shared, const Batch<KvBlocks>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    if (y.rows == 0) return;
    Arena::Scope scope(pass.arena);
    const auto heads = Queries::HeadsOf(pass);
    const FloatRows q = pass.arena.Rows(y.rows, heads.queries.count * kHeadDim);
    const FloatRows mixed = pass.arena.Rows(y.rows, kQueryDim);
    float* const scratch = pass.arena.Memory(Queries::AttendScratchFloats(pass.team.threads()));
    const MatMulTask projection{&w.q, q, batch.out_rows};
    heads.is_part ? pass.MultiplyOwn({&projection, 1}, x) : pass.Multiply({&projection, 1}, x);
    ForRows(pass.team, y.rows, kQueryDim, [&](size_t begin, size_t end) {
      Queries::PrepareQueries(w.q_norm, shared, batch.out_rows, q, q, begin, end,
                              pass.norm_epsilon);
    });
    Queries::Attend(batch.segments, heads, q, q, mixed, scratch, w.output, y, pass);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return 2 * Arena::Floats(size.rows, kQueryDim) +
           Arena::Floats(1, Queries::AttendScratchFloats(size.threads)) +
           Pass::OperandFloats(size.rows, kQueryDim);
  }

  static TokenWork Work(const Weights& w, RankShare share) {
    return Queries::WorkOfAttention({&w.q}, w.output, share);
  }

  static std::string Describe() { return absl::StrCat(Queries::DescribeHeads(), " shared"); }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_SHARED_KV_ATTENTION_H_

// What ranks exchange in a forward pass.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_PASS_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_PASS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/ranks/ranks.h"
#include "ops/matmul/matmul_task.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/quantized_rows.h"
#include "ops/views.h"

namespace inlay {

// Of a quantization block only the quants and the scale are gathered, with which it begins; the
// rest follows from them.
inline constexpr size_t kGatheredBlockBytes = offsetof(QuantizedBlock, scale) + sizeof(float);

// Results of one exchange: enough that the time of starting it does not count.
inline constexpr size_t kExchangeFloats = size_t{1} << 18;

// Which ranks need a product's results.
enum class GatherTo { kAll, kFirst };

// The exchange of one rank with the others, and its memory for it.
class RankPass {
 public:
  // No product has more than `most_cols` results a token.
  RankPass(std::shared_ptr<Ranks> ranks, size_t most_cols);

  Ranks& group() const { return *ranks_; }

  // The same products, of the rows that this rank holds. Valid until the next call.
  std::span<const MatMulTask> OwnRows(std::span<const MatMulTask> tasks);

  // Completes the results of products whose own rows have been computed.
  void Complete(std::span<const MatMulTask> tasks, GatherTo to);

  // Completes the rows of an operand, of which each rank has the columns that `split` gives it, x
  // being its floats: the rounded forms, or the floats if it has none.
  void Complete(const Operand& operand, FloatRows x, RankSplit split) {
    CompleteColumns(operand.quantized(), operand.bf16(), x, split);
  }
  // The same of floats alone.
  void Complete(FloatRows x, RankSplit split) { CompleteColumns({}, {}, x, split); }

  // The numbers of all ranks, each of which calls this with as many: those of the first one, then
  // those of the second, and so on. Valid until the next call.
  absl::Span<const uint64_t> Share(absl::Span<const uint64_t> own);

  // Whether any rank calls this with true.
  bool AnyOf(bool own);

  // Replaces the flags of all ranks by those of the first.
  void Follow(absl::Span<uint8_t> flags);

 private:
  // A row of the results of one product.
  struct Row {
    const MatMulTask* task;
    size_t row;
  };

  // Gathers n things, of which rank r has parts of bytes(r, i) each: writes its own by pack(i, to)
  // and takes those of the others by unpack(r, i, from).
  template <class Bytes, class Pack, class Unpack>
  void Exchange(size_t n, const Bytes& bytes, const Pack& pack, const Unpack& unpack, GatherTo to);
  // The results in rows_.
  void ExchangeRows(GatherTo to);
  void CompleteColumns(QuantizedRows quantized, Bf16Rows bf16, FloatRows x, RankSplit split);

  const std::shared_ptr<Ranks> ranks_;
  std::vector<float> buffer_;  // of one exchange: each rank's results after those of the one before
  std::vector<Row> rows_;      // of one exchange
  std::vector<size_t> sizes_;  // [ranks], in bytes
  std::vector<MatMulTask> own_;
  std::vector<uint64_t> shared_;  // of one Share
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_PASS_H_

// A group of processes that compute one model together.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANKS_H_
#define INLAY_GEMMA_LIKE_RANKS_RANKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/rank_share.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/matmul/quantized_rows.h"

namespace inlay {

// Each rank holds some output rows of every large matrix and computes these; the results are
// gathered, never summed, so that every bit is that of one process.
//
// Collectives are called by all ranks in the same order, and by one thread of each at a time. One
// that cannot be completed, or not within a deadline where it has one, ends all ranks with a
// sentence, as they can no longer agree.
class Ranks {
 public:
  // How long the others may take. kPass: the pass's deadline. kNone: no deadline, where one waits
  // for a user or for a file. kPassAtFirst: none, but the pass's at rank 0, whose file the others
  // wait for.
  enum class Deadline { kPass, kNone, kPassAtFirst };

  virtual ~Ranks() = default;

  size_t rank() const { return rank_; }
  size_t count() const { return count_; }
  // Passes of at least so many tokens look before each layer whether they were cancelled, which
  // costs a broadcast; shorter ones take less time than is worth that.
  static constexpr size_t kCancelRows = 16;
  size_t cancel_rows() const { return cancel_rows_; }
  // A part of a saved conversation goes from rank to rank in pieces of so many bytes.
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  size_t piece_bytes() const { return piece_bytes_; }

  // Replaces the bytes of all ranks by those of rank 0.
  virtual void Broadcast(absl::Span<char> bytes, Deadline deadline = Deadline::kPass) = 0;

  // `all` has sizes[r] bytes of each rank r, in their order. Each rank has written its own; the
  // others' are filled in, everywhere or, by GatherToFirst, at rank 0.
  virtual void Gather(absl::Span<const size_t> sizes, char* all,
                      Deadline deadline = Deadline::kPass) = 0;
  virtual void GatherToFirst(absl::Span<const size_t> sizes, char* all,
                             Deadline deadline = Deadline::kPass) = 0;

  // Ends all ranks, with this sentence on the standard error stream.
  [[noreturn]] void Fail(absl::string_view sentence) {
    End(sentence);
    std::abort();
  }

 protected:
  Ranks(size_t rank, size_t count, size_t cancel_rows = kCancelRows,
        size_t piece_bytes = kPieceBytes)
      : rank_(rank), count_(count), cancel_rows_(cancel_rows), piece_bytes_(piece_bytes) {}

  // Fail, which does not return.
  virtual void End(absl::string_view sentence) = 0;

 private:
  const size_t rank_;
  const size_t count_;
  const size_t cancel_rows_;
  const size_t piece_bytes_;
};

inline RankShare ShareOf(const Ranks* ranks) {
  return ranks == nullptr ? RankShare() : RankShare{ranks->rank(), ranks->count()};
}

// Rows of a matrix that stay together, where nothing else is said: whole tiles, whose results, as
// the columns of an operand, are whole quantization blocks.
inline constexpr size_t kRankRows = 32;
static_assert(kRankRows % kTileRows == 0 && kRankRows % kQuantBlock == 0);

// The rows of a matrix that a rank holds, in units of rows that stay together. A matrix of fewer
// units than ranks is held by each of them: it costs less than a collective.
constexpr PartRange RowsOfRank(size_t rows, RankShare share, size_t unit = kRankRows) {
  const PartRange units = PartOfRank((rows + unit - 1) / unit, share);
  const size_t first = units.first * unit;
  return {first, std::min(rows, first + units.count * unit) - first};
}

// How ranks share the columns of an operand: of each of `spans` equal parts of them, one after the
// other, a rank has those that RowsOfRank gives it in such units.
struct RankSplit {
  size_t unit = kRankRows;
  size_t spans = 1;

  constexpr PartRange Columns(size_t cols, RankShare share) const {
    return RowsOfRank(cols / spans, share, unit);
  }
  // Whether a rank has all columns: there is nothing to gather then.
  constexpr bool IsWhole(size_t cols, RankShare share) const {
    return spans * Columns(cols, share).count == cols;
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANKS_H_

// Saves and loads a conversation of which each rank holds a part.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_SAVE_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_SAVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "cache/kv_cache.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// The layers of all ranks' parts as one stream of bytes, which the first rank writes or reads:
//
//   sizes   uint64 of each rank's part, in bytes; checksum
//   parts   one after the other, each as KVCache::SavePart writes it
//
// Each part goes to or from its rank in pieces, so that no rank needs memory for a whole one. Ranks
// make the same number of collectives whatever fails: an error at one is an error at all, after the
// last piece.
class PartTransfer {
 public:
  // May throw std::bad_alloc; Save and Load need no memory beside the layers'.
  explicit PartTransfer(Ranks& ranks);

  // Called by all ranks, each with its copy of the conversation. `sink` is the first rank's, null
  // at the others; only there errors are returned, which are those of the sink.
  absl::Status Save(const KVCache& cache, uint64_t seed, ByteSink* sink);

  // At the first rank: reads the sizes that Load needs. DataLoss when they cannot be right.
  static absl::StatusOr<std::vector<uint64_t>> ReadSizes(const Ranks& ranks, uint64_t seed,
                                                         ByteSource& source);

  // Called by all ranks, each with its copy of an unused conversation, which gets these tokens.
  // `source` is the first rank's, null at the others. The same error at all ranks when it fails at
  // one of them; the copies can only be destroyed then.
  absl::Status Load(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                    absl::Span<const uint64_t> sizes, ByteSource* source);

 private:
  class PieceSink;
  class PieceSource;
  // How a rank's part was loaded.
  struct Outcome {
    uint64_t rewind_floor = 0;
    absl::StatusCode code = absl::StatusCode::kOk;
    std::array<char, 500> message = {};  // its beginning, before at least one zero
  };

  bool IsFirst() const { return ranks_.rank() == 0; }
  size_t piece_bytes() const { return ranks_.piece_bytes(); }
  // Moves a piece of rank r's part to the first rank, or from it. The latter says whether it could
  // be read.
  void Gather(size_t r, size_t bytes);
  void Broadcast(size_t bytes, bool& is_read);
  absl::Status LoadOwn(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                       ByteSource& source);
  // The first error of any rank. Without one, the copies of the conversation can be rewound equally
  // far from then on: which of the rows before its end were saved may differ.
  absl::Status Agree(const absl::Status& own, KVCache& cache);

  Ranks& ranks_;
  std::vector<char> piece_;    // and a byte that says whether it was read
  std::vector<size_t> sizes_;  // of a collective
  std::vector<uint64_t> part_sizes_;
  std::vector<Outcome> outcomes_;  // of each rank
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_SAVE_H_

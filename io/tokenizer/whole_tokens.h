// Which tokens' own texts are encoded as that token.
#ifndef INLAY_IO_TOKENIZER_WHOLE_TOKENS_H_
#define INLAY_IO_TOKENIZER_WHOLE_TOKENS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace inlay {

// Filled in as such words are encoded, so that each is merged once only. Thread-safe.
class WholeTokens {
 public:
  explicit WholeTokens(size_t tokens) : whole_(tokens) {}

  // Whether the text of token `id` is known to be encoded as this token alone.
  bool Has(int32_t id) const { return whole_[id].load(std::memory_order_relaxed); }

  // Notes what the text of token `id` was encoded as.
  void Note(int32_t id, absl::Span<const int32_t> ids) {
    if (ids.size() == 1 && ids[0] == id) whole_[id].store(true, std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<bool>> whole_;  // by id
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_WHOLE_TOKENS_H_

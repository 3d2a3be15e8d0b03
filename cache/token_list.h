// A list of tokens whose copies share memory until one of them changes.
#ifndef INLAY_CACHE_TOKEN_LIST_H_
#define INLAY_CACHE_TOKEN_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace inlay {

// As with BlockRef, one thread at a time may use a list, but lists that share memory may be used
// concurrently. (std::shared_ptr is not enough: its use_count() does not synchronise with other
// owners, so it cannot tell whether writing is safe.)
class TokenList {
 public:
  TokenList() = default;
  explicit TokenList(std::vector<int32_t> tokens)
      : shared_(new Shared{.tokens = std::move(tokens)}) {}
  TokenList(const TokenList& other) : shared_(other.shared_) {
    if (shared_ != nullptr) shared_->references.fetch_add(1, std::memory_order_relaxed);
  }
  TokenList(TokenList&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  TokenList& operator=(TokenList other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~TokenList() {
    // Release: this owner's reads happen before the writes of the last owner.
    if (shared_ != nullptr && shared_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete shared_;
  }

  absl::Span<const int32_t> view() const {
    return shared_ == nullptr ? absl::Span<const int32_t>() : absl::MakeConstSpan(shared_->tokens);
  }
  size_t size() const { return view().size(); }

  // `tokens` may be some of the list's own.
  void Append(absl::Span<const int32_t> tokens) {
    std::vector<int32_t> copy;
    if (std::less_equal<>()(view().data(), tokens.data()) &&
        std::less<>()(tokens.data(), view().data() + size())) {
      copy.assign(tokens.begin(), tokens.end());
      tokens = copy;
    }
    std::vector<int32_t>& own = Own(size());
    own.insert(own.end(), tokens.begin(), tokens.end());
  }

  // Drops the tokens from index `size` on, which must not be greater than size().
  void Truncate(size_t size) {
    if (size < this->size()) Own(size).resize(size);
  }

 private:
  struct Shared {
    std::atomic<size_t> references{1};
    std::vector<int32_t> tokens;
  };

  // The tokens in memory that no other list shares, with at least the first `kept` of them.
  std::vector<int32_t>& Own(size_t kept) {
    if (shared_ == nullptr || shared_->references.load(std::memory_order_acquire) != 1) {
      const absl::Span<const int32_t> old = view().first(kept);
      *this = TokenList(std::vector<int32_t>(old.begin(), old.end()));
    }
    return shared_->tokens;
  }

  Shared* shared_ = nullptr;
};

}  // namespace inlay

#endif  // INLAY_CACHE_TOKEN_LIST_H_

#include "cache/kv_cache.h"

#include <cassert>

#include "absl/strings/str_cat.h"

namespace inlay {

absl::StatusOr<Transaction> KVCache::Begin(absl::Span<const int32_t> tokens) {
  if (open_) return absl::FailedPreconditionError("the cache has an open transaction already");
  if (tokens.empty() || tokens.size() > max_append_) {
    return absl::InvalidArgumentError(
        absl::StrCat("an append of ", tokens.size(), " tokens is not between 1 and ", max_append_));
  }
  if (tokens.size() > max_length_ - length()) {
    return absl::OutOfRangeError(absl::StrCat("the conversation has ", length(),
                                              " tokens and cannot take ", tokens.size(),
                                              " more: its limit is ", max_length_));
  }
  if (absl::Status status = PrepareLayers(tokens.size()); !status.ok()) return status;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  open_ = true;
  return Transaction(this);
}

absl::Status KVCache::Rewind(size_t position) {
  if (open_)
    return absl::FailedPreconditionError("the cache cannot be rewound while a transaction is open");
  if (position > length()) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position,
                                              ": the conversation has ", length(), " tokens"));
  }
  if (position == length()) return absl::OkStatus();
  if (position < RewindFloor()) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position,
                                              ": what is kept of the ", length(),
                                              " tokens reaches back to ", RewindFloor()));
  }
  TruncateLayers(position);
  length_ = position;
  tokens_.resize(position);
  return absl::OkStatus();
}

void Transaction::Commit() {
  assert(cache_ != nullptr && "a transaction can be committed once");
  cache_->CommitLayers(cache_->tokens_.size());
  cache_->length_ = cache_->tokens_.size();
  cache_->open_ = false;
  cache_ = nullptr;
}

Transaction::~Transaction() {
  if (cache_ == nullptr) return;
  cache_->AbortLayers();
  cache_->tokens_.resize(cache_->length_);
  cache_->open_ = false;
}

}  // namespace inlay

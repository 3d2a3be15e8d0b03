#include "io/store/state_store_memory.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace inlay {

class MemoryStateWriter final : public StateWriter {
 public:
  MemoryStateWriter(MemoryStore& store, absl::string_view key, StateTag replaced)
      : store_(store), key_(key), replaced_(replaced) {}

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    auto state = std::make_shared<const std::vector<uint8_t>>(std::move(bytes_));
    std::lock_guard<std::mutex> lock(store_.mutex_);
    const auto old = store_.states_.find(key_);
    const bool exists = old != store_.states_.end();
    if (replaced_ != kAnyStateTag && replaced_ != (exists ? old->second.tag : kNoStateTag))
      return StateWasReplaced(key_);
    const uint64_t others = store_.bytes_ - (exists ? old->second.bytes->size() : 0);
    const uint64_t size = state->size();
    if (size > store_.most_bytes_ - others) {
      return absl::ResourceExhaustedError(absl::StrCat("the state '", key_, "' of ", size,
                                                       " bytes has no place beside the others' ",
                                                       others, " of ", store_.most_bytes_));
    }
    store_.states_.insert_or_assign(
        key_, MemoryStore::State{std::move(state), ++store_.last_tag_, store_.now_()});
    store_.bytes_ = others + size;  // only now, as there may have been no memory for the state
    return absl::OkStatus();
  }

 private:
  MemoryStore& store_;
  std::string key_;
  StateTag replaced_;
  std::vector<uint8_t> bytes_;
};

namespace {

class MemoryStateReader final : public StateReader {
 public:
  MemoryStateReader(std::shared_ptr<const std::vector<uint8_t>> bytes, StateTag tag)
      : bytes_(std::move(bytes)), tag_(tag) {}

  absl::Status Read(absl::Span<uint8_t> into) override {
    if (into.size() > remaining()) {
      return absl::OutOfRangeError(absl::StrCat("the state ends after ", bytes_->size(), " bytes; ",
                                                into.size(), " more are needed after ", at_));
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_->data() + at_, into.size());
    at_ += into.size();
    return absl::OkStatus();
  }

  uint64_t remaining() const override { return bytes_->size() - at_; }
  StateTag tag() const override { return tag_; }

 private:
  std::shared_ptr<const std::vector<uint8_t>> bytes_;
  StateTag tag_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StateWriter>> MemoryStore::PutOver(absl::string_view key,
                                                                  StateTag replaced) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  return std::make_unique<MemoryStateWriter>(*this, key, replaced);
}

absl::StatusOr<std::unique_ptr<StateReader>> MemoryStore::Get(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = states_.find(std::string(key));
  if (it == states_.end()) return NoSuchState(key);
  return std::make_unique<MemoryStateReader>(it->second.bytes, it->second.tag);
}

absl::Status MemoryStore::Delete(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = states_.find(std::string(key));
  if (it == states_.end()) return NoSuchState(key);
  Erase(it);
  return absl::OkStatus();
}

void MemoryStore::Erase(States::iterator state) {
  bytes_ -= state->second.bytes->size();
  states_.erase(state);
}

absl::StatusOr<std::vector<std::string>> MemoryStore::List(absl::string_view prefix) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> keys;
  for (auto it = states_.lower_bound(std::string(prefix));
       it != states_.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (keys.size() == kMostListed) return TooManyStates(prefix);
    keys.push_back(it->first);
  }
  return keys;
}

absl::StatusOr<size_t> MemoryStore::Count(absl::string_view prefix) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  for (auto it = states_.lower_bound(std::string(prefix));
       it != states_.end() && absl::StartsWith(it->first, prefix); ++it)
    ++count;
  return count;
}

std::optional<size_t> MemoryStore::KnownCount() {
  std::lock_guard<std::mutex> lock(mutex_);
  return states_.size();
}

absl::Status MemoryStore::MarkUsed(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = states_.find(std::string(key));
  if (it != states_.end()) it->second.used = now_();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryStore::ListUnused(absl::string_view prefix,
                                                                 absl::Duration time) {
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = now_();
  std::vector<std::string> keys;
  for (auto it = states_.lower_bound(std::string(prefix));
       it != states_.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (now - it->second.used >= time) keys.push_back(it->first);
  }
  return keys;
}

absl::Status MemoryStore::DeleteUnused(absl::string_view key, absl::Duration time) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = states_.find(std::string(key));
  if (it != states_.end() && now_() - it->second.used >= time) Erase(it);
  return absl::OkStatus();
}

}  // namespace inlay

#include "io/store/state_store_redis.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/store/redis_connections.h"
#include "io/store/redis_state.h"
#include "io/store/redis_state_list.h"

namespace inlay {
namespace {

constexpr size_t kChunkBytes = RedisManifest::kChunkBytes;
constexpr uint64_t kMaxStateBytes = RedisManifest::kMaxStateBytes;

class RedisStateWriter final : public StateWriter {
 public:
  RedisStateWriter(RedisState state, StateTag replaced)
      : state_(std::move(state)), replaced_(replaced) {
    std::random_device random;
    do {
      manifest_.generation = uint64_t{random()} << 32 | random();
    } while (manifest_.generation == kNoStateTag || manifest_.generation == kAnyStateTag);
    buffer_.reserve(kChunkBytes);
  }
  // Chunks of a state that stays unfinished are deleted. Where memory has ended, they would take
  // what others need until they expire.
  ~RedisStateWriter() override {
    if (flushed_ > 0 && !finished_) state_.Discard(manifest_);
  }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    if (bytes.size() > kMaxStateBytes - manifest_.bytes) {
      return absl::OutOfRangeError(absl::StrCat("state '", state_.key(), "' would have more than ",
                                                kMaxStateBytes, " bytes"));
    }
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kChunkBytes - buffer_.size());
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
      bytes.remove_prefix(n);
      manifest_.bytes += n;
      if (buffer_.size() == kChunkBytes) INLAY_RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    if (!buffer_.empty()) INLAY_RETURN_IF_ERROR(Flush());
    const absl::Status status = state_.Publish(manifest_, replaced_);
    if (!status.ok()) state_.Discard(manifest_);
    finished_ = true;
    return status;
  }

 private:
  absl::Status Flush() {
    INLAY_RETURN_IF_ERROR(state_.PutChunk(manifest_, flushed_++, buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  RedisState state_;
  StateTag replaced_;
  RedisManifest manifest_;  // its bytes so far
  std::vector<uint8_t> buffer_;
  uint64_t flushed_ = 0;  // chunks
  bool finished_ = false;
};

class RedisStateReader final : public StateReader {
 public:
  RedisStateReader(RedisState state, const RedisManifest& manifest)
      : state_(std::move(state)), manifest_(manifest) {}

  absl::Status Read(absl::Span<uint8_t> into) override {
    if (into.size() > remaining()) {
      return absl::OutOfRangeError(absl::StrCat("state '", state_.key(), "' has ", remaining(),
                                                " bytes left; ", into.size(), " are needed"));
    }
    while (!into.empty()) {
      if (at_ == next_chunk_ * kChunkBytes) {
        INLAY_ASSIGN_OR_RETURN(chunk_, state_.GetChunk(manifest_, next_chunk_));
        ++next_chunk_;
      }
      const size_t within = at_ % kChunkBytes;
      const size_t n = std::min(into.size(), chunk_.size() - within);
      std::memcpy(into.data(), chunk_.data() + within, n);
      into.remove_prefix(n);
      at_ += n;
    }
    return absl::OkStatus();
  }

  uint64_t remaining() const override { return manifest_.bytes - at_; }
  StateTag tag() const override { return manifest_.generation; }

 private:
  RedisState state_;
  RedisManifest manifest_;
  std::string chunk_;  // the one before next_chunk_
  uint64_t next_chunk_ = 0;
  uint64_t at_ = 0;
};

class RedisStore final : public StateStore {
 public:
  explicit RedisStore(RedisOptions options)
      : options_(std::move(options)), connections_(options_, RedisState::kMaxReply) {}

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    INLAY_RETURN_IF_ERROR(state.CheckType());
    return std::make_unique<RedisStateWriter>(std::move(state), replaced);
  }

  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    INLAY_ASSIGN_OR_RETURN(const RedisManifest manifest, state.GetManifest());
    return std::make_unique<RedisStateReader>(std::move(state), manifest);
  }

  absl::StatusOr<StateBeginning> ReadBeginning(absl::string_view key, size_t most) override {
    assert(most <= kMostBeginning);
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    return state.ReadBeginning(most);
  }

  absl::Status Delete(absl::string_view key) override {
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    return state.Delete();
  }

  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
    INLAY_ASSIGN_OR_RETURN(const RedisConnections::Lease connection, connections_.Get());
    return ListRedisStates(*connection, options_, prefix);
  }

  absl::StatusOr<size_t> Count(absl::string_view prefix) override {
    INLAY_ASSIGN_OR_RETURN(const RedisConnections::Lease connection, connections_.Get());
    return CountRedisStates(*connection, options_, prefix);
  }

  std::optional<size_t> KnownCount() override { return std::nullopt; }

  absl::Status MarkUsed(absl::string_view key) override {
    if (options_.expiry == absl::ZeroDuration()) return CheckStateKey(key);
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    return state.BeginExpiry();
  }

  // The server deletes them itself.
  absl::StatusOr<std::vector<std::string>> ListUnused(absl::string_view, absl::Duration) override {
    return std::vector<std::string>();
  }
  absl::Status DeleteUnused(absl::string_view, absl::Duration) override { return absl::OkStatus(); }

 private:
  absl::StatusOr<RedisState> Open(absl::string_view key) {
    INLAY_RETURN_IF_ERROR(CheckStateKey(key));
    INLAY_ASSIGN_OR_RETURN(RedisConnections::Lease connection, connections_.Get());
    return RedisState(std::move(connection), options_, key);
  }

  const RedisOptions options_;
  RedisConnections connections_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StateStore>> OpenRedisStore(RedisOptions options) {
  INLAY_RETURN_IF_ERROR(CheckRedisOptions(options));
  return std::make_unique<RedisStore>(std::move(options));
}

absl::Status CheckRedisRights(const RedisOptions& options) {
  INLAY_RETURN_IF_ERROR(CheckRedisOptions(options));
  RedisConnections connections(options, RedisState::kMaxReply);
  INLAY_ASSIGN_OR_RETURN(RedisConnections::Lease connection, connections.Get());
  // No state has a key with a colon.
  return RedisState(std::move(connection), options, ":rights").CheckRights();
}

}  // namespace inlay

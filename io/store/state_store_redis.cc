#include "io/store/state_store_redis.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/gguf/gguf_value.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_connections.h"
#include "io/store/redis_state_list.h"

namespace inlay {
namespace {

// Large enough that the round trips of a chunk do not matter, small enough for a server's buffers.
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kChecksumBytes = sizeof(uint64_t);
// A chunk and what the protocol adds; it also bounds the memory that a server can make this program
// use. A step of a listing, which looks at about 1000 keys of at most 100 characters, is below it.
constexpr size_t kMaxReply = kChunkBytes + kChecksumBytes + 4096;
// No manifest may name more than this: 65536 chunks.
constexpr uint64_t kMaxStateBytes = uint64_t{kChunkBytes} << 16;
constexpr absl::string_view kOrphanSeconds = "3600";
constexpr absl::string_view kProbeSeconds = "60";  // of what CheckRights writes

constexpr uint64_t kMagic = 0x32306e6d79616c6e;  // "nlaymn02"

// A state's manifest, stored as it is in memory and followed by its checksum.
struct Manifest {
  uint64_t magic = kMagic;
  // Random: tells the chunks of a state from those of the one it replaces; the state's tag.
  uint64_t generation = 0;
  uint64_t bytes = 0;

  uint64_t Chunks() const { return (bytes + kChunkBytes - 1) / kChunkBytes; }
  // Of a chunk's data.
  size_t ChunkSize(uint64_t chunk) const {
    return static_cast<size_t>(std::min<uint64_t>(kChunkBytes, bytes - chunk * kChunkBytes));
  }
};

// Scripts run in one step on the server.
// Key: the hash of an unfinished state. Arguments: field, value, seconds. The hash always expires.
constexpr absl::string_view kPutField =
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
    "return redis.call('EXPIRE', KEYS[1], ARGV[3])";
// Keys: the hash of an unfinished state, the state's key, and perhaps the index (see
// RedisIndexKey). Arguments: the fields that it must have, the manifest's field, and the generation
// that the replaced state must have as it is in a manifest, 'none' or 'any', the milliseconds after
// which the state expires, 0: never, and the key for the index. Answers OK; REPLACED when the
// state's key has another state; LOST when the server has evicted the hash or fields of it; or,
// when the state's key holds another type of value, that type. UNLINK frees the replaced state
// without blocking the server.
constexpr absl::string_view kPublish =
    "local kind = redis.call('TYPE', KEYS[2]).ok "
    "if kind ~= 'none' and kind ~= 'hash' then return kind end "
    "if ARGV[3] ~= 'any' then "
    "local manifest = redis.call('HGET', KEYS[2], ARGV[2]) "
    "local found = manifest and string.sub(manifest, 9, 16) or 'none' "
    "if found ~= ARGV[3] then return 'REPLACED' end end "
    "if redis.call('HLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 'LOST' end "
    "if KEYS[3] and redis.call('TYPE', KEYS[3]).ok == 'zset' and "
    "type(redis.pcall('ZADD', KEYS[3], 0, ARGV[5])) == 'table' then "
    "redis.call('UNLINK', KEYS[3]) end "
    "if ARGV[4] == '0' then redis.call('PERSIST', KEYS[1]) "
    "else redis.call('PEXPIRE', KEYS[1], ARGV[4]) end "
    "redis.call('UNLINK', KEYS[2]) "
    "redis.call('RENAME', KEYS[1], KEYS[2]) "
    "return 'OK'";

// Keys: the state's, and perhaps the index. Argument: the key for the index. Answers the number of
// states that were there. The index is allowed to have keys without a state.
constexpr absl::string_view kDelete =
    "local deleted = redis.call('UNLINK', KEYS[1]) "
    "if KEYS[2] then redis.pcall('ZREM', KEYS[2], ARGV[1]) end "
    "return deleted";

// Key: the state's. Arguments: the manifest's field, the first chunk's, and a number of bytes.
// Answers the manifest and up to so many bytes of the chunk after it; false, nil in the protocol,
// where there is no state.
constexpr absl::string_view kReadBeginning =
    "local manifest = redis.call('HGET', KEYS[1], ARGV[1]) "
    "if not manifest then return false end "
    "return manifest .. string.sub(redis.call('HGET', KEYS[1], ARGV[2]) or '', 1, ARGV[3])";

std::string WithChecksum(const void* data, size_t size, uint64_t seed) {
  std::string text(static_cast<const char*>(data), size);
  const uint64_t checksum = Xxh64Of(data, size, seed);
  text.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return text;
}

// `text` has at least kChecksumBytes bytes.
bool ChecksumAgrees(absl::string_view text, uint64_t seed) {
  uint64_t checksum = 0;
  const size_t size = text.size() - kChecksumBytes;
  std::memcpy(&checksum, text.data() + size, kChecksumBytes);
  return checksum == Xxh64Of(text.data(), size, seed);
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view key, const std::string& text) {
  Manifest manifest;
  if (text.size() != sizeof(manifest) + kChecksumBytes || !ChecksumAgrees(text, 0)) {
    return absl::DataLossError(
        absl::StrCat("the manifest of state '", key, "' on the server is damaged"));
  }
  std::memcpy(&manifest, text.data(), sizeof(manifest));
  if (manifest.magic != kMagic || manifest.bytes > kMaxStateBytes) {
    return absl::DataLossError(absl::StrCat("the manifest of state '", key,
                                            "' on the server is of another version or of ",
                                            manifest.bytes, " bytes, more than ", kMaxStateBytes));
  }
  return manifest;
}

// One state on the server, over one connection.
class RedisState {
 public:
  RedisState(RedisConnections::Lease connection, const RedisOptions& options, absl::string_view key)
      : connection_(std::move(connection)),
        key_(key),
        server_key_(absl::StrCat(options.prefix, key)),
        index_(RedisIndexKey(options)),
        expiry_(absl::StrCat(absl::ToInt64Milliseconds(options.expiry))) {}

  const std::string& key() const { return key_; }

  // FailedPrecondition when the state's key holds another type of value.
  absl::Status CheckType() {
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply, connection_->Command({"TYPE", server_key_}));
    const absl::string_view type = reply.text;
    return type == "none" || type == "hash" ? absl::OkStatus() : OtherType(type);
  }

  absl::StatusOr<Manifest> GetManifest() {
    INLAY_RETURN_IF_ERROR(CheckType());
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                           connection_->Command({"HGET", server_key_, kManifestField}));
    if (reply.kind == RedisReply::Kind::kNil) return NoSuchState(key_);
    return ParseManifest(key_, reply.text);
  }

  absl::Status PutChunk(const Manifest& manifest, uint64_t chunk, absl::Span<const uint8_t> data) {
    return PutField(manifest, ChunkField(chunk),
                    WithChecksum(data.data(), data.size(), ChunkSeed(manifest, chunk)));
  }

  absl::StatusOr<std::string> GetChunk(const Manifest& manifest, uint64_t chunk) {
    INLAY_ASSIGN_OR_RETURN(RedisReply reply,
                           connection_->Command({"HGET", server_key_, ChunkField(chunk)}));
    const bool is_there = reply.kind == RedisReply::Kind::kText;
    if (!is_there || reply.text.size() != manifest.ChunkSize(chunk) + kChecksumBytes ||
        !ChecksumAgrees(reply.text, ChunkSeed(manifest, chunk))) {
      INLAY_RETURN_IF_ERROR(CheckUnchanged(manifest));
      return ChunkLost(chunk, is_there);
    }
    reply.text.resize(reply.text.size() - kChecksumBytes);
    return std::move(reply.text);
  }

  // See StateStore::ReadBeginning.
  absl::StatusOr<StateBeginning> ReadBeginning(size_t most) {
    const std::string asked = absl::StrCat(most + kChecksumBytes);
    absl::StatusOr<RedisReply> reply = connection_->Command(
        {"EVAL", kReadBeginning, "1", server_key_, kManifestField, ChunkField(0), asked});
    if (absl::IsFailedPrecondition(reply.status())) INLAY_RETURN_IF_ERROR(CheckType());
    INLAY_RETURN_IF_ERROR(reply.status());
    if (reply->kind == RedisReply::Kind::kNil) return NoSuchState(key_);
    if (reply->kind != RedisReply::Kind::kText) return Unexpected("EVAL");
    std::string& text = reply->text;
    constexpr size_t kManifestBytes = sizeof(Manifest) + kChecksumBytes;
    INLAY_ASSIGN_OR_RETURN(const Manifest manifest,
                           ParseManifest(key_, text.substr(0, kManifestBytes)));
    text.erase(0, kManifestBytes);
    if (manifest.bytes == 0) return StateBeginning();
    const size_t chunk = manifest.ChunkSize(0), wanted = std::min(most, chunk);
    // The checksum tells where it is among the bytes: of a short chunk.
    const bool whole = chunk <= most;
    if (text.size() < wanted + (whole ? kChecksumBytes : 0) ||
        (whole && !ChecksumAgrees(text, ChunkSeed(manifest, 0))))
      return ChunkLost(0, /*is_there=*/!text.empty());
    text.resize(wanted);
    return StateBeginning{.bytes = std::move(text), .state_bytes = manifest.bytes};
  }

  // Makes the chunks that were put the state, which expires as the options say, in the place of the
  // one of this tag; Aborted when that is no longer there.
  absl::Status Publish(const Manifest& manifest, StateTag replaced) {
    INLAY_RETURN_IF_ERROR(
        PutField(manifest, kManifestField, WithChecksum(&manifest, sizeof(manifest), 0)));
    INLAY_ASSIGN_OR_RETURN(
        const RedisReply reply,
        EvalIndexed(kPublish, {UnfinishedKey(manifest), server_key_},
                    {absl::StrCat(manifest.Chunks() + 1), std::string(kManifestField),
                     GenerationOf(replaced), expiry_, key_}));
    if (reply.kind != RedisReply::Kind::kText) return Unexpected("EVAL");
    if (reply.text == "OK") return absl::OkStatus();
    if (reply.text == "REPLACED") return StateWasReplaced(key_);
    if (reply.text != "LOST") return OtherType(reply.text);
    return absl::DataLossError(
        absl::StrCat("the server has lost chunks of state '", key_, "' while it was written"));
  }

  // Deletes the chunks that were put, if the server still answers and there is memory to ask it;
  // else they expire.
  void Discard(const Manifest& manifest) noexcept {
    try {
      connection_->Command({"UNLINK", UnfinishedKey(manifest)}).IgnoreError();
    } catch (const std::bad_alloc&) {
    }
  }

  // See CheckRedisRights. No other state may have the key, which the commands write and delete.
  absl::Status CheckRights() {
    const std::string unfinished = UnfinishedKey(Manifest());
    const std::vector<absl::string_view> commands[] = {
        {"EVAL", "return 1", "1", server_key_},
        {"TYPE", server_key_},
        {"HGET", server_key_, kManifestField},
        {"HEXISTS", server_key_, kManifestField},
        {"HLEN", unfinished},
        {"UNLINK", server_key_},
        // Before the key is there, which is to expire in any case.
        {"EXPIRE", unfinished, kProbeSeconds},
        {"HSET", unfinished, "probe", ""},
        {"EXPIRE", unfinished, kProbeSeconds},
        expiry_ == "0" ? std::vector<absl::string_view>{"PERSIST", server_key_}
                       : std::vector<absl::string_view>{"PEXPIRE", server_key_, expiry_},
        {"RENAME", unfinished, server_key_},
        {"UNLINK", server_key_}};
    for (const std::vector<absl::string_view>& command : commands) {
      const absl::Status status = connection_->Command(command).status();
      if (absl::IsPermissionDenied(status)) return MayNotRun(command[0], status);
      if (connection_->broken()) return status;
    }
    // It replies with an array, which is not read here. What a script has no right to do may be any
    // error of it.
    const absl::Status scanned =
        connection_->Command({"EVAL", "redis.call('SCAN', '0', 'COUNT', '1') return 1", "0"})
            .status();
    if (absl::IsPermissionDenied(scanned) || absl::IsInternal(scanned))
      return MayNotRun("SCAN", scanned);
    return connection_->broken() ? scanned : absl::OkStatus();
  }

  absl::Status Delete() {
    INLAY_RETURN_IF_ERROR(CheckType());
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply, EvalIndexed(kDelete, {server_key_}, {key_}));
    if (reply.kind != RedisReply::Kind::kInteger) return Unexpected("EVAL");
    return reply.integer == 0 ? NoSuchState(key_) : absl::OkStatus();
  }

 private:
  // Aborted when the state is no longer the one of this manifest.
  absl::Status CheckUnchanged(const Manifest& manifest) {
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                           connection_->Command({"HGET", server_key_, kManifestField}));
    if (reply.kind == RedisReply::Kind::kNil) return StateWasReplaced(key_);
    INLAY_ASSIGN_OR_RETURN(const Manifest now, ParseManifest(key_, reply.text));
    return now.generation == manifest.generation ? absl::OkStatus() : StateWasReplaced(key_);
  }

  static std::string ChunkField(uint64_t chunk) { return absl::StrCat(chunk); }

  // Depends on the index, so that chunks that were swapped are detected too.
  static uint64_t ChunkSeed(const Manifest& manifest, uint64_t chunk) {
    return manifest.generation + chunk;
  }

  // In a cluster both keys of kPublish must be in one slot. The braces make the slot of this key
  // that of what is between them, unless the prefix of all keys has braces, which then do so for
  // both.
  std::string UnfinishedKey(const Manifest& manifest) const {
    const absl::Hex generation(manifest.generation, absl::kZeroPad16);
    const bool braces = absl::StrContains(server_key_, '{');
    return braces ? absl::StrCat(server_key_, ":", generation)
                  : absl::StrCat("{", server_key_, "}:", generation);
  }

  absl::Status PutField(const Manifest& manifest, absl::string_view field,
                        absl::string_view value) {
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                           connection_->Command({"EVAL", kPutField, "1", UnfinishedKey(manifest),
                                                 field, value, kOrphanSeconds}));
    const bool done = reply.kind == RedisReply::Kind::kInteger && reply.integer == 1;
    return done ? absl::OkStatus() : Unexpected("EVAL");
  }

  // Runs a script whose last key is the index; without that one where the server refuses the keys,
  // as a cluster does that has them in several slots. No index is made there.
  absl::StatusOr<RedisReply> EvalIndexed(absl::string_view script,
                                         const std::vector<std::string>& keys,
                                         const std::vector<std::string>& arguments) {
    absl::StatusOr<RedisReply> reply;
    for (const bool indexed : {true, false}) {
      const std::string count = absl::StrCat(keys.size() + (indexed ? 1 : 0));
      std::vector<absl::string_view> words = {"EVAL", script, count};
      words.insert(words.end(), keys.begin(), keys.end());
      if (indexed) words.push_back(index_);
      words.insert(words.end(), arguments.begin(), arguments.end());
      reply = connection_->Command(words);
      if (!absl::IsInternal(reply.status())) break;
    }
    return reply;
  }

  static std::string GenerationOf(StateTag tag) {
    if (tag == kAnyStateTag) return "any";
    if (tag == kNoStateTag) return "none";
    return std::string(reinterpret_cast<const char*>(&tag), sizeof(tag));
  }

  static absl::Status MayNotRun(absl::string_view command, const absl::Status& why) {
    return absl::PermissionDeniedError(
        absl::StrCat("the user has no right to run ", command, ": ", why.message()));
  }

  absl::Status OtherType(absl::string_view type) const {
    return absl::FailedPreconditionError(absl::StrCat(
        "the key ", QuoteForMessage(server_key_), " on the server holds no state but ",
        "a value of type ", QuoteForMessage(type), "; it is neither read nor replaced"));
  }

  absl::Status ChunkLost(uint64_t chunk, bool is_there) const {
    return absl::DataLossError(absl::StrCat("chunk ", chunk, " of state '", key_,
                                            "' on the server is ", is_there ? "damaged" : "gone"));
  }

  absl::Status Unexpected(absl::string_view command) const {
    return absl::DataLossError(absl::StrCat("the server sent an unexpected answer to ", command,
                                            " for state '", key_, "'"));
  }

  RedisConnections::Lease connection_;
  std::string key_;
  std::string server_key_;
  std::string index_;
  std::string expiry_;  // in milliseconds
};

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
  Manifest manifest_;  // its bytes so far
  std::vector<uint8_t> buffer_;
  uint64_t flushed_ = 0;  // chunks
  bool finished_ = false;
};

class RedisStateReader final : public StateReader {
 public:
  RedisStateReader(RedisState state, const Manifest& manifest)
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
  Manifest manifest_;
  std::string chunk_;  // the one before next_chunk_
  uint64_t next_chunk_ = 0;
  uint64_t at_ = 0;
};

class RedisStore final : public StateStore {
 public:
  explicit RedisStore(RedisOptions options)
      : options_(std::move(options)), connections_(options_, kMaxReply) {}

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    INLAY_RETURN_IF_ERROR(state.CheckType());
    return std::make_unique<RedisStateWriter>(std::move(state), replaced);
  }

  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
    INLAY_ASSIGN_OR_RETURN(RedisState state, Open(key));
    INLAY_ASSIGN_OR_RETURN(const Manifest manifest, state.GetManifest());
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
  RedisConnections connections(options, kMaxReply);
  INLAY_ASSIGN_OR_RETURN(RedisConnections::Lease connection, connections.Get());
  // No state has a key with a colon.
  return RedisState(std::move(connection), options, ":rights").CheckRights();
}

}  // namespace inlay

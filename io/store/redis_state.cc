#include "io/store/redis_state.h"

#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/store/redis_state_list.h"

namespace inlay {
namespace {

constexpr size_t kChecksumBytes = sizeof(uint64_t);
constexpr absl::string_view kOrphanSeconds = "3600";
constexpr absl::string_view kProbeSeconds = "60";  // of what CheckRights writes

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

absl::StatusOr<RedisManifest> ParseManifest(absl::string_view key, const std::string& text) {
  RedisManifest manifest;
  if (text.size() != sizeof(manifest) + kChecksumBytes || !ChecksumAgrees(text, 0)) {
    return absl::DataLossError(
        absl::StrCat("the manifest of state '", key, "' on the server is damaged"));
  }
  std::memcpy(&manifest, text.data(), sizeof(manifest));
  if (manifest.magic != RedisManifest::kMagic || manifest.bytes > RedisManifest::kMaxStateBytes) {
    return absl::DataLossError(
        absl::StrCat("the manifest of state '", key, "' on the server is of another version or of ",
                     manifest.bytes, " bytes, more than ", RedisManifest::kMaxStateBytes));
  }
  return manifest;
}

std::string ChunkField(uint64_t chunk) { return absl::StrCat(chunk); }

// Depends on the index, so that chunks that were swapped are detected too.
uint64_t ChunkSeed(const RedisManifest& manifest, uint64_t chunk) {
  return manifest.generation + chunk;
}

std::string GenerationOf(StateTag tag) {
  if (tag == kAnyStateTag) return "any";
  if (tag == kNoStateTag) return "none";
  return std::string(reinterpret_cast<const char*>(&tag), sizeof(tag));
}

absl::Status MayNotRun(absl::string_view command, const absl::Status& why) {
  return absl::PermissionDeniedError(
      absl::StrCat("the user has no right to run ", command, ": ", why.message()));
}

}  // namespace

RedisState::RedisState(RedisConnections::Lease connection, const RedisOptions& options,
                       absl::string_view key)
    : connection_(std::move(connection)),
      key_(key),
      server_key_(absl::StrCat(options.prefix, key)),
      index_(RedisIndexKey(options)),
      expiry_(absl::StrCat(absl::ToInt64Milliseconds(options.expiry))) {}

absl::Status RedisState::CheckType() {
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply, connection_->Command({"TYPE", server_key_}));
  const absl::string_view type = reply.text;
  return type == "none" || type == "hash" ? absl::OkStatus() : OtherType(type);
}

absl::StatusOr<RedisManifest> RedisState::GetManifest() {
  INLAY_RETURN_IF_ERROR(CheckType());
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                         connection_->Command({"HGET", server_key_, kManifestField}));
  if (reply.kind == RedisReply::Kind::kNil) return NoSuchState(key_);
  return ParseManifest(key_, reply.text);
}

absl::Status RedisState::PutChunk(const RedisManifest& manifest, uint64_t chunk,
                                  absl::Span<const uint8_t> data) {
  return PutField(manifest, ChunkField(chunk),
                  WithChecksum(data.data(), data.size(), ChunkSeed(manifest, chunk)));
}

absl::StatusOr<std::string> RedisState::GetChunk(const RedisManifest& manifest, uint64_t chunk) {
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

absl::StatusOr<StateBeginning> RedisState::ReadBeginning(size_t most) {
  const std::string asked = absl::StrCat(most + kChecksumBytes);
  absl::StatusOr<RedisReply> reply = connection_->Command(
      {"EVAL", kReadBeginning, "1", server_key_, kManifestField, ChunkField(0), asked});
  if (absl::IsFailedPrecondition(reply.status())) INLAY_RETURN_IF_ERROR(CheckType());
  INLAY_RETURN_IF_ERROR(reply.status());
  if (reply->kind == RedisReply::Kind::kNil) return NoSuchState(key_);
  if (reply->kind != RedisReply::Kind::kText) return Unexpected("EVAL");
  std::string& text = reply->text;
  constexpr size_t kManifestBytes = sizeof(RedisManifest) + kChecksumBytes;
  INLAY_ASSIGN_OR_RETURN(const RedisManifest manifest,
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

absl::Status RedisState::Publish(const RedisManifest& manifest, StateTag replaced) {
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

absl::Status RedisState::BeginExpiry() {
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                         connection_->Command({"PEXPIRE", server_key_, expiry_}));
  return reply.kind == RedisReply::Kind::kInteger ? absl::OkStatus() : Unexpected("PEXPIRE");
}

void RedisState::Discard(const RedisManifest& manifest) noexcept {
  try {
    connection_->Command({"UNLINK", UnfinishedKey(manifest)}).IgnoreError();
  } catch (const std::bad_alloc&) {
  }
}

absl::Status RedisState::CheckRights() {
  const std::string unfinished = UnfinishedKey(RedisManifest());
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

absl::Status RedisState::Delete() {
  INLAY_RETURN_IF_ERROR(CheckType());
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply, EvalIndexed(kDelete, {server_key_}, {key_}));
  if (reply.kind != RedisReply::Kind::kInteger) return Unexpected("EVAL");
  return reply.integer == 0 ? NoSuchState(key_) : absl::OkStatus();
}

// Aborted when the state is no longer the one of this manifest.
absl::Status RedisState::CheckUnchanged(const RedisManifest& manifest) {
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                         connection_->Command({"HGET", server_key_, kManifestField}));
  if (reply.kind == RedisReply::Kind::kNil) return StateWasReplaced(key_);
  INLAY_ASSIGN_OR_RETURN(const RedisManifest now, ParseManifest(key_, reply.text));
  return now.generation == manifest.generation ? absl::OkStatus() : StateWasReplaced(key_);
}

// In a cluster both keys of kPublish must be in one slot. The braces make the slot of this key
// that of what is between them, unless the prefix of all keys has braces, which then do so for
// both.
std::string RedisState::UnfinishedKey(const RedisManifest& manifest) const {
  const absl::Hex generation(manifest.generation, absl::kZeroPad16);
  const bool braces = absl::StrContains(server_key_, '{');
  return braces ? absl::StrCat(server_key_, ":", generation)
                : absl::StrCat("{", server_key_, "}:", generation);
}

absl::Status RedisState::PutField(const RedisManifest& manifest, absl::string_view field,
                                  absl::string_view value) {
  INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                         connection_->Command({"EVAL", kPutField, "1", UnfinishedKey(manifest),
                                               field, value, kOrphanSeconds}));
  const bool done = reply.kind == RedisReply::Kind::kInteger && reply.integer == 1;
  return done ? absl::OkStatus() : Unexpected("EVAL");
}

// Runs a script whose last key is the index; without that one where the server refuses the keys,
// as a cluster does that has them in several slots. No index is made there.
absl::StatusOr<RedisReply> RedisState::EvalIndexed(absl::string_view script,
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

absl::Status RedisState::OtherType(absl::string_view type) const {
  return absl::FailedPreconditionError(
      absl::StrCat("the key ", QuoteForMessage(server_key_), " on the server holds no state but ",
                   "a value of type ", QuoteForMessage(type), "; it is neither read nor replaced"));
}

absl::Status RedisState::ChunkLost(uint64_t chunk, bool is_there) const {
  return absl::DataLossError(absl::StrCat("chunk ", chunk, " of state '", key_,
                                          "' on the server is ", is_there ? "damaged" : "gone"));
}

absl::Status RedisState::Unexpected(absl::string_view command) const {
  return absl::DataLossError(
      absl::StrCat("the server sent an unexpected answer to ", command, " for state '", key_, "'"));
}

}  // namespace inlay

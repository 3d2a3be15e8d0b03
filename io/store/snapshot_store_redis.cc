#include "io/store/snapshot_store_redis.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "io/store/redis_connection.h"
#include "io/store/state_store.h"

namespace inlay {
namespace {

// A piece, or a root's lengths, and what the protocol adds.
constexpr size_t kMaxSnapshotReply = SnapshotStore::kPieceBytes + 4096;
// What is written expires so long after its last piece, if its writer dies.
constexpr absl::string_view kUnfinishedSeconds = "60";

// In a cluster the keys of a script must be in one slot, which is that of what is between braces.
constexpr absl::string_view kGroup = "{prefixes}:";

// Every script that changes what is counted begins with this. The index is a sorted set of "BYTES
// KEY" by the time of the last use in milliseconds; the total is the sum of those bytes. If the
// server has lost one of the two, the total is counted again. Keys: the index, the total.
constexpr absl::string_view kCounted =
    "local index, total = KEYS[1], KEYS[2] "
    "local time = redis.call('TIME') "
    "local now = time[1] * 1000 + math.floor(time[2] / 1000) "
    "local function Held() "
    "  local held = tonumber(redis.call('GET', total)) "
    "  if held and redis.call('ZCARD', index) > 0 then return held end "
    "  held = 0 "
    "  for _, member in ipairs(redis.call('ZRANGE', index, 0, -1)) do "
    "    held = held + tonumber(string.match(member, '^%d+')) end "
    "  return held end "
    "local function SetHeld(held) redis.call('SET', total, string.format('%.0f', held)) end "
    // A snapshot that the index does not have is counted from now on.
    "local function Use(key, expiry) "
    "  local held = Held() "
    "  local bytes = redis.call('STRLEN', key) "
    "  redis.call('PEXPIRE', key, expiry) "
    "  if redis.call('ZADD', index, now, bytes .. ' ' .. key) == 1 then SetHeld(held + bytes) end "
    "end ";

// Further keys: the unfinished snapshot, the snapshot. Arguments: its bytes, the budget, the expiry
// in milliseconds. Makes room and counts the unfinished snapshot; or answers THERE.
constexpr absl::string_view kReserve =
    "if redis.call('EXISTS', KEYS[4]) == 1 then Use(KEYS[4], ARGV[3]) return 'THERE' end "
    "local held, bytes = Held(), tonumber(ARGV[1]) "
    "while true do "
    "  local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES') "
    "  if not oldest[1] then held = 0 break end "
    "  local expired = tonumber(oldest[2]) < now - tonumber(ARGV[3]) "
    "  if held + bytes <= tonumber(ARGV[2]) and not expired then break end "
    "  local size, key = string.match(oldest[1], '^(%d+) (.*)$') "
    "  redis.call('UNLINK', key) "
    "  redis.call('ZREM', index, oldest[1]) "
    "  held = held - tonumber(size) end "
    "redis.call('ZADD', index, now, ARGV[1] .. ' ' .. KEYS[3]) "
    "SetHeld(held + bytes) "
    "return 'OK'";

// Keys: the index, the unfinished snapshot. Arguments: all its bytes, those so far, more of them,
// the seconds after which it expires. Answers 0 when it has been evicted, perhaps before its first
// piece.
constexpr absl::string_view kAppend =
    "if not redis.call('ZSCORE', KEYS[1], ARGV[1] .. ' ' .. KEYS[2]) or "
    "  redis.call('STRLEN', KEYS[2]) ~= tonumber(ARGV[2]) then return 0 end "
    "redis.call('APPEND', KEYS[2], ARGV[3]) "
    "redis.call('EXPIRE', KEYS[2], ARGV[4]) "
    "return 1";

// Further keys: the unfinished snapshot, the snapshot, its root. Arguments: its bytes, the expiry
// in milliseconds, its length. Answers 0 when it has been evicted.
constexpr absl::string_view kFinish =
    "local held, bytes = Held(), tonumber(ARGV[1]) "
    "local counted = redis.call('ZREM', index, ARGV[1] .. ' ' .. KEYS[3]) == 1 "
    "if counted then SetHeld(held - bytes) end "
    "if not counted or redis.call('STRLEN', KEYS[3]) ~= bytes then "
    "  redis.call('UNLINK', KEYS[3]) return 0 end "
    "if redis.call('EXISTS', KEYS[4]) == 1 then redis.call('UNLINK', KEYS[3]) "
    "else redis.call('RENAME', KEYS[3], KEYS[4]) end "
    "Use(KEYS[4], ARGV[2]) "
    "redis.call('SADD', KEYS[5], ARGV[3]) "
    "redis.call('PEXPIRE', KEYS[5], ARGV[2]) "
    "return 1";

// Further keys: the root, then the snapshots. Argument: the expiry in milliseconds. Answers the
// number of the first snapshot that is there, from 0 on, and its bytes.
constexpr absl::string_view kFind =
    "for i = 4, #KEYS do "
    "  local bytes = redis.call('STRLEN', KEYS[i]) "
    "  if bytes > 0 then "
    "    Use(KEYS[i], ARGV[1]) "
    "    redis.call('PEXPIRE', KEYS[3], ARGV[1]) "
    "    return (i - 4) .. ' ' .. string.format('%.0f', bytes) end end "
    "return ''";

// Further key: the snapshot.
constexpr absl::string_view kRemove =
    "local held, bytes = Held(), redis.call('STRLEN', KEYS[3]) "
    "redis.call('UNLINK', KEYS[3]) "
    "if redis.call('ZREM', index, bytes .. ' ' .. KEYS[3]) == 1 then SetHeld(held - bytes) end "
    "return 1";

// Key: the root. In one text, since RedisConnection reads no arrays.
constexpr absl::string_view kLengths = "return table.concat(redis.call('SMEMBERS', KEYS[1]), ' ')";

class RedisSnapshots final : public SnapshotStore {
 public:
  explicit RedisSnapshots(SnapshotStoreOptions options)
      : options_(std::move(options)),
        group_(absl::StrCat(options_.redis.prefix, kGroup)),
        index_(absl::StrCat(group_, "index")),
        total_(absl::StrCat(group_, "bytes")),
        budget_(absl::StrCat(options_.budget_bytes)),
        expiry_(absl::StrCat(absl::ToInt64Milliseconds(options_.expiry))) {}

  absl::Status Connect() override {
    INLAY_ASSIGN_OR_RETURN(connection_,
                           RedisConnection::Connect(options_.redis, kMaxSnapshotReply));
    // A server that hangs takes connections too.
    return connection_->Command({"PING"}).status();
  }

  absl::StatusOr<std::vector<size_t>> Lengths(absl::string_view root,
                                              absl::Duration limit) override {
    const std::string key = KeyOf(root);
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply, Run(limit, {"EVAL", kLengths, "1", key}));
    std::vector<size_t> lengths;
    for (const absl::string_view word : absl::StrSplit(reply.text, ' ', absl::SkipEmpty())) {
      if (!absl::SimpleAtoi(word, &lengths.emplace_back())) return Unexpected("lengths");
    }
    return lengths;
  }

  absl::StatusOr<std::optional<Found>> Find(absl::string_view root,
                                            absl::Span<const std::string> names,
                                            absl::Duration limit) override {
    std::vector<std::string> keys = {KeyOf(root)};
    for (const std::string& name : names) keys.push_back(KeyOf(name));
    INLAY_ASSIGN_OR_RETURN(const RedisReply reply, RunCounted(limit, kFind, keys, {expiry_}));
    if (reply.text.empty()) return std::nullopt;
    const std::vector<absl::string_view> words = absl::StrSplit(reply.text, ' ');
    Found found;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &found.index) ||
        !absl::SimpleAtoi(words[1], &found.bytes) || found.index >= names.size())
      return Unexpected("a search");
    return found;
  }

  absl::StatusOr<bool> Read(absl::string_view name, uint64_t offset, size_t size,
                            absl::Duration limit, std::string& value) override {
    const std::string key = KeyOf(name);
    INLAY_ASSIGN_OR_RETURN(
        const RedisReply reply,
        Run(limit, {"GETRANGE", key, absl::StrCat(offset), absl::StrCat(offset + size - 1)}));
    if (reply.text.size() != size) return false;
    value += reply.text;
    return true;
  }

  absl::StatusOr<bool> Write(absl::string_view root, absl::string_view name, size_t length,
                             absl::string_view value, const std::function<bool()>& stop) override {
    if (value.empty() || value.size() > options_.budget_bytes) return false;
    const std::string unfinished = UnfinishedKey();
    const std::string bytes = absl::StrCat(value.size());
    const absl::Duration limit = options_.redis.timeout;
    INLAY_ASSIGN_OR_RETURN(
        const RedisReply reserved,
        RunCounted(limit, kReserve, {unfinished, KeyOf(name)}, {bytes, budget_, expiry_}));
    if (reserved.text == "THERE") return true;
    for (size_t at = 0; at < value.size(); at += kPieceBytes) {
      if (stop()) return false;  // it expires
      INLAY_ASSIGN_OR_RETURN(
          const RedisReply appended,
          Run(limit, {"EVAL", kAppend, "2", index_, unfinished, bytes, absl::StrCat(at),
                      value.substr(at, kPieceBytes), kUnfinishedSeconds}));
      if (appended.integer != 1) return false;
    }
    INLAY_ASSIGN_OR_RETURN(const RedisReply finished,
                           RunCounted(limit, kFinish, {unfinished, KeyOf(name), KeyOf(root)},
                                      {bytes, expiry_, absl::StrCat(length)}));
    return finished.integer == 1;
  }

  absl::Status Remove(absl::string_view name) override {
    return RunCounted(options_.redis.timeout, kRemove, {KeyOf(name)}, {}).status();
  }

 private:
  std::string KeyOf(absl::string_view name) const { return absl::StrCat(group_, name); }

  std::string UnfinishedKey() {
    std::random_device random;
    return absl::StrCat(group_, "unfinished:", absl::Hex(random(), absl::kZeroPad8),
                        absl::Hex(random(), absl::kZeroPad8));
  }

  absl::StatusOr<RedisReply> Run(absl::Duration limit, std::vector<absl::string_view> words) {
    if (connection_ == nullptr) return absl::FailedPreconditionError("there is no connection");
    return connection_->CommandWithin(limit, words);
  }

  // A script with the index and the total as its first keys.
  absl::StatusOr<RedisReply> RunCounted(absl::Duration limit, absl::string_view script,
                                        const std::vector<std::string>& keys,
                                        const std::vector<std::string>& arguments) {
    const std::string whole = absl::StrCat(kCounted, script);
    const std::string count = absl::StrCat(keys.size() + 2);
    std::vector<absl::string_view> words = {"EVAL", whole, count, index_, total_};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Run(limit, std::move(words));
  }

  absl::Status Unexpected(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat("Redis at ", options_.redis.host, ":",
                                            options_.redis.port, " sent an unexpected answer to ",
                                            what, " of snapshots"));
  }

  const SnapshotStoreOptions options_;
  const std::string group_, index_, total_, budget_, expiry_;
  std::unique_ptr<RedisConnection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenRedisSnapshots(SnapshotStoreOptions options) {
  INLAY_RETURN_IF_ERROR(CheckRedisOptions(options.redis));
  return std::make_unique<RedisSnapshots>(std::move(options));
}

}  // namespace inlay

#include "io/store/redis_state_list.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/store/redis_connection.h"
#include "io/store/state_store.h"

namespace inlay {
namespace {

constexpr absl::string_view kIndexSeconds = "3600";

// Scripts run in one step on the server. They answer in one text, a word on each line, since
// RedisConnection reads no arrays. Their keys are the index and RedisProbeKey(). What a user may
// have no right to do is done by pcall.
//
// Arguments: the first and the last key of a range as ZRANGEBYLEX takes them, the prefix of all
// keys, the manifest's field. Answers "none" where there is no index to be believed; else "end" or,
// where the range goes on after a key, "after KEY", and then the keys. Those without a state are
// taken out of the index.
constexpr absl::string_view kPage =
    "local index = KEYS[1] "
    "if type(redis.pcall('ZSCORE', index, '~')) ~= 'string' then return 'none' end "
    "local found = redis.pcall('ZRANGEBYLEX', index, ARGV[1], ARGV[2], 'LIMIT', 0, 1000) "
    "if found.err then return 'none' end "
    "local words = {'end'} "
    "if #found == 1000 then words[1] = 'after ' .. found[1000] end "
    "for _, name in ipairs(found) do "
    "  local key = ARGV[3] .. name "
    "  if redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, ARGV[4]) == 1 "
    "  then words[#words + 1] = name else redis.pcall('ZREM', index, name) end end "
    "return table.concat(words, '\\n')";

// Arguments: a range as for kPage. Answers the number of its keys; -1 where there is no index.
constexpr absl::string_view kCount =
    "if type(redis.pcall('ZSCORE', KEYS[1], '~')) ~= 'string' then return -1 end "
    "local count = redis.pcall('ZLEXCOUNT', KEYS[1], ARGV[1], ARGV[2]) "
    "if type(count) ~= 'number' then return -1 end "
    "return count";

// One step of a search, which makes the index. Arguments: the cursor, a pattern of all keys, their
// prefix, the manifest's field, the prefix of those to be listed, this search's mark, and the
// seconds after which the index expires. Answers the next cursor, and keys.
//
// As long as the mark is in the index, that has been there since the search has begun: other
// writers have kept it meanwhile, and what was there before the search finds. So it is whole once
// the search ends. Without keys, as a cluster wants it, there is only the search.
constexpr absl::string_view kSearch =
    "local index, mark = KEYS[1], ARGV[6] "
    "if index and ARGV[1] == '0' then redis.pcall('ZADD', index, 0, mark) end "
    "local builds = index and type(redis.pcall('ZSCORE', index, mark)) == 'string' "
    "if builds and ARGV[1] == '0' then redis.call('EXPIRE', index, ARGV[7]) end "
    "local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000) "
    "local words = {found[1]} "
    "for _, key in ipairs(found[2]) do "
    "  local name = string.sub(key, #ARGV[3] + 1) "
    // Unfinished states have a colon in their names.
    "  if string.find(name, '^[%w_-][%w._-]*$') and #name <= 100 and "
    "    redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, ARGV[4]) == 1 then "
    "    if builds and type(redis.pcall('ZADD', index, 0, name)) == 'table' then "
    "      redis.call('UNLINK', index) builds = false end "
    "    if string.sub(name, 1, #ARGV[5]) == ARGV[5] then words[#words + 1] = name end end end "
    "if builds and found[1] == '0' then "
    "  redis.pcall('ZADD', index, 0, '~') redis.pcall('ZREM', index, mark) end "
    "return table.concat(words, '\\n')";

// A key that a cluster has in another slot than the index, so that it refuses the scripts: a slot
// comes of a CRC, and no two CRCs of texts of one length that differ in their last bit alone are
// alike. Where the prefix has braces both are in one slot, as are all states.
std::string RedisProbeKey(const RedisOptions& options) {
  return absl::StrCat(options.prefix, ":index-1");
}

// A pattern of Redis that only texts match that begin with `prefix`.
std::string PatternOf(absl::string_view prefix) {
  std::string pattern;
  for (const char c : prefix) {
    if (absl::string_view("*?[]^\\").find(c) != absl::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "*";
}

std::string RandomMark() {
  std::random_device random;
  return absl::StrCat("~", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

class RedisStateList {
 public:
  RedisStateList(RedisConnection& connection, const RedisOptions& options, absl::string_view prefix)
      : connection_(connection),
        options_(options),
        index_(RedisIndexKey(options)),
        probe_(RedisProbeKey(options)),
        prefix_(prefix),
        first_(absl::StrCat("[", prefix)),
        last_(absl::StrCat("(", prefix, "~")),  // which no key has, and which is above all others
        deadline_(SteadyNow() + options.timeout) {}

  absl::StatusOr<std::vector<std::string>> List() {
    absl::StatusOr<std::optional<std::vector<std::string>>> listed = ListIndex();
    if (absl::IsInternal(listed.status())) return Search(/*make_index=*/false);
    INLAY_RETURN_IF_ERROR(listed.status());
    if (listed->has_value()) return **std::move(listed);
    return Search(/*make_index=*/true);
  }

  absl::StatusOr<size_t> Count() {
    const absl::StatusOr<RedisReply> reply =
        connection_.Command({"EVAL", kCount, "2", index_, probe_, first_, last_});
    const bool refused = absl::IsInternal(reply.status());
    if (!refused) {
      INLAY_RETURN_IF_ERROR(reply.status());
      if (reply->kind != RedisReply::Kind::kInteger || reply->integer < -1) return Unexpected();
      if (reply->integer >= 0) return static_cast<size_t>(reply->integer);
    }
    INLAY_ASSIGN_OR_RETURN(const std::vector<std::string> keys, Search(!refused));
    return keys.size();
  }

 private:
  // Nothing where there is no index.
  absl::StatusOr<std::optional<std::vector<std::string>>> ListIndex() {
    std::vector<std::string> keys;
    std::string after, first = first_;
    while (true) {
      INLAY_RETURN_IF_ERROR(CheckTime());
      INLAY_ASSIGN_OR_RETURN(const RedisReply reply,
                             connection_.Command({"EVAL", kPage, "2", index_, probe_, first, last_,
                                                  options_.prefix, kManifestField}));
      if (reply.kind != RedisReply::Kind::kText) return Unexpected();
      if (reply.text == "none") return std::nullopt;
      const std::vector<absl::string_view> words = absl::StrSplit(reply.text, '\n');
      for (size_t i = 1; i < words.size(); ++i) {
        if (!IsListed(words[i])) continue;
        if (keys.size() == StateStore::kMostListed) return TooManyStates(prefix_);
        keys.emplace_back(words[i]);
      }
      absl::string_view next = words[0];
      if (next == "end") return keys;
      if (!absl::ConsumePrefix(&next, "after ") || next <= after) return Unexpected();
      after = std::string(next);
      first = absl::StrCat("(", after);
    }
  }

  absl::StatusOr<std::vector<std::string>> Search(bool make_index) {
    const std::string pattern = PatternOf(options_.prefix), mark = RandomMark();
    // A search may find a key twice.
    std::set<std::string> keys;
    std::string cursor = "0";
    do {
      INLAY_RETURN_IF_ERROR(CheckTime());
      INLAY_ASSIGN_OR_RETURN(
          const RedisReply reply,
          make_index
              ? connection_.Command({"EVAL", kSearch, "2", index_, probe_, cursor, pattern,
                                     options_.prefix, kManifestField, prefix_, mark, kIndexSeconds})
              : connection_.Command({"EVAL", kSearch, "0", cursor, pattern, options_.prefix,
                                     kManifestField, prefix_, mark, kIndexSeconds}));
      INLAY_ASSIGN_OR_RETURN(cursor, TakeFound(reply, keys));
    } while (cursor != "0");
    return std::vector<std::string>(keys.begin(), keys.end());
  }

  // Adds the keys that one step of a search found. Returns the next step's cursor.
  absl::StatusOr<std::string> TakeFound(const RedisReply& reply,
                                        std::set<std::string>& keys) const {
    const std::vector<absl::string_view> words = absl::StrSplit(reply.text, '\n');
    const absl::string_view cursor = words[0];
    const bool is_cursor = !cursor.empty() && cursor.size() <= 20 &&
                           std::all_of(cursor.begin(), cursor.end(),
                                       [](unsigned char c) { return absl::ascii_isdigit(c); });
    if (reply.kind != RedisReply::Kind::kText || !is_cursor) return Unexpected();
    for (size_t i = 1; i < words.size(); ++i) {
      if (!IsListed(words[i])) continue;
      keys.emplace(words[i]);
      if (keys.size() > StateStore::kMostListed) return TooManyStates(prefix_);
    }
    return std::string(cursor);
  }

  bool IsListed(absl::string_view key) const {
    return CheckStateKey(key).ok() && absl::StartsWith(key, prefix_);
  }

  absl::Status CheckTime() const {
    if (SteadyNow() <= deadline_) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("the states on the server took longer to list than ",
                     absl::FormatDuration(options_.timeout)));
  }

  static absl::Status Unexpected() {
    return absl::DataLossError("the server sent an unexpected answer to a listing of states");
  }

  RedisConnection& connection_;
  const RedisOptions& options_;
  const std::string index_, probe_, prefix_;
  const std::string first_, last_;  // the range of the prefix
  const absl::Time deadline_;
};

}  // namespace

std::string RedisIndexKey(const RedisOptions& options) {
  // No state has a key with a colon.
  return absl::StrCat(options.prefix, ":index-0");
}

absl::StatusOr<std::vector<std::string>> ListRedisStates(RedisConnection& connection,
                                                         const RedisOptions& options,
                                                         absl::string_view prefix) {
  return RedisStateList(connection, options, prefix).List();
}

absl::StatusOr<size_t> CountRedisStates(RedisConnection& connection, const RedisOptions& options,
                                        absl::string_view prefix) {
  // The marks in the index are no keys.
  if (!prefix.empty() && !CheckStateKey(prefix).ok()) return 0;
  return RedisStateList(connection, options, prefix).Count();
}

}  // namespace inlay

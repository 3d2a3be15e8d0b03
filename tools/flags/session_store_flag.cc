#include "tools/flags/session_store_flag.h"

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "base/url_text.h"
#include "io/file/file_lock.h"
#include "io/store/state_store_file.h"
#include "io/store/state_store_redis.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"

namespace inlay {
namespace {

constexpr absl::string_view kScheme = "redis://";

absl::Status BadAddress(absl::string_view flag, absl::string_view what) {
  // The address may hold a password, so it is not repeated.
  return UsageError(
      absl::StrCat(flag, " redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]: ", what));
}

absl::Status ParseLogin(absl::string_view flag, absl::string_view login, RedisOptions* options) {
  const size_t colon = login.find(':');
  if (colon == absl::string_view::npos)
    return BadAddress(flag, "before the @ there must be [USER]:PASSWORD");
  std::optional<std::string> user = DecodePercents(login.substr(0, colon));
  std::optional<std::string> password = DecodePercents(login.substr(colon + 1));
  if (!user.has_value() || !password.has_value())
    return BadAddress(flag, "each % must be followed by two hexadecimal digits");
  if (password->empty()) return BadAddress(flag, "the password is empty");
  options->user = *std::move(user);
  options->password = *std::move(password);
  return absl::OkStatus();
}

absl::Status ParseHost(absl::string_view flag, absl::string_view place, RedisOptions* options) {
  const absl::StatusOr<HostAndPort> parts = SplitHostAndPort(place);
  if (!parts.ok()) return BadAddress(flag, parts.status().message());
  if (parts->host.empty()) return BadAddress(flag, "the host is missing");
  options->host = std::string(parts->host);
  if (!parts->port.has_value()) return absl::OkStatus();
  const std::optional<uint16_t> port = ParsePort(*parts->port);
  if (!port.has_value()) return BadAddress(flag, "the port must be a number from 1 to 65535");
  options->port = *port;
  return absl::OkStatus();
}

// Keys of so many states are nearly certain to be in slots of every node of a cluster.
constexpr int kProbes = 24;

// An error of a store on Redis that not every key of a state can be in.
absl::Status CheckSlots(StateStore& store) {
  for (int i = 0; i < kProbes; ++i) {
    const absl::Status status = store.Get(absl::StrCat("probe-", i)).status();
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

// `no_place` says what a place is not that is neither a folder nor on Redis.
absl::StatusOr<std::shared_ptr<StateStore>> OpenPlace(const std::string& place,
                                                      absl::string_view flag,
                                                      absl::string_view no_place,
                                                      absl::Duration expiry = {}) {
  std::shared_ptr<StateStore> store;
  if (IsRedis(place)) {
    INLAY_ASSIGN_OR_RETURN(RedisOptions options, ParseRedisAddress(place, flag));
    options.expiry = expiry;
    INLAY_ASSIGN_OR_RETURN(store, OpenRedisStore(std::move(options)));
  } else if (struct stat info; stat(place.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    store = std::make_shared<FileStore>(place);
  } else if (absl::StrContains(place, "://")) {
    return BadAddress(flag, "no other scheme is known");
  } else {
    return UsageError(absl::StrCat(flag, " ", place, " is no existing folder, and ", no_place));
  }
  // Not by a list: it may be long, and one of a Redis database has other programs' keys, too.
  INLAY_RETURN_IF_ERROR(About(flag, CheckSlots(*store)));
  return store;
}

}  // namespace

bool IsRedis(absl::string_view place) { return absl::StartsWith(place, kScheme); }

absl::StatusOr<RedisOptions> ParseRedisAddress(absl::string_view address, absl::string_view flag) {
  RedisOptions options;
  if (!absl::ConsumePrefix(&address, kScheme)) return BadAddress(flag, "redis:// is missing");
  if (const size_t at = address.rfind('@'); at != absl::string_view::npos) {
    INLAY_RETURN_IF_ERROR(ParseLogin(flag, address.substr(0, at), &options));
    address.remove_prefix(at + 1);
  }
  const size_t slash = address.find('/');
  if (slash != absl::string_view::npos && slash + 1 < address.size()) {
    if (!absl::SimpleAtoi(address.substr(slash + 1), &options.database) || options.database < 0)
      return BadAddress(flag, "the database must be a number of at least 0");
  }
  INLAY_RETURN_IF_ERROR(ParseHost(flag, address.substr(0, slash), &options));
  return options;
}

absl::StatusOr<std::shared_ptr<StateStore>> OpenStore(const std::string& place,
                                                      absl::string_view flag) {
  return OpenPlace(place, flag, "not redis://HOST either");
}

absl::StatusOr<std::shared_ptr<StateStore>> OpenSessionStore(const SessionStoreFlags& flags) {
  const std::string& place = flags.place;
  if (place == "memory") return nullptr;
  INLAY_ASSIGN_OR_RETURN(
      std::shared_ptr<StateStore> store,
      OpenPlace(place, "--sessions", "neither redis://HOST nor memory", absl::Seconds(flags.ttl)));
  if (IsRedis(place)) {
    INLAY_ASSIGN_OR_RETURN(RedisOptions options, ParseRedisAddress(place, "--sessions"));
    options.expiry = absl::Seconds(flags.ttl);
    INLAY_RETURN_IF_ERROR(About("--sessions", CheckRedisRights(options)));
    return store;
  }
  // No other server may use the folder at the same time: each would overwrite what the other has
  // stored since. The store comes first, as it reads when the folder was last changed.
  INLAY_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(absl::StrCat(place, "/server")));
  if (!lock.excludes_others()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the folder ", place, " of --sessions is on a file system without locks, where ",
        "another server could use it at the same time; sessions of several servers ",
        "are kept in Redis"));
  }
  // Now, as otherwise the first client that makes a session waits for it, and /metrics has no
  // number until then.
  INLAY_RETURN_IF_ERROR(About("--sessions", store->Count("").status()));
  struct Locked {
    FileLock lock;
    std::shared_ptr<StateStore> store;
  };
  const auto locked = std::make_shared<Locked>(Locked{std::move(lock), std::move(store)});
  return std::shared_ptr<StateStore>(locked, locked->store.get());
}

void AddSessionStoreFlags(CLI::App& command, SessionStoreFlags& flags) {
  // A password is not to be seen in the list of processes.
  command
      .add_option("--sessions", flags.place,
                  "where the conversations of /v1/sessions are kept: memory (default, until the "
                  "server ends), a folder, or redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]")
      ->type_name("memory|FOLDER|URL")
      ->envname("INLAY_SESSIONS");
  command
      .add_option(
          "--sessions-ttl", flags.ttl,
          "seconds without use after which a session is removed; it is used by what changes "
          "or reads it, lists apart; 0: never (default)")
      ->check(Between(0, 1e9));
}

}  // namespace inlay

// Where conversations are kept: --sessions of inlay serve, --store of the commands.
#ifndef INLAY_TOOLS_FLAGS_SESSION_STORE_FLAG_H_
#define INLAY_TOOLS_FLAGS_SESSION_STORE_FLAG_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/store/redis_options.h"
#include "io/store/state_store.h"

namespace inlay {

struct SessionStoreFlags {
  std::string place = "memory";
  double ttl = 0;  // seconds without use; 0: for ever
};

// --sessions and --sessions-ttl
void AddSessionStoreFlags(CLI::App& command, SessionStoreFlags& flags);

// Whether the store at `place` is on Redis: otherwise it is a folder.
bool IsRedis(absl::string_view place);

// The store at "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]" or in an existing folder, for
// the option `flag`. A usage error for what is neither; an error of the store when it cannot be
// listed, so that nothing begins with a store that fails.
absl::StatusOr<std::shared_ptr<StateStore>> OpenStore(const std::string& place,
                                                      absl::string_view flag);

// The store of inlay serve at "memory", "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]" or in an
// existing folder; null for "memory". A usage error for what is none of these; an error of the
// store when it cannot be listed, or when its user lacks a right on Redis, so that a server does
// not begin with a store that fails.
absl::StatusOr<std::shared_ptr<StateStore>> OpenSessionStore(const SessionStoreFlags& flags);

// The options that a redis:// address stands for. In the user's name and the password, %XX is the
// byte of that number.
absl::StatusOr<RedisOptions> ParseRedisAddress(absl::string_view address, absl::string_view flag);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SESSION_STORE_FLAG_H_

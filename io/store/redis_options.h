// The address of a Redis server, and the time limit.
#ifndef INLAY_IO_STORE_REDIS_OPTIONS_H_
#define INLAY_IO_STORE_REDIS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace inlay {

struct RedisOptions {
  std::string host = "127.0.0.1";  // a name or an address
  uint16_t port = 6379;
  std::string user = {};      // with a password only; the server's default user if empty
  std::string password = {};  // none if empty
  int database = 0;
  std::string prefix = "inlay:";  // of all keys on the server
  // Of a state, from the last time that it was stored or StateStore::MarkUsed was called: then the
  // server deletes it. Zero: never.
  absl::Duration expiry = absl::ZeroDuration();
  // The limit for connecting and for each command as a whole. It does not cover the lookup of the
  // host's name, which the system does.
  absl::Duration timeout = absl::Seconds(5);
};

// InvalidArgument for options that cannot work.
absl::Status CheckRedisOptions(const RedisOptions& options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_REDIS_OPTIONS_H_

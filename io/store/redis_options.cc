#include "io/store/redis_options.h"

#include "absl/strings/str_cat.h"

namespace inlay {

absl::Status CheckRedisOptions(const RedisOptions& options) {
  if (options.host.empty() || options.port == 0 || options.database < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Redis at '", options.host, "', port ", options.port, ", database ", options.database,
        " is not valid: a host, a port of at least 1 and a "
        "database of at least 0 are needed"));
  }
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the time limit ", absl::FormatDuration(options.timeout), " is not positive"));
  }
  if (options.expiry != absl::ZeroDuration() && options.expiry < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError(absl::StrCat("the expiry ",
                                                   absl::FormatDuration(options.expiry),
                                                   " is neither zero nor a millisecond or longer"));
  }
  return absl::OkStatus();
}

}  // namespace inlay

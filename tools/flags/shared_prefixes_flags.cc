#include "tools/flags/shared_prefixes_flags.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "io/store/open_snapshot_store.h"
#include "tools/flags/session_store_flag.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/output.h"

namespace inlay {

void AddSharedPrefixesFlags(CLI::App& command, SharedPrefixesFlags& flags) {
  // A password is not to be seen in the list of processes.
  command
      .add_option("--shared-prefixes", flags.place,
                  "take what other servers have computed of a prompt from there, and leave them "
                  "what this one computes, also for the time after a restart: a folder or "
                  "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] (default: nowhere)")
      ->envname("INLAY_SHARED_PREFIXES");
  command
      .add_option("--shared-prefixes-limit", flags.limit,
                  "limit for shared prefixes in MiB, the same for all servers (default: 1024)")
      ->check(Between(1, 1 << 30));
  command
      .add_option("--shared-prefixes-ttl", flags.ttl,
                  "seconds that one stays without use (default: 3600, in a folder 30 days)")
      ->check(Between(1, 1e9));
  command
      .add_option(
          "--shared-prefixes-wait", flags.wait,
          "milliseconds after which a prompt is computed instead (default: 100, with a folder "
          "2000)")
      ->check(Between(1, 1e6));
  command
      .add_option("--shared-prefixes-min", flags.least,
                  "shortest prefix to store, in tokens, the same for all servers (default: 256)")
      ->check(Between(1, 1 << 20));
}

absl::StatusOr<std::optional<serve::SharedPrefixesOptions>> MakeSharedPrefixesOptions(
    const SharedPrefixesFlags& flags) {
  if (flags.place.empty()) return std::nullopt;
  serve::SharedPrefixesOptions options;
  std::error_code no_error;
  const bool in_folder = std::filesystem::is_directory(flags.place, no_error);
  if (in_folder) {
    options.store.folder = flags.place;
  } else if (absl::StrContains(flags.place, "://")) {
    INLAY_ASSIGN_OR_RETURN(options.store.redis,
                           ParseRedisAddress(flags.place, "--shared-prefixes"));
    // Nobody waits for what it bounds but the end of the server.
    options.store.redis.timeout = absl::Seconds(1);
  } else {
    return UsageError(absl::StrCat("--shared-prefixes ", flags.place,
                                   " is no existing folder, and not redis://HOST either"));
  }
  options.store.budget_bytes = flags.limit << 20;
  options.store.expiry = flags.ttl.has_value() ? absl::Seconds(*flags.ttl)
                         : in_folder           ? absl::Hours(24 * 30)
                                               : absl::Hours(1);
  options.least_tokens = flags.least;
  options.wait = absl::Milliseconds(flags.wait.value_or(in_folder ? 2000 : 100));
  options.note = [](absl::string_view note) { WriteNote(absl::StrCat("inlay: ", note, "\n")); };
  // So that a program without Redis says so before the model is loaded.
  INLAY_RETURN_IF_ERROR(OpenSnapshotStore(options.store).status());
  return options;
}

}  // namespace inlay

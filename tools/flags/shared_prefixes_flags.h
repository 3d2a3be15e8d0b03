// The flags of inlay serve for prefixes that several servers share.
#ifndef INLAY_TOOLS_FLAGS_SHARED_PREFIXES_FLAGS_H_
#define INLAY_TOOLS_FLAGS_SHARED_PREFIXES_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "serve/prefixes/shared_prefixes.h"

namespace inlay {

struct SharedPrefixesFlags {
  std::string place;                // empty: none are shared
  uint64_t limit = 1024;            // MiB
  std::optional<double> ttl, wait;  // seconds, milliseconds; the place's default if not given
  size_t least = 256;               // tokens
};

// --shared-prefixes and --shared-prefixes-limit, -ttl, -wait and -min.
void AddSharedPrefixesFlags(CLI::App& command, SharedPrefixesFlags& flags);

// What they ask for. Notes of outages go to standard error. A usage error for what is no address on
// Redis; Unimplemented in a program without Redis.
absl::StatusOr<std::optional<serve::SharedPrefixesOptions>> MakeSharedPrefixesOptions(
    const SharedPrefixesFlags& flags);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SHARED_PREFIXES_FLAGS_H_

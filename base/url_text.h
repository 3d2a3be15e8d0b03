// Parts of URLs: hosts with ports, and bytes as %XX.
#ifndef INLAY_BASE_URL_TEXT_H_
#define INLAY_BASE_URL_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

struct HostAndPort {
  absl::string_view host;  // without brackets; may be empty
  // What follows the ':', which may be empty or no number; nothing where there is no ':'.
  std::optional<absl::string_view> port;
};

// The parts of HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT, which point into `text`.
// InvalidArgument, with a sentence that follows a colon, for a bracket without the other, for what
// is not :PORT after the brackets, and for an address of IPv6 without brackets, whose port would
// be a guess.
absl::StatusOr<HostAndPort> SplitHostAndPort(absl::string_view text);

// A decimal number from 1 to 65535; nothing for anything else.
std::optional<uint16_t> ParsePort(absl::string_view text);

// `text` with each %XX (two hexadecimal digits) replaced by its byte; nothing where a % is followed
// by anything else.
std::optional<std::string> DecodePercents(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_BASE_URL_TEXT_H_

#include "base/url_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace inlay {

absl::StatusOr<HostAndPort> SplitHostAndPort(absl::string_view text) {
  HostAndPort parts;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "[")) {
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos) return absl::InvalidArgumentError("the [ has no ]");
    parts.host = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  } else {
    parts.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(parts.host.size());
  }
  if (rest.empty()) return parts;
  if (!absl::ConsumePrefix(&rest, ":"))
    return absl::InvalidArgumentError("only :PORT can follow the ]");
  if (rest.find(':') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "it has more than one : outside of brackets; an address of IPv6 is written [::1] or "
        "[::1]:PORT");
  }
  parts.port = rest;
  return parts;
}

std::optional<uint16_t> ParsePort(absl::string_view text) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  uint32_t port = 0;
  if (!digits || !absl::SimpleAtoi(text, &port) || port < 1 || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

std::optional<std::string> DecodePercents(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2])))
      return std::nullopt;
    decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
    i += 2;
  }
  return decoded;
}

}  // namespace inlay

#include "serve/http/request_checks.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/url_text.h"
#include "base/utf8.h"

namespace inlay::serve {
namespace {

std::vector<absl::string_view> HeaderValues(const HttpHeaders& headers, absl::string_view name) {
  std::vector<absl::string_view> values;
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) values.push_back(value);
  }
  return values;
}

bool IsDigits(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

// "name:port" and "[address]:port" without the port and the brackets, in lower case, without the
// root's dot; none if it is neither.
std::optional<std::string> NameOfHost(absl::string_view host) {
  const absl::StatusOr<HostAndPort> parts = SplitHostAndPort(host);
  if (!parts.ok() || !IsDigits(parts->port.value_or(""))) return std::nullopt;
  absl::string_view name = parts->host;
  absl::ConsumeSuffix(&name, ".");
  if (name.empty()) return std::nullopt;
  return absl::AsciiStrToLower(name);
}

// Whether it is an address of IPv4 or IPv6 in the only form that browsers send.
bool IsAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

std::optional<Refusal> CheckHost(const RequestHead& head, const HttpOptions& options) {
  const auto hosts = HeaderValues(*head.headers, "host");
  // HTTP/1.0 has no Host; checks of servers' health still speak it, browsers do not.
  if (hosts.empty() && !head.http_1_1) return std::nullopt;
  if (hosts.size() != 1) {
    return Refusal{400, absl::StrCat("the request has ", hosts.size(), " Host headers, not one")};
  }
  if (IsAllowedHost(hosts[0], options)) return std::nullopt;
  return Refusal{403, absl::StrCat("the request's Host, '", absl::CHexEscape(hosts[0]),
                                   "', is neither localhost nor an address nor a name that the "
                                   "server was given by --allow-host")};
}

std::optional<Refusal> CheckMethod(absl::string_view method) {
  constexpr std::array<absl::string_view, 6> kAllowed = {"GET", "HEAD",   "POST",
                                                         "PUT", "DELETE", "OPTIONS"};
  constexpr std::array<absl::string_view, 3> kKnown = {"PATCH", "TRACE", "CONNECT"};
  if (std::find(kAllowed.begin(), kAllowed.end(), method) != kAllowed.end()) return std::nullopt;
  const bool known = std::find(kKnown.begin(), kKnown.end(), method) != kKnown.end();
  return Refusal{known ? 405 : 501, absl::StrCat("the method '", absl::CHexEscape(method),
                                                 "' is none of ", kAllowedMethods)};
}

std::optional<Refusal> CheckTarget(const RequestHead& head) {
  if (head.target == "*" && head.method == "OPTIONS") return std::nullopt;
  const absl::string_view path = head.target.substr(0, head.target.find('?'));
  if (absl::StrContains(head.target, '#') || !DecodePath(path).has_value()) {
    return Refusal{400,
                   "the request's target is not a path that begins with '/', without '.' and "
                   "'..' segments, control characters and bad escapes"};
  }
  return std::nullopt;
}

std::optional<Refusal> CheckOrigin(const RequestHead& head, const HttpOptions& options) {
  const auto origins = HeaderValues(*head.headers, "origin");
  if (origins.empty()) return std::nullopt;
  const auto hosts = HeaderValues(*head.headers, "host");
  const absl::string_view host = hosts.empty() ? "" : hosts[0];
  if (origins.size() == 1 && IsAllowedOrigin(origins[0], host, options)) return std::nullopt;
  return Refusal{403, absl::StrCat("pages of the origin '", absl::CHexEscape(origins[0]),
                                   "' may not send requests to this server")};
}

// Encodings of the whole message: another reader of the same bytes might see another end.
std::optional<Refusal> CheckFraming(const RequestHead& head) {
  const auto transfer = HeaderValues(*head.headers, "transfer-encoding");
  if (!transfer.empty() && !head.http_1_1) {
    return Refusal{400, "HTTP/1.0 has no Transfer-Encoding"};
  }
  if (transfer.size() > 1 ||
      (transfer.size() == 1 && !absl::EqualsIgnoreCase(transfer[0], "chunked"))) {
    return Refusal{501, "the server knows no Transfer-Encoding other than 'chunked'"};
  }
  if (!transfer.empty() && !HeaderValues(*head.headers, "content-length").empty()) {
    return Refusal{400, "the request has both Content-Length and Transfer-Encoding"};
  }
  for (const absl::string_view expect : HeaderValues(*head.headers, "expect")) {
    if (!absl::EqualsIgnoreCase(expect, "100-continue")) {
      return Refusal{417, "the server knows no expectation other than '100-continue'"};
    }
  }
  return std::nullopt;
}

bool IsNameCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
}

bool IsHeaderName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsNameCharacter);
}

}  // namespace

std::optional<Refusal> CheckRequest(const RequestHead& head, const HttpOptions& options) {
  if (auto refusal = CheckHost(head, options)) return refusal;
  if (auto refusal = CheckFraming(head)) return refusal;
  if (auto refusal = CheckMethod(head.method)) return refusal;
  if (auto refusal = CheckTarget(head)) return refusal;
  return CheckOrigin(head, options);
}

std::optional<Refusal> CheckBody(const RequestHead& head) {
  if (!head.has_body) return std::nullopt;
  const auto types = HeaderValues(*head.headers, "content-type");
  if (types.size() != 1 || !IsJson(types[0])) {
    return Refusal{415, absl::StrCat("the body's Content-Type is '",
                                     types.empty() ? "" : absl::CHexEscape(types[0]),
                                     "'; it must be application/json")};
  }
  for (const absl::string_view encoding : HeaderValues(*head.headers, "content-encoding")) {
    if (!absl::EqualsIgnoreCase(encoding, "identity")) {
      return Refusal{415, "the server reads no body with a Content-Encoding"};
    }
  }
  return std::nullopt;
}

absl::string_view OriginForm(absl::string_view target, absl::string_view host) {
  constexpr absl::string_view kScheme = "http://";
  if (host.empty() || !absl::StartsWithIgnoreCase(target, kScheme)) return target;
  const size_t end = std::min(target.find('/', kScheme.size()), target.size());
  const absl::string_view authority = target.substr(kScheme.size(), end - kScheme.size());
  if (!absl::EqualsIgnoreCase(authority, host)) return target;
  return end == target.size() ? "/" : target.substr(end);
}

std::optional<std::string> DecodePath(absl::string_view target) {
  if (!absl::StartsWith(target, "/") || absl::StrContains(target, '#')) return std::nullopt;
  const std::optional<std::string> decoded = DecodePercents(target);
  if (!decoded.has_value()) return std::nullopt;
  std::string path;
  for (const char c : *decoded) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) return std::nullopt;
    if (c != '/' || path.empty() || path.back() != '/') path.push_back(c);
  }
  for (const absl::string_view segment : absl::StrSplit(path, '/')) {
    if (segment == "." || segment == "..") return std::nullopt;
  }
  if (!IsValidUtf8(path)) return std::nullopt;
  return path;
}

bool IsAllowedHost(absl::string_view host, const HttpOptions& options) {
  const std::optional<std::string> name = NameOfHost(host);
  if (!name.has_value()) return false;
  if (*name == "localhost" || absl::EndsWith(*name, ".localhost") || IsAddress(*name)) return true;
  if (absl::EqualsIgnoreCase(*name, options.host)) return true;
  for (const std::string& allowed : options.allowed_hosts) {
    if (allowed == "*" || absl::EqualsIgnoreCase(*name, allowed)) return true;
  }
  return false;
}

bool IsAllowedOrigin(absl::string_view origin, absl::string_view host, const HttpOptions& options) {
  for (const std::string& allowed : options.allowed_origins) {
    if (allowed == "*" || absl::EqualsIgnoreCase(origin, allowed)) return true;
  }
  // The server's own pages. They may have come through a proxy that speaks TLS.
  for (const auto& [scheme, port] :
       {std::pair<absl::string_view, absl::string_view>{"http://", ":80"}, {"https://", ":443"}}) {
    if (!absl::StartsWithIgnoreCase(origin, scheme)) continue;
    absl::string_view page = origin.substr(scheme.size());
    absl::ConsumeSuffix(&page, port);
    absl::ConsumeSuffix(&host, port);
    return !page.empty() && absl::EqualsIgnoreCase(page, host);
  }
  return false;
}

bool IsJson(absl::string_view content_type) {
  return absl::EqualsIgnoreCase(
      absl::StripAsciiWhitespace(content_type.substr(0, content_type.find(';'))),
      "application/json");
}

bool IsRequestId(absl::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

bool IsHeaderList(absl::string_view text) {
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    if (!IsHeaderName(absl::StripAsciiWhitespace(name))) return false;
  }
  return true;
}

bool IsHeader(absl::string_view name, absl::string_view value) {
  return IsHeaderName(name) && std::all_of(value.begin(), value.end(), [](unsigned char c) {
           return c == '\t' || !absl::ascii_iscntrl(c);
         });
}

}  // namespace inlay::serve

#include "absl/strings/match.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

absl::string_view HttpRequest::Header(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) return value;
  }
  return "";
}

}  // namespace inlay::serve

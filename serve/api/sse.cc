#include "serve/api/sse.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace inlay::serve {

// JSON on one line has no line breaks, which would end the data.
std::string SseData(const Json& data) { return absl::StrCat("data: ", DumpJson(data), "\n\n"); }

std::string SseEvent(const Json& data) {
  return absl::StrCat("event: ", data["type"].get<std::string>(), "\n", SseData(data));
}

}  // namespace inlay::serve

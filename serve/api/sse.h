// Server-sent events (the WHATWG's HTML standard, section 9.2), as bytes.
#ifndef INLAY_SERVE_API_SSE_H_
#define INLAY_SERVE_API_SSE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

// An event without a name: "data: {...}".
std::string SseData(const Json& data);
// An event whose name is the "type" of its data, as OpenAI's responses and Anthropic's messages
// have them.
std::string SseEvent(const Json& data);
// What ends a stream of OpenAI's completions.
inline constexpr absl::string_view kSseDone = "data: [DONE]\n\n";
// A comment, which clients skip.
inline constexpr absl::string_view kSsePing = ": ping\n\n";

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_SSE_H_

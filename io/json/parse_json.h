// JSON from strangers, read within bounds, and JSON for them, always valid UTF-8.
#ifndef INLAY_IO_JSON_PARSE_JSON_H_
#define INLAY_IO_JSON_PARSE_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace inlay {

using Json = nlohmann::ordered_json;

// The most lists and objects inside each other that are read.
inline constexpr size_t kMostJsonDepth = 128;

// The value that `text` holds. Of members with the same name the last one counts, at the place of
// the first. InvalidArgument, with `what` as its subject, for what is not JSON, not UTF-8, has a
// number beyond a double's range or nests deeper than kMostJsonDepth; ResourceExhausted without
// memory. Time and memory grow linearly with the text.
absl::StatusOr<Json> ParseJson(absl::string_view what, absl::string_view text);

// `json` on one line. Bytes of its strings that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& json);

}  // namespace inlay

#endif  // INLAY_IO_JSON_PARSE_JSON_H_

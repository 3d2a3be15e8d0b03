// JSON as clients write it.
#ifndef INLAY_SERVE_API_REQUEST_JSON_H_
#define INLAY_SERVE_API_REQUEST_JSON_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

// The most values of a request's JSON. Each takes some 16 bytes as a number in a list and up to 150
// as a member of an object. A million token ids, a conversation as long as any model's, fit twice.
inline constexpr size_t kMostRequestValues = size_t{1} << 21;

// As ParseJson, with at most kMostRequestValues, except that half a surrogate pair, "\ud83d"
// without what must follow it, is read as U+FFFD. Clients in JavaScript write it where they have
// cut a text within a character; refused, it would end their conversation, in which the text stays.
absl::StatusOr<JsonDocument> ParseRequestJson(absl::string_view what, absl::string_view text);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_REQUEST_JSON_H_

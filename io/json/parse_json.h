// JSON from strangers, read within bounds, and JSON for them, always valid UTF-8.
#ifndef INLAY_IO_JSON_PARSE_JSON_H_
#define INLAY_IO_JSON_PARSE_JSON_H_

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace inlay {

using Json = nlohmann::ordered_json;

// The most lists and objects inside each other that are read.
inline constexpr size_t kMostJsonDepth = 128;

// What is wrong with a text in which nlohmann's parser finds an error: "is not JSON in UTF-8 at
// byte 7", or that a number is beyond a double's range.
std::string JsonFault(size_t byte, const std::string& token,
                      const nlohmann::json::exception& error);

// Makes `json` null without taking memory: its destructor takes some for all that is in it, and
// ends the process where there is none. Uses the stack in proportion to the depth.
void EmptyJson(Json& json) noexcept;

// A value, null at first, whose end takes no memory: one that somebody outside determines, who may
// have put lists and objects of any size into it. A copy that fails for lack of memory takes none
// for what it has copied until then. What was moved from is null.
class JsonDocument {
 public:
  JsonDocument() = default;
  explicit JsonDocument(const Json& json);
  explicit JsonDocument(Json&& json) noexcept : json_(std::move(json)) {}
  JsonDocument(const JsonDocument& other) : JsonDocument(*other) {}
  JsonDocument(JsonDocument&& other) noexcept = default;
  JsonDocument& operator=(JsonDocument other) noexcept {
    json_.swap(other.json_);
    return *this;
  }
  ~JsonDocument() { EmptyJson(json_); }

  const Json& operator*() const& { return json_; }
  Json& operator*() & { return json_; }
  // The value alone, whose end takes memory.
  Json operator*() && { return std::move(json_); }
  const Json* operator->() const { return &json_; }
  Json* operator->() { return &json_; }

 private:
  Json json_;
};

// The value that `text` holds. Of members with the same name the last one counts, at the place of
// the first. InvalidArgument, with `what` as its subject, for what is not JSON, not UTF-8, has a
// number beyond a double's range, nests deeper than kMostJsonDepth or holds more than `most_values`
// values, each list, object and what is in them counted; ResourceExhausted without memory. Time and
// memory grow linearly with the text: a value of two bytes of text takes at least 16.
absl::StatusOr<JsonDocument> ParseJson(absl::string_view what, absl::string_view text,
                                       size_t most_values = std::numeric_limits<size_t>::max());

// The member of this name; null, the JSON value, where there is none or `json` is no object.
const Json& JsonMember(const Json& json, const char* name);

// The text of a JSON string; empty where `json` is none.
std::string JsonString(const Json& json);

// `json` on one line. Bytes of its strings that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& json);
// The same of a value that is not needed any more, which is emptied.
std::string DumpJson(Json&& json);

}  // namespace inlay

#endif  // INLAY_IO_JSON_PARSE_JSON_H_

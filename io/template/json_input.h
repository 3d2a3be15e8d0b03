// Reads JSON as a template's input.
#ifndef INLAY_IO_TEMPLATE_JSON_INPUT_H_
#define INLAY_IO_TEMPLATE_JSON_INPUT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

// The value as Python's json.loads reads it: objects keep the order of their keys. All strings,
// keys included, are of `origin`. InvalidArgument for what is not JSON (in UTF-8), has a number
// beyond the range of a double or nests deeper than kMaxValueDepth.
absl::StatusOr<Value> ParseJson(absl::string_view json, Origin origin = Origin::kMessage);

// The same of JSON that was parsed, whose strings are UTF-8.
absl::StatusOr<Value> FromJson(const Json& json, Origin origin = Origin::kMessage);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_JSON_INPUT_H_

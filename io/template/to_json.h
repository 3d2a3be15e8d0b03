// The filter tojson as Hugging Face's tokenizers define it: Python's json.dumps.
#ifndef INLAY_IO_TEMPLATE_TO_JSON_H_
#define INLAY_IO_TEMPLATE_TO_JSON_H_

#include <optional>

#include "absl/status/statusor.h"
#include "io/template/budget.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<Text> indent;  // of each level; none: all on one line
  Text item_separator;         // between items, without the line break of an indent
  Text key_separator;
  bool sort_keys = false;
};

// The characters of a string keep its origins, also where they are escaped; the rest is the
// template's. InvalidArgument for what JSON has no value for, as undefined values.
absl::StatusOr<Text> ToJson(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_TO_JSON_H_

// The options of an answer as JSON, for what is written down and read again.
#ifndef INLAY_SERVE_API_OPTIONS_JSON_H_
#define INLAY_SERVE_API_OPTIONS_JSON_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "gemma_like/generation/generation.h"
#include "gemma_like/grammar/answer_shape.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

// What an answer depends on besides its prompt: {"sampling", "max_tokens" (null: no limit), "stop",
// "ignore_eos", "shown_control"}.
Json OptionsJson(const GenerateOptions& options);
// {"kind", "source", "in_order", "after"}.
Json ShapeJson(const AnswerShape& shape);

// The options that were written so, as members of `json`, without a grammar; the shape; and the
// reason of this name. All throw nlohmann's exceptions for what was not.
GenerateOptions OptionsOf(const Json& json);
AnswerShape ShapeOf(const Json& json);
StopReason StopReasonOf(const Json& name);

// A whole number within T's bounds. Throws one of nlohmann's exceptions for anything else, of which
// its own conversion makes some number.
template <class T>
T IntegerOf(const Json& json) {
  const bool is_negative = json.is_number_integer() && json.get<int64_t>() < 0;
  if (json.is_number_unsigned() || (json.is_number_integer() && !is_negative)) {
    const uint64_t value = json.get<uint64_t>();
    if (value <= static_cast<uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
  } else if (std::is_signed_v<T> && is_negative) {
    const int64_t value = json.get<int64_t>();
    if (value >= static_cast<int64_t>(std::numeric_limits<T>::min())) return static_cast<T>(value);
  }
  json.get<bool>();  // throws
  return T();
}

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_OPTIONS_JSON_H_

// Which calls of tools an answer may have, and how they are written.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_CALL_RULES_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_CALL_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"

namespace inlay {

struct CallRules {
  // What stands between the markers.
  enum class Syntax : uint8_t {
    kJson,       // a list of {"name": "f", "arguments": {...}}
    kTagged,     // one such object or one <function=f>...</function>; each has markers of its own
    kNamedJson,  // f[ARGS]{...}, each after a marker; a list as above where the vocabulary has no
                 // token [ARGS]
  };
  // What an answer is that does not call.
  enum class Otherwise : uint8_t {
    kNothing,  // there is no such answer
    kText,     // any text; there may also be text around calls
    kSchema,   // a value that is valid by `schema`
  };
  struct Tool {
    std::string name;
    // The JSON schema of its arguments; none: any JSON object.
    std::optional<JsonDocument> parameters = std::nullopt;
    bool in_order = false;  // members of objects in the arguments come in the order of the schema
  };

  Syntax syntax = Syntax::kJson;
  // The markers around calls; `end` may be empty.
  std::string begin = {}, end = {};
  // Around thoughts before the rest; empty: there are none.
  std::string think_begin = {}, think_end = {};
  std::vector<Tool> tools = {};
  bool one_call = false;  // at most one call
  Otherwise otherwise = Otherwise::kNothing;
  JsonDocument schema = {};
  bool schema_in_order = false;
};

// The rules as JSON on one line, which says the same wherever it is read.
std::string CallRulesJson(const CallRules& rules);

// Reads such JSON. InvalidArgument for another text.
absl::StatusOr<CallRules> ParseCallRules(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_CALL_RULES_H_

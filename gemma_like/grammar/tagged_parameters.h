// Which parameters of a tool can be written between tags, <parameter=x>...</parameter>.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_TAGGED_PARAMETERS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_TAGGED_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json/parse_json.h"

namespace inlay {

struct TaggedParameter {
  enum class Kind : uint8_t {
    kText,   // any text
    kWords,  // one of `words`
    kJson,   // JSON by its schema, which is at `place`
  };
  std::string name;
  bool required = false;
  Kind kind = Kind::kText;
  std::vector<std::string> words = {};
  std::string place = {};  // "#/properties/x"
};

// The parameters of a function, in the order of its schema. None where the schema asks for more
// than tags can keep: whoever reads them takes a parameter for text unless its schema names other
// types alone (see chat/call_blocks.h), so that only part of the schemas mean the same there.
std::optional<std::vector<TaggedParameter>> TaggedParametersOf(const Json& schema);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TAGGED_PARAMETERS_H_

// What a JSON schema asks of a value, taken apart by the kind of value.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_SHAPE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gemma_like/grammar/number_grammar.h"
#include "gemma_like/grammar/regex_parser.h"
#include "gemma_like/grammar/text_automaton.h"
#include "io/json/parse_json.h"

namespace inlay {

// Kinds of values, as bits.
enum JsonType : uint32_t {
  kNullType = 1,
  kBooleanType = 2,
  kNumberType = 4,
  kStringType = 8,
  kArrayType = 16,
  kObjectType = 32,
  kEveryType = 63,
};

// Schemas that hold together, each once: nodes of a SchemaDocument that are objects or false. None:
// anything is valid.
using SchemaSet = std::vector<const Json*>;

// What one schema says of the members of objects.
struct ObjectPart {
  const Json* properties;  // name to schema; null: none
  const Json* additional;  // the schema of the values of other names; null: anything
};

// What one schema says of the items of lists.
struct ArrayPart {
  std::vector<const Json*> prefix;  // the schemas of the first items
  const Json* rest;                 // the schema of the others; null: anything
};

// All of it must hold. Each constraint concerns values of one type; values of another need not
// satisfy it.
struct SchemaShape {
  static constexpr size_t kNoBound = std::numeric_limits<size_t>::max();

  uint32_t types = kEveryType;
  std::optional<std::vector<const Json*>> values;  // only these

  NumberConstraints number;

  size_t least_length = 0, most_length = kNoBound;  // code points of a string
  std::vector<const Regex*> regexes;                // of a string

  size_t least_items = 0, most_items = kNoBound;
  std::vector<ArrayPart> arrays;

  size_t least_properties = 0, most_properties = kNoBound;
  std::vector<ObjectPart> objects;
  std::vector<std::string> required;
  std::optional<std::vector<std::string>> names;  // no others

  // What it says of strings. Lives no longer than this.
  TextConstraints Text() const {
    return {regexes, least_length,
            most_length == kNoBound ? std::nullopt : std::optional<size_t>(most_length)};
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_SHAPE_H_

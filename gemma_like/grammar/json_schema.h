// JSON schemas as grammars.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_JSON_SCHEMA_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_JSON_SCHEMA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/json_values.h"
#include "gemma_like/grammar/schema_budget.h"

namespace inlay {

struct JsonSchemaOptions {
  // Members of objects come in the order of `properties`.
  bool in_order = false;
  // kAny also lets white space stand around the whole value.
  JsonSpace space = JsonSpace::kSerialized;
};

// JSON texts of values that are valid by `schema`, a JSON schema of draft 2020-12 or of an older
// one where that means the same.
//
// Every text of the grammar is valid. Not every valid text is in it: numbers have at most
// kMostWholeDigits and kMostFractionDigits and are integers only without point and exponent,
// strings out of a list and names have the spelling of JSON.stringify, and surrogates come in
// pairs.
//
// Errors are InvalidArgument and name the place in the schema: text that is not JSON, or no schema;
// a keyword that restricts values and is not supported; a regular expression or a combination that
// is not; a schema by which nothing is valid. A schema that would take too much time or memory is
// ResourceExhausted.
absl::StatusOr<std::shared_ptr<const Grammar>> CompileJsonSchema(
    absl::string_view schema, const JsonSchemaOptions& options = {});

// A schema in a document.
struct SchemaPlace {
  std::string pointer = "#";  // such as "#/properties/a"
  bool only_objects = false;  // other values are left out, whatever types the schema names
};

// The same texts as parts of another grammar: one part for each of `places` in `schema`. `values`
// makes the parts that schemas of one grammar share, with the white space of `options`. Lets
// std::bad_alloc out.
absl::StatusOr<std::vector<GrammarBuilder::Expr>> AddJsonSchema(
    GrammarBuilder& builder, JsonValues& values, absl::string_view schema,
    const JsonSchemaOptions& options, SchemaBudget& budget,
    const std::vector<SchemaPlace>& places = {SchemaPlace()});

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_JSON_SCHEMA_H_

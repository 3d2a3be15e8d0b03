// The keywords of JSON schema that restrict values (draft 2020-12 and older spellings of the same).
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_KEYWORDS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_KEYWORDS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/regex_parser.h"
#include "gemma_like/grammar/schema_document.h"
#include "gemma_like/grammar/schema_shape.h"

namespace inlay {

// Reads the keywords of schemas of one document. Every keyword is either understood, or known to
// say nothing about which values are valid, or an error that names it and its place.
class SchemaKeywords {
 public:
  explicit SchemaKeywords(const SchemaDocument& document) : document_(document) {}

  // Adds to `shape`, which refers to this, what an object's keywords say, but for $ref, allOf,
  // anyOf and oneOf. ResourceExhausted for a regular expression that is too large.
  absl::Status Add(const Json& schema, SchemaShape& shape);

  // A number for a value of the document: equal values have the same. The first time takes as long
  // as the value has bytes.
  size_t IdOf(const Json& value);

 private:
  using Adder = absl::Status (SchemaKeywords::*)(const Json& schema, absl::string_view keyword,
                                                 const Json& value, SchemaShape& shape);
  static const std::map<absl::string_view, Adder>& Adders();

  absl::Status AddType(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddEnum(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddConst(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddBound(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddMultipleOf(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddCount(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddPattern(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddFormat(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddRequired(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddPropertyNames(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddUniqueItems(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status AddPatternProperties(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status CheckId(const Json&, absl::string_view, const Json&, SchemaShape&);
  absl::Status CheckUnevaluated(const Json&, absl::string_view, const Json&, SchemaShape&);

  absl::Status AddItems(const Json& schema, SchemaShape& shape);
  absl::Status AddProperties(const Json& schema, SchemaShape& shape);
  absl::Status Unsupported(const Json& schema, absl::string_view keyword,
                           absl::string_view why = "") const;
  absl::StatusOr<const Json*> SubSchema(const Json& schema, absl::string_view keyword) const;
  absl::Status AddRegex(const std::string& pattern, const Json& value, SchemaShape& shape);

  const SchemaDocument& document_;
  // Keeps those of `values` that are in the list of `shape` too, if it has one.
  void Restrict(SchemaShape& shape, std::vector<const Json*> values);

  std::map<std::string, std::unique_ptr<const Regex>> regexes_;
  std::map<std::string, size_t> ids_;            // by CanonicalJson
  std::map<const Json*, size_t> ids_of_values_;  // that were asked for
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_KEYWORDS_H_

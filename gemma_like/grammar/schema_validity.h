// Whether values are valid by schemas, and whether schemas have values in common.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_VALIDITY_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_VALIDITY_H_

#include "absl/status/statusor.h"
#include "gemma_like/grammar/schema_reader.h"
#include "gemma_like/grammar/schema_shape.h"
#include "io/json/parse_json.h"

namespace inlay {

// Whether `value` is valid by the shape, but for its list of values.
absl::StatusOr<bool> IsValidBesideValues(SchemaReader& reader, const SchemaShape& shape,
                                         const Json& value);

// Whether no value is valid by both `a` and `b`, as far as is seen: false may be wrong.
absl::StatusOr<bool> AreDisjoint(SchemaReader& reader, const SchemaSet& a, const SchemaSet& b);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_VALIDITY_H_

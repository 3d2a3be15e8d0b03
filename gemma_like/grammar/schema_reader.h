// Takes JSON schemas apart into shapes: $ref is followed, and what holds together is put together.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_READER_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_READER_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/schema_budget.h"
#include "gemma_like/grammar/schema_document.h"
#include "gemma_like/grammar/schema_keywords.h"
#include "gemma_like/grammar/schema_shape.h"

namespace inlay {

class SchemaReader {
 public:
  // Both must outlive this.
  SchemaReader(const SchemaDocument& document, SchemaBudget& budget)
      : document_(document), keywords_(document), budget_(budget) {}

  // Schemas that stand for these: $ref followed where nothing is beside it, what allows everything
  // left out, each once. An error for one that refers to itself for the same value.
  absl::StatusOr<SchemaSet> Resolved(absl::Span<const Json* const> nodes);

  // A value is valid by all of `schemas`, which are resolved, if and only if it is by one of the
  // shapes, provided that the branches of every oneOf in OneOfs() are disjoint. They live as long
  // as this reader.
  absl::StatusOr<const std::vector<SchemaShape>*> Shapes(const SchemaSet& schemas);

  // The schemas that a schema chooses among, if it says nothing else; else none.
  absl::StatusOr<std::vector<const Json*>> Alternatives(const SchemaSet& schemas);

  // The branches of each oneOf that was read so far.
  const std::vector<const Json*>& one_ofs() const { return one_ofs_; }

  // The schemas that stand for a branch of these: itself, and where a discriminator stands beside
  // oneOf, one that requires the property by which it tells the branches apart.
  std::vector<const Json*> SchemasOf(const Json& branches, size_t index) const;

  // What shapes ask of the value of a name, of the value of any name that none of their schemas
  // lists, of an item.
  absl::StatusOr<SchemaSet> OfName(const SchemaShape& shape, absl::string_view name);
  absl::StatusOr<SchemaSet> OfOtherNames(const SchemaShape& shape);
  absl::StatusOr<SchemaSet> OfItem(const SchemaShape& shape, size_t index);

  // A number for a value of the document; equal values have the same.
  size_t IdOf(const Json& value) { return keywords_.IdOf(value); }

  // What regular expressions may still take.
  TextBudget& text_budget() { return budget_.text; }

  // Counts work; ResourceExhausted when it becomes too much.
  absl::Status Step(size_t steps = 1);

 private:
  struct Alternative;

  absl::Status Expand(Alternative alternative, std::vector<Alternative>* work,
                      std::vector<SchemaShape>* shapes);
  absl::StatusOr<bool> AddSchema(const Json& schema, Alternative* alternative);
  absl::StatusOr<const Json*> Branches(const Json& schema, absl::string_view keyword);
  absl::StatusOr<const Json*> FollowPlainRefs(const Json* node);
  absl::Status CheckCircles(const Json* node);
  absl::StatusOr<std::vector<const Json*>> SameValue(const Json& schema);

  const SchemaDocument& document_;
  SchemaKeywords keywords_;
  SchemaBudget& budget_;
  // Schemas whose values CheckCircles() went through; true: it is among the ones it is in.
  std::map<const Json*, bool> visited_;
  std::map<SchemaSet, std::vector<SchemaShape>> shapes_;  // by sorted schemas
  std::vector<const Json*> one_ofs_;
  std::set<const Json*> known_one_ofs_;
  std::map<const Json*, Json> discriminators_;  // by branches: {"required": [name]}
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_READER_H_

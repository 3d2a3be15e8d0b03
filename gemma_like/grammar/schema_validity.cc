#include "gemma_like/grammar/schema_validity.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "gemma_like/grammar/number_grammar.h"
#include "gemma_like/grammar/schema_document.h"
#include "gemma_like/grammar/text_automaton.h"

namespace inlay {
namespace {

// How deep schemas of members and items are compared.
constexpr size_t kMostComparedDepth = 4;

uint32_t TypeOf(const Json& value) {
  if (value.is_null()) return kNullType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_number()) return kNumberType;
  if (value.is_string()) return kStringType;
  return value.is_array() ? kArrayType : kObjectType;
}

absl::StatusOr<bool> IsValid(SchemaReader& reader, const SchemaSet& schemas, const Json& value);

absl::StatusOr<bool> HasValidItems(SchemaReader& reader, const SchemaShape& shape,
                                   const Json& list) {
  if (list.size() < shape.least_items || list.size() > shape.most_items) return false;
  for (size_t i = 0; i < list.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const SchemaSet schemas, reader.OfItem(shape, i));
    INLAY_ASSIGN_OR_RETURN(const bool is_valid, IsValid(reader, schemas, list[i]));
    if (!is_valid) return false;
  }
  return true;
}

absl::StatusOr<bool> HasValidMembers(SchemaReader& reader, const SchemaShape& shape,
                                     const Json& object) {
  if (object.size() < shape.least_properties || object.size() > shape.most_properties) return false;
  for (const std::string& name : shape.required)
    if (!object.contains(name)) return false;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (shape.names &&
        std::find(shape.names->begin(), shape.names->end(), name) == shape.names->end())
      return false;
    INLAY_ASSIGN_OR_RETURN(const SchemaSet schemas, reader.OfName(shape, name));
    INLAY_ASSIGN_OR_RETURN(const bool is_valid, IsValid(reader, schemas, value));
    if (!is_valid) return false;
  }
  return true;
}

absl::StatusOr<bool> IsValid(SchemaReader& reader, const SchemaShape& shape, const Json& value) {
  if (shape.values) {
    const size_t id = reader.IdOf(value);
    INLAY_RETURN_IF_ERROR(reader.Step(shape.values->size()));
    if (std::none_of(shape.values->begin(), shape.values->end(),
                     [&](const Json* listed) { return reader.IdOf(*listed) == id; }))
      return false;
  }
  return IsValidBesideValues(reader, shape, value);
}

absl::StatusOr<bool> IsValid(SchemaReader& reader, const SchemaSet& schemas, const Json& value) {
  INLAY_RETURN_IF_ERROR(reader.Step());
  INLAY_ASSIGN_OR_RETURN(const auto* shapes, reader.Shapes(schemas));
  for (const SchemaShape& shape : *shapes) {
    INLAY_ASSIGN_OR_RETURN(const bool is_valid, IsValid(reader, shape, value));
    if (is_valid) return true;
  }
  return false;
}

absl::StatusOr<bool> AreDisjoint(SchemaReader& reader, const SchemaSet& a, const SchemaSet& b,
                                 size_t depth);

// Whether none of the values of this type that `a` lists is valid by `b`.
absl::StatusOr<bool> ListsNoneOf(SchemaReader& reader, const SchemaShape& a, uint32_t type,
                                 const SchemaShape& b) {
  if (!a.values) return false;
  for (const Json* value : *a.values) {
    if (TypeOf(*value) != type) continue;
    INLAY_ASSIGN_OR_RETURN(const bool is_valid, IsValid(reader, b, *value));
    if (is_valid) return false;
  }
  return true;
}

// Whether no text satisfies both.
absl::StatusOr<bool> HaveNoText(SchemaReader& reader, const SchemaShape& a, const SchemaShape& b) {
  SchemaShape both;
  both.least_length = std::max(a.least_length, b.least_length);
  both.most_length = std::min(a.most_length, b.most_length);
  if (both.least_length > both.most_length) return true;
  if (a.regexes.empty() || b.regexes.empty()) return false;
  both.regexes = a.regexes;
  both.regexes.insert(both.regexes.end(), b.regexes.begin(), b.regexes.end());
  const absl::StatusOr<bool> exists = IsSatisfiable(both.Text(), reader.text_budget());
  return exists.ok() && !*exists;
}

absl::StatusOr<bool> HaveDisjointItems(SchemaReader& reader, const SchemaShape& a,
                                       const SchemaShape& b, size_t depth) {
  if (a.least_items > b.most_items || b.least_items > a.most_items) return true;
  constexpr size_t kMostItems = 20;
  const size_t always = std::min(std::max(a.least_items, b.least_items), kMostItems);
  for (size_t i = 0; i < always && depth > 0; ++i) {
    INLAY_ASSIGN_OR_RETURN(const SchemaSet of_a, reader.OfItem(a, i));
    INLAY_ASSIGN_OR_RETURN(const SchemaSet of_b, reader.OfItem(b, i));
    INLAY_ASSIGN_OR_RETURN(const bool disjoint, AreDisjoint(reader, of_a, of_b, depth - 1));
    if (disjoint) return true;
  }
  return false;
}

// A name that one of them requires decides if its values differ, or if it may not be in the other.
absl::StatusOr<bool> HaveDisjointMembers(SchemaReader& reader, const SchemaShape& a,
                                         const SchemaShape& b, size_t depth) {
  if (a.least_properties > b.most_properties || b.least_properties > a.most_properties) return true;
  for (const SchemaShape* shape : {&a, &b}) {
    for (const std::string& name : shape->required) {
      if (depth == 0) return false;
      INLAY_RETURN_IF_ERROR(reader.Step());
      INLAY_ASSIGN_OR_RETURN(const SchemaSet of_a, reader.OfName(a, name));
      INLAY_ASSIGN_OR_RETURN(const SchemaSet of_b, reader.OfName(b, name));
      INLAY_ASSIGN_OR_RETURN(const bool disjoint, AreDisjoint(reader, of_a, of_b, depth - 1));
      if (disjoint) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> AreDisjointOfType(SchemaReader& reader, uint32_t type, const SchemaShape& a,
                                       const SchemaShape& b, size_t depth) {
  INLAY_ASSIGN_OR_RETURN(const bool a_lists_none, ListsNoneOf(reader, a, type, b));
  if (a_lists_none) return true;
  INLAY_ASSIGN_OR_RETURN(const bool b_lists_none, ListsNoneOf(reader, b, type, a));
  if (b_lists_none) return true;
  switch (type) {
    case kNumberType:
      return a.number.least > b.number.most || b.number.least > a.number.most;
    case kStringType:
      return HaveNoText(reader, a, b);
    case kArrayType:
      return HaveDisjointItems(reader, a, b, depth);
    case kObjectType:
      return HaveDisjointMembers(reader, a, b, depth);
    default:
      return false;
  }
}

absl::StatusOr<bool> AreDisjoint(SchemaReader& reader, const SchemaSet& a, const SchemaSet& b,
                                 size_t depth) {
  INLAY_ASSIGN_OR_RETURN(const auto* shapes_a, reader.Shapes(a));
  INLAY_ASSIGN_OR_RETURN(const auto* shapes_b, reader.Shapes(b));
  // Pairs of schemas by which nothing is valid cost time too.
  if (shapes_a->empty() || shapes_b->empty()) INLAY_RETURN_IF_ERROR(reader.Step());
  for (const SchemaShape& of_a : *shapes_a) {
    for (const SchemaShape& of_b : *shapes_b) {
      INLAY_RETURN_IF_ERROR(reader.Step());
      for (uint32_t type = 1; type < kEveryType; type *= 2) {
        if ((of_a.types & of_b.types & type) == 0) continue;
        INLAY_ASSIGN_OR_RETURN(const bool disjoint,
                               AreDisjointOfType(reader, type, of_a, of_b, depth));
        if (!disjoint) return false;
      }
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> IsValidBesideValues(SchemaReader& reader, const SchemaShape& shape,
                                         const Json& value) {
  const uint32_t type = TypeOf(value);
  if ((shape.types & type) == 0) return false;
  switch (type) {
    case kNumberType: {
      const std::optional<absl::int128> integer = IntegerOf(value);
      return Satisfies(shape.number, value.get<double>()) &&
             (!integer || IsWithin(shape.number, *integer));
    }
    case kStringType:
      return Satisfies(shape.Text(), value.get_ref<const std::string&>(), reader.text_budget());
    case kArrayType:
      return HasValidItems(reader, shape, value);
    case kObjectType:
      return HasValidMembers(reader, shape, value);
    default:
      return true;
  }
}

absl::StatusOr<bool> AreDisjoint(SchemaReader& reader, const SchemaSet& a, const SchemaSet& b) {
  return AreDisjoint(reader, a, b, kMostComparedDepth);
}

}  // namespace inlay

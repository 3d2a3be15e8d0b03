#include "gemma_like/grammar/schema_reader.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

// Whether a schema has no keyword but `keyword` and ones that only describe.
bool HasOnly(const Json& schema, absl::string_view keyword) {
  const auto& members = schema.get_ref<const Json::object_t&>();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    const std::string& name = member.first;
    return name == keyword || name == "title" || name == "description" || name == "$comment" ||
           name == "default" || name == "examples" || name == "$defs" || name == "definitions" ||
           name == "$schema" || absl::StartsWith(name, "x-");
  });
}

// So many pointers and bytes are copied, and so many values are compared, in the time of a step.
constexpr size_t kCopiedPerStep = 16;
constexpr size_t kComparedPerStep = 4;

// What a copy of a shape takes, in steps.
size_t StepsToCopy(const SchemaShape& shape) {
  size_t small = shape.values ? shape.values->size() : 0;
  for (const ArrayPart& part : shape.arrays) small += part.prefix.size();
  size_t steps = shape.objects.size() + shape.arrays.size() + shape.regexes.size();
  const auto add_names = [&](const std::vector<std::string>& names) {
    steps += names.size();
    for (const std::string& name : names) small += name.size();
  };
  add_names(shape.required);
  if (shape.names) add_names(*shape.names);
  return steps + small / kCopiedPerStep;
}

// What reading the keywords of a schema into a shape takes, in steps.
size_t StepsToRead(const Json& schema, const SchemaShape& shape) {
  size_t steps = schema.size();
  for (const auto& [keyword, value] : schema.get_ref<const Json::object_t&>()) {
    if (value.is_structured()) steps += value.size() / kCopiedPerStep;
    // They are compared with those that there are.
    if ((keyword == "enum" || keyword == "const") && shape.values)
      steps += shape.values->size() / kComparedPerStep;
  }
  return steps;
}

}  // namespace

// A choice of branches that is being made: what is known, and what is still to be read.
struct SchemaReader::Alternative {
  SchemaShape shape;
  std::vector<const Json*> work;  // schemas to be read; the last one comes first
  std::set<const Json*> seen;
  std::vector<const Json*> choices;  // anyOf and oneOf whose branch is still to be chosen
};

absl::Status SchemaReader::Step(size_t steps) {
  if (steps <= budget_.steps) {
    budget_.steps -= steps;
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("the JSON schema has too many combinations of its parts");
}

absl::StatusOr<const Json*> SchemaReader::FollowPlainRefs(const Json* node) {
  while (node->is_object()) {
    const Json* ref = document_.Find(*node, "$ref");
    if (!ref || !HasOnly(*node, "$ref")) break;
    INLAY_RETURN_IF_ERROR(Step());
    INLAY_ASSIGN_OR_RETURN(node, document_.Resolve(*ref));
  }
  if (!node->is_object() && !node->is_boolean())
    return document_.Error(node, "is used as a schema and is none");
  return node;
}

absl::StatusOr<SchemaSet> SchemaReader::Resolved(absl::Span<const Json* const> nodes) {
  SchemaSet schemas;
  for (const Json* node : nodes) {
    INLAY_RETURN_IF_ERROR(Step());
    INLAY_RETURN_IF_ERROR(CheckCircles(node));
    INLAY_ASSIGN_OR_RETURN(node, FollowPlainRefs(node));
    const bool allows_all = *node == true || (node->is_object() && HasOnly(*node, ""));
    if (!allows_all && std::find(schemas.begin(), schemas.end(), node) == schemas.end())
      schemas.push_back(node);
  }
  return schemas;
}

absl::StatusOr<const Json*> SchemaReader::Branches(const Json& schema, absl::string_view keyword) {
  const Json* branches = document_.Find(schema, keyword);
  if (branches && (!branches->is_array() || branches->empty()))
    return document_.Error(branches, "must be a list of schemas, with at least one");
  if (branches && keyword == "oneOf" && known_one_ofs_.insert(branches).second) {
    one_ofs_.push_back(branches);
    const Json* discriminator = document_.Find(schema, "discriminator");
    const Json* name = discriminator && discriminator->is_object()
                           ? document_.Find(*discriminator, "propertyName")
                           : nullptr;
    if (name && name->is_string())
      discriminators_.emplace(branches, Json({{"required", Json::array({*name})}}));
  }
  return branches;
}

std::vector<const Json*> SchemaReader::SchemasOf(const Json& branches, size_t index) const {
  std::vector<const Json*> schemas = {&branches[index]};
  const auto discriminator = discriminators_.find(&branches);
  if (discriminator != discriminators_.end()) schemas.push_back(&discriminator->second);
  return schemas;
}

absl::StatusOr<std::vector<const Json*>> SchemaReader::Alternatives(const SchemaSet& schemas) {
  std::vector<const Json*> alternatives;
  if (schemas.size() != 1 || !schemas[0]->is_object()) return alternatives;
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!HasOnly(*schemas[0], keyword)) continue;
    INLAY_ASSIGN_OR_RETURN(const Json* branches, Branches(*schemas[0], keyword));
    if (!branches) continue;
    for (const Json& branch : *branches) alternatives.push_back(&branch);
  }
  return alternatives;
}

absl::StatusOr<const std::vector<SchemaShape>*> SchemaReader::Shapes(const SchemaSet& schemas) {
  SchemaSet key = schemas;
  std::sort(key.begin(), key.end());
  const auto known = shapes_.find(key);
  if (known != shapes_.end()) return &known->second;
  std::vector<SchemaShape> shapes;
  std::vector<Alternative> work(1);
  // The last one is read first, and the first one should be.
  work[0].work.assign(schemas.rbegin(), schemas.rend());
  while (!work.empty()) {
    Alternative alternative = std::move(work.back());
    work.pop_back();
    INLAY_RETURN_IF_ERROR(Expand(std::move(alternative), &work, &shapes));
  }
  return &shapes_.emplace(std::move(key), std::move(shapes)).first->second;
}

// Reads until a branch must be chosen, and leaves one alternative for each in `work`; or to the
// end.
absl::Status SchemaReader::Expand(Alternative alternative, std::vector<Alternative>* work,
                                  std::vector<SchemaShape>* shapes) {
  while (true) {
    while (!alternative.work.empty()) {
      const Json* schema = alternative.work.back();
      alternative.work.pop_back();
      INLAY_RETURN_IF_ERROR(Step());
      if (!alternative.seen.insert(schema).second) continue;
      INLAY_ASSIGN_OR_RETURN(const bool is_possible, AddSchema(*schema, &alternative));
      if (!is_possible) return absl::OkStatus();
    }
    if (alternative.choices.empty()) break;
    const Json* branches = alternative.choices.back();
    alternative.choices.pop_back();
    const size_t size =
        alternative.seen.size() + StepsToCopy(alternative.shape) + alternative.choices.size();
    for (size_t i = branches->size(); i-- > 0;) {
      INLAY_RETURN_IF_ERROR(Step(1 + size));
      Alternative chosen = alternative;
      for (const Json* schema : SchemasOf(*branches, i)) chosen.work.push_back(schema);
      work->push_back(std::move(chosen));
    }
    return absl::OkStatus();
  }
  if (alternative.shape.types == 0) return absl::OkStatus();
  // Kept as long as this reader, and so are those of the other alternatives.
  INLAY_RETURN_IF_ERROR(Step(StepsToCopy(alternative.shape)));
  shapes->push_back(std::move(alternative.shape));
  return absl::OkStatus();
}

// False if no value is valid.
absl::StatusOr<bool> SchemaReader::AddSchema(const Json& schema, Alternative* alternative) {
  if (schema.is_boolean()) return schema == true;
  if (!schema.is_object()) return document_.Error(&schema, "must be a schema");
  INLAY_RETURN_IF_ERROR(Step(StepsToRead(schema, alternative->shape)));
  INLAY_RETURN_IF_ERROR(keywords_.Add(schema, alternative->shape));
  for (const char* keyword : {"oneOf", "anyOf"}) {
    INLAY_ASSIGN_OR_RETURN(const Json* branches, Branches(schema, keyword));
    if (branches) alternative->choices.push_back(branches);
  }
  INLAY_ASSIGN_OR_RETURN(const Json* all, Branches(schema, "allOf"));
  for (size_t i = all ? all->size() : 0; i-- > 0;) alternative->work.push_back(&(*all)[i]);
  if (const Json* ref = document_.Find(schema, "$ref")) {
    INLAY_ASSIGN_OR_RETURN(const Json* target, document_.Resolve(*ref));
    alternative->work.push_back(target);
  }
  return true;
}

// The schemas by which a schema judges the same value.
absl::StatusOr<std::vector<const Json*>> SchemaReader::SameValue(const Json& schema) {
  std::vector<const Json*> schemas;
  if (!schema.is_object()) return schemas;
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    const Json* branches = document_.Find(schema, keyword);
    if (!branches || !branches->is_array()) continue;
    for (const Json& branch : *branches) schemas.push_back(&branch);
  }
  if (const Json* ref = document_.Find(schema, "$ref")) {
    INLAY_ASSIGN_OR_RETURN(const Json* target, document_.Resolve(*ref));
    schemas.push_back(target);
  }
  return schemas;
}

absl::Status SchemaReader::CheckCircles(const Json* node) {
  std::vector<std::pair<const Json*, bool>> work = {{node, false}};  // true: leave it
  while (!work.empty()) {
    const auto [schema, leave] = work.back();
    work.pop_back();
    INLAY_RETURN_IF_ERROR(Step());
    if (leave) {
      visited_[schema] = false;
      continue;
    }
    const auto [visited, is_new] = visited_.try_emplace(schema, true);
    if (!is_new && visited->second)
      return document_.Error(schema, "refers to itself for the same value");
    if (!is_new) continue;
    work.emplace_back(schema, true);
    INLAY_ASSIGN_OR_RETURN(const std::vector<const Json*> next, SameValue(*schema));
    for (const Json* same : next) work.emplace_back(same, false);
  }
  return absl::OkStatus();
}

absl::StatusOr<SchemaSet> SchemaReader::OfName(const SchemaShape& shape, absl::string_view name) {
  std::vector<const Json*> nodes;
  for (const ObjectPart& part : shape.objects) {
    const Json* node = part.properties ? document_.Find(*part.properties, name) : nullptr;
    if (!node) node = part.additional;
    if (node) nodes.push_back(node);
  }
  return Resolved(nodes);
}

absl::StatusOr<SchemaSet> SchemaReader::OfOtherNames(const SchemaShape& shape) {
  std::vector<const Json*> nodes;
  for (const ObjectPart& part : shape.objects)
    if (part.additional) nodes.push_back(part.additional);
  return Resolved(nodes);
}

absl::StatusOr<SchemaSet> SchemaReader::OfItem(const SchemaShape& shape, size_t index) {
  std::vector<const Json*> nodes;
  for (const ArrayPart& part : shape.arrays) {
    const Json* node = index < part.prefix.size() ? part.prefix[index] : part.rest;
    if (node) nodes.push_back(node);
  }
  return Resolved(nodes);
}

}  // namespace inlay

#include "gemma_like/grammar/tagged_parameters.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

const Json* Find(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

// Whether it has no member but these and ones that restrict nothing.
bool HasOnly(const Json& schema, std::initializer_list<absl::string_view> names) {
  constexpr absl::string_view kNotes[] = {"title",    "description", "default",    "examples",
                                          "$comment", "deprecated",  "readOnly",   "writeOnly",
                                          "$schema",  "$defs",       "definitions"};
  const auto has = [](const auto& list, const std::string& name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  const auto& members = schema.get_ref<const Json::object_t&>();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return has(kNotes, member.first) || has(names, member.first);
  });
}

// The types that a schema and the branches of its choice name, as a reader of tags sees them.
struct Types {
  bool any = false, text = false, null = false;
};

void AddTypes(const Json& schema, Types& types) {
  const Json* const type = schema.is_object() ? Find(schema, "type") : nullptr;
  if (type == nullptr) return;
  const Json list = type->is_array() ? *type : Json::array({*type});
  for (const Json& one : list) {
    if (!one.is_string()) continue;
    types.any = true;
    types.text |= absl::EqualsIgnoreCase(one.get_ref<const std::string&>(), "string");
    types.null |= absl::EqualsIgnoreCase(one.get_ref<const std::string&>(), "null");
  }
}

Types TypesOf(const Json& schema) {
  Types types;
  AddTypes(schema, types);
  for (const char* choice : {"anyOf", "oneOf"}) {
    const Json* const branches = Find(schema, choice);
    if (branches == nullptr || !branches->is_array()) continue;
    for (const Json& branch : *branches) AddTypes(branch, types);
  }
  return types;
}

// Whether every text is valid, and null too if the schema names it.
bool TakesAnyText(const Json& schema) {
  if (HasOnly(schema, {"type"})) return true;
  for (const char* choice : {"anyOf", "oneOf"}) {
    const Json* const branches = Find(schema, choice);
    if (!HasOnly(schema, {choice}) || branches == nullptr || !branches->is_array()) continue;
    const bool plain = std::all_of(branches->begin(), branches->end(), [](const Json& branch) {
      return branch.is_object() && branch.contains("type") && HasOnly(branch, {"type"});
    });
    const auto texts = std::count_if(branches->begin(), branches->end(), [](const Json& branch) {
      Types types;
      AddTypes(branch, types);
      return types.text;
    });
    return plain && texts == 1;
  }
  return false;
}

// The texts that a schema lists, if that is all that it asks for.
bool ReadWords(const Json& schema, bool null, std::vector<std::string>* words) {
  const Json* const list = Find(schema, "enum");
  if (list == nullptr || !list->is_array() || !HasOnly(schema, {"type", "enum"})) return false;
  for (const Json& value : *list) {
    if (value.is_null() && null) {
      words->emplace_back("null");
      continue;
    }
    if (!value.is_string()) return false;
    const std::string& word = value.get_ref<const std::string&>();
    const absl::string_view bare = absl::StripAsciiWhitespace(word);
    if (absl::StrContains(word, "</") || (null && (bare == "null" || bare == "None"))) return false;
    words->push_back(word);
  }
  return true;
}

bool ReadParameter(const Json& schema, TaggedParameter* parameter) {
  if (parameter->name.empty() || absl::StripAsciiWhitespace(parameter->name) != parameter->name ||
      parameter->name.find_first_of("<>\n") != std::string::npos)
    return false;
  if (!schema.is_object()) return false;
  const Types types = TypesOf(schema);
  if (types.any && !types.text) {
    parameter->kind = TaggedParameter::Kind::kJson;
    const std::string name =
        absl::StrReplaceAll(parameter->name, {{"~", "~0"}, {"/", "~1"}, {"%", "%25"}});
    parameter->place = absl::StrCat("#/properties/", name);
    return true;
  }
  if (TakesAnyText(schema)) return true;
  parameter->kind = TaggedParameter::Kind::kWords;
  return ReadWords(schema, types.null, &parameter->words);
}

}  // namespace

std::optional<std::vector<TaggedParameter>> TaggedParametersOf(const Json& schema) {
  // Arguments are never null, which "nullable" might let pass.
  if (!HasOnly(schema, {"type", "nullable", "properties", "required", "additionalProperties"}))
    return std::nullopt;
  std::vector<TaggedParameter> parameters;
  std::map<std::string, size_t> places;
  const Json* const properties = Find(schema, "properties");
  if (properties != nullptr && !properties->is_object()) return std::nullopt;
  if (properties != nullptr) {
    for (const auto& [name, property] : properties->items()) {
      places.emplace(name, parameters.size());
      parameters.push_back({.name = name});
      if (!ReadParameter(property, &parameters.back())) return std::nullopt;
    }
  }
  const Json* const required = Find(schema, "required");
  if (required != nullptr && !required->is_array()) return std::nullopt;
  for (size_t i = 0; required != nullptr && i < required->size(); ++i) {
    if (!(*required)[i].is_string()) return std::nullopt;
    const auto known = places.find((*required)[i].get_ref<const std::string&>());
    if (known == places.end()) return std::nullopt;
    parameters[known->second].required = true;
  }
  return parameters;
}

}  // namespace inlay

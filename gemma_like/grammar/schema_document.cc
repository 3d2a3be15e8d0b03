#include "gemma_like/grammar/schema_document.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/json_spelling.h"
#include "gemma_like/grammar/number_grammar.h"

namespace inlay {
namespace {

// Objects with more members get an index.
constexpr size_t kFewMembers = 8;
constexpr size_t kMostPointerSize = 200;

// The bytes that %XX in a fragment of a URI stand for; false if it is not written so.
bool PercentDecode(absl::string_view text, std::string* decoded) {
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text[0] != '%') {
      decoded->push_back(text[0]);
      continue;
    }
    uint32_t byte = 0;
    if (text.size() < 3 || !absl::SimpleHexAtoi(text.substr(1, 2), &byte)) return false;
    decoded->push_back(static_cast<char>(byte));
    text.remove_prefix(2);
  }
  return true;
}

void AppendCanonical(const Json& value, std::string* text) {
  if (value.is_string()) {
    text->append(JsonSpelling(value.get_ref<const std::string&>()));
  } else if (value.is_number()) {
    // A double may not hold an integer's digits. 12 and 12.0 are the same number.
    text->append(value.is_number_integer() ? value.dump() : JsonNumber(value.get<double>()));
  } else if (value.is_array()) {
    text->push_back('[');
    for (const Json& item : value) {
      AppendCanonical(item, text);
      text->push_back(',');
    }
    text->push_back(']');
  } else if (value.is_object()) {
    std::map<absl::string_view, const Json*> members;
    for (const auto& [name, member] : value.get_ref<const Json::object_t&>())
      members.emplace(name, &member);
    text->push_back('{');
    for (const auto& [name, member] : members) {
      absl::StrAppend(text, JsonSpelling(name), ":");
      AppendCanonical(*member, text);
      text->push_back(',');
    }
    text->push_back('}');
  } else {
    text->append(value.dump());
  }
}

}  // namespace

absl::StatusOr<SchemaDocument> SchemaDocument::Parse(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(JsonDocument root, ParseJson("the JSON schema", text));
  SchemaDocument document;
  document.root_ = std::make_unique<const JsonDocument>(std::move(root));
  document.AddPlaces();
  return document;
}

void SchemaDocument::AddChild(const Json& child, const Place& place,
                              std::vector<const Json*>* work) {
  places_.emplace(&child, place);
  if (child.is_structured()) work->push_back(&child);
}

void SchemaDocument::AddPlaces() {
  std::vector<const Json*> work;
  AddChild(*root(), {nullptr, nullptr, 0}, &work);
  while (!work.empty()) {
    const Json& node = *work.back();
    work.pop_back();
    if (node.is_array()) {
      for (size_t i = 0; i < node.size(); ++i) AddChild(node[i], {&node, nullptr, i}, &work);
      continue;
    }
    const auto& members = node.get_ref<const Json::object_t&>();
    Members* index = members.size() > kFewMembers ? &members_[&node] : nullptr;
    for (const auto& [name, value] : members) {
      AddChild(value, {&node, &name, 0}, &work);
      if (index) index->emplace(name, &value);
      if (name == "$anchor" && value.is_string())
        anchors_.emplace(value.get_ref<const std::string&>(), &node);
    }
  }
}

const Json* SchemaDocument::Find(const Json& object, absl::string_view name) const {
  const auto index = members_.find(&object);
  if (index != members_.end()) {
    const auto member = index->second.find(name);
    return member == index->second.end() ? nullptr : member->second;
  }
  for (const auto& [key, value] : object.get_ref<const Json::object_t&>())
    if (key == name) return &value;
  return nullptr;
}

std::string SchemaDocument::PointerTo(const Json* node) const {
  std::vector<std::string> tokens;
  for (auto place = places_.find(node); place != places_.end() && place->second.parent != nullptr;
       place = places_.find(place->second.parent)) {
    const auto& [parent, name, index] = place->second;
    tokens.push_back(name ? absl::StrReplaceAll(*name, {{"~", "~0"}, {"/", "~1"}})
                          : absl::StrCat(index));
  }
  std::string pointer = "#";
  for (size_t i = tokens.size(); i-- > 0;) {
    if (pointer.size() > kMostPointerSize) return pointer + "...";
    absl::StrAppend(&pointer, "/", PrintableName(tokens[i].substr(0, kMostPointerSize)));
  }
  return pointer;
}

absl::Status SchemaDocument::Error(const Json* node, absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("the JSON schema at ", PointerTo(node), " ", what));
}

absl::StatusOr<const Json*> SchemaDocument::Resolve(const Json& ref) const {
  if (!ref.is_string()) return Error(&ref, "must be a text");
  absl::string_view uri = ref.get_ref<const std::string&>();
  const Json* id = root()->is_object() ? Find(*root(), "$id") : nullptr;
  if (id && id->is_string())
    absl::ConsumePrefix(&uri, absl::StripSuffix(id->get_ref<const std::string&>(), "#"));
  std::string fragment;
  if ((!uri.empty() && !absl::ConsumePrefix(&uri, "#")) || !PercentDecode(uri, &fragment))
    return Error(&ref, "points outside of the schema, which is not supported");
  if (fragment.empty() || fragment[0] == '/') return Follow(fragment, ref);
  const auto anchor = anchors_.find(fragment);
  if (anchor == anchors_.end()) return Error(&ref, "points at an anchor that is not there");
  return anchor->second;
}

absl::StatusOr<const Json*> SchemaDocument::Follow(absl::string_view pointer,
                                                   const Json& ref) const {
  const Json* node = root();
  std::vector<std::string> tokens = absl::StrSplit(pointer, '/');
  for (size_t i = 1; i < tokens.size(); ++i) {
    const std::string token = absl::StrReplaceAll(tokens[i], {{"~1", "/"}, {"~0", "~"}});
    const Json* next = nullptr;
    size_t index = 0;
    if (node->is_object()) {
      next = Find(*node, token);
    } else if (node->is_array() && absl::SimpleAtoi(token, &index) && index < node->size()) {
      next = &(*node)[index];
    }
    if (!next) return Error(&ref, "points at nothing");
    node = next;
    if (node->is_object() && Find(*node, "$id") && i + 1 < tokens.size())
      return Error(&ref, "points into a schema with an $id of its own, which is not supported");
  }
  return node;
}

std::string CanonicalJson(const Json& value) {
  std::string text;
  AppendCanonical(value, &text);
  return text;
}

std::optional<absl::int128> IntegerOf(const Json& value) {
  if (value.is_number_unsigned()) return absl::int128(value.get<uint64_t>());
  if (value.is_number_integer()) return absl::int128(value.get<int64_t>());
  return std::nullopt;
}

}  // namespace inlay

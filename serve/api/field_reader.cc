#include "serve/api/field_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace inlay::serve {
namespace {

const Json& EmptyObject() {
  static const auto* const empty = new Json(Json::object());
  return *empty;
}

// A whole number that an int64_t holds, also where it is written as 2.0 or 2e3.
std::optional<int64_t> WholeNumber(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  const auto value = json.get<double>();
  // Beyond 2^53 a double stands for several whole numbers.
  if (std::abs(value) > 9007199254740992.0 || value != std::trunc(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

absl::string_view KindOf(const Json& json) {
  if (json.is_null()) return "null";
  if (json.is_boolean()) return json.get<bool>() ? "true" : "false";
  if (json.is_number()) return "a number";
  if (json.is_string()) return "a string";
  return json.is_array() ? "a list" : "an object";
}

void Complain(absl::Status* error, absl::string_view sentence) {
  if (error->ok()) *error = absl::InvalidArgumentError(sentence);
}

FieldReader::FieldReader(const Json& object, std::string path, absl::Status* error)
    : object_(object.is_object() ? object : EmptyObject()), path_(std::move(path)), error_(error) {
  if (object.is_object()) return;
  Complain(error_, absl::StrCat(path_.empty() ? "the body" : path_, " must be an object, not ",
                                KindOf(object)));
}

std::string FieldReader::Path(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

void FieldReader::Fail(absl::string_view key, absl::string_view sentence) {
  Complain(error_, absl::StrCat(Path(key), " ", sentence));
}

const Json* FieldReader::Find(absl::string_view key) {
  std::string name(key);
  const auto found = object_.find(name);
  known_.push_back(std::move(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json* FieldReader::FindTyped(absl::string_view key, bool (*has_type)(const Json&),
                                   absl::string_view kind) {
  const Json* const value = Find(key);
  if (value == nullptr || has_type(*value)) return value;
  Fail(key, absl::StrCat("must be ", kind, ", not ", KindOf(*value)));
  return nullptr;
}

const Json* FieldReader::List(absl::string_view key) {
  return FindTyped(
      key, [](const Json& json) { return json.is_array(); }, "a list");
}

const Json* FieldReader::Object(absl::string_view key) {
  return FindTyped(
      key, [](const Json& json) { return json.is_object(); }, "an object");
}

std::optional<std::string> FieldReader::Text(absl::string_view key) {
  const Json* const value = FindTyped(
      key, [](const Json& json) { return json.is_string(); }, "a string");
  if (value == nullptr) return std::nullopt;
  return value->get<std::string>();
}

std::optional<bool> FieldReader::Bool(absl::string_view key) {
  const Json* const value = FindTyped(
      key, [](const Json& json) { return json.is_boolean(); }, "true or false");
  if (value == nullptr) return std::nullopt;
  return value->get<bool>();
}

std::optional<double> FieldReader::Number(absl::string_view key, double least, double most) {
  const Json* const value = FindTyped(
      key, [](const Json& json) { return json.is_number(); }, "a number");
  if (value == nullptr) return std::nullopt;
  const auto number = value->get<double>();
  if (number >= least && number <= most) return number;
  Fail(key, absl::StrCat("must be a number from ", least, " to ", most, ", not ", value->dump()));
  return std::nullopt;
}

std::optional<int64_t> FieldReader::Integer(absl::string_view key, int64_t least, int64_t most) {
  const Json* const value = FindTyped(
      key, [](const Json& json) { return json.is_number(); }, "a whole number");
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = WholeNumber(*value);
  if (number.has_value() && *number >= least && *number <= most) return number;
  Fail(key,
       absl::StrCat("must be a whole number from ", least, " to ", most, ", not ", value->dump()));
  return std::nullopt;
}

std::optional<std::string> FieldReader::Choice(absl::string_view key,
                                               std::initializer_list<absl::string_view> choices) {
  std::optional<std::string> text = Text(key);
  if (!text.has_value()) return text;
  if (std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  Fail(key,
       absl::StrCat("must be ", absl::StrJoin(choices, " or "), ", not ", QuoteForMessage(*text)));
  return std::nullopt;
}

const Json* FieldReader::NeedList(absl::string_view key) {
  const Json* const list = List(key);
  if (list == nullptr) Fail(key, "must be given");
  return list;
}

std::string FieldReader::NeedText(absl::string_view key) {
  std::optional<std::string> text = Text(key);
  if (!text.has_value()) Fail(key, "must be given");
  return std::move(text).value_or("");
}

void FieldReader::NoEffect(std::initializer_list<absl::string_view> keys) {
  for (absl::string_view key : keys) known_.emplace_back(key);
}

void FieldReader::Refuse(absl::string_view key, absl::string_view sentence) {
  const Json* const value = Find(key);
  if (value == nullptr || *value == false || *value == "") return;
  if (value->is_structured() && value->empty()) return;
  Fail(key, sentence);
}

void FieldReader::Finish() {
  if (!error_->ok()) return;
  for (const auto& [key, value] : object_.items()) {
    // Null, [] and {} say as much as leaving it out: clients write all members that they know so.
    if (value.is_null() || (value.is_structured() && value.empty())) continue;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    Fail(QuoteForMessage(key), "is not a field that this server knows");
    return;
  }
}

}  // namespace inlay::serve

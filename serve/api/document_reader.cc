#include "serve/api/document_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "serve/api/field_reader.h"

namespace inlay::serve {
namespace {

const Json& Nothing(Json::value_t type) {
  static const auto* const null = new Json(nullptr);
  static const auto* const list = new Json(Json::array());
  static const auto* const object = new Json(Json::object());
  if (type == Json::value_t::array) return *list;
  return type == Json::value_t::object ? *object : *null;
}

}  // namespace

std::optional<float> FloatOf(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const auto value = json.get<double>();
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return std::nullopt;
  return static_cast<float>(value);
}

DocumentReader::DocumentReader(const Json& object, std::string path, absl::Status* error)
    : object_(object.is_object() ? object : Nothing(Json::value_t::object)),
      path_(std::move(path)),
      error_(error) {
  if (object.is_object()) return;
  Complain(error_, absl::StrCat(path_.empty() ? "the document" : path_, " must be an object, not ",
                                KindOf(object)));
}

std::string DocumentReader::Path(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

void DocumentReader::Fail(absl::string_view key, absl::string_view sentence) const {
  Complain(error_, absl::StrCat(Path(key), " ", sentence));
}

void DocumentReader::FailType(absl::string_view key, absl::string_view kind,
                              const Json& value) const {
  const std::string found = value.is_number() ? value.dump() : std::string(KindOf(value));
  Fail(key, absl::StrCat("must be ", kind, ", not ", found));
}

const Json& DocumentReader::Any(absl::string_view key) const {
  const auto found = object_.find(std::string(key));
  if (found != object_.end()) return *found;
  Fail(key, "is missing");
  return Nothing(Json::value_t::null);
}

const Json& DocumentReader::List(absl::string_view key) const {
  const Json& value = Any(key);
  if (value.is_array()) return value;
  FailType(key, "a list", value);
  return Nothing(Json::value_t::array);
}

const Json& DocumentReader::Object(absl::string_view key) const {
  const Json& value = Any(key);
  if (value.is_object()) return value;
  FailType(key, "an object", value);
  return Nothing(Json::value_t::object);
}

std::string DocumentReader::Text(absl::string_view key) const {
  const Json& value = Any(key);
  if (value.is_string()) return value.get<std::string>();
  FailType(key, "a string", value);
  return "";
}

std::vector<std::string> DocumentReader::Texts(absl::string_view key) const {
  std::vector<std::string> texts;
  for (const Json& value : List(key)) {
    if (!value.is_string()) {
      FailType(absl::StrCat(key, "[", texts.size(), "]"), "a string", value);
      return {};
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

bool DocumentReader::Bool(absl::string_view key) const {
  const Json& value = Any(key);
  if (value.is_boolean()) return value.get<bool>();
  FailType(key, "true or false", value);
  return false;
}

float DocumentReader::Float(absl::string_view key) const {
  const Json& value = Any(key);
  if (const std::optional<float> number = FloatOf(value)) return *number;
  FailType(key, "a number within the bounds of a float", value);
  return 0;
}

size_t DocumentReader::Choice(absl::string_view key,
                              absl::Span<const absl::string_view> names) const {
  const std::string text = Text(key);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  Fail(key,
       absl::StrCat("must be ", absl::StrJoin(names, " or "), ", not ", QuoteForMessage(text)));
  return 0;
}

DocumentReader DocumentReader::Part(absl::string_view key) const {
  return {Object(key), Path(key), error_};
}

}  // namespace inlay::serve

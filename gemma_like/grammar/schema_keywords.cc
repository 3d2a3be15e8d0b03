#include "gemma_like/grammar/schema_keywords.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/string_formats.h"

namespace inlay {
namespace {

// Say nothing about which values are valid, or are read with the keywords beside them.
bool IsSilent(absl::string_view keyword) {
  static const auto& silent = *new std::set<absl::string_view>(
      {"$schema", "$comment", "$anchor", "$vocabulary", "$defs", "definitions", "components",
       "title", "description", "default", "example", "examples", "deprecated", "readOnly",
       "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "discriminator", "xml",
       "externalDocs", "nullable",
       // SchemaReader's
       "$ref", "allOf", "anyOf", "oneOf",
       // AddItems() and AddProperties()
       "items", "prefixItems", "additionalItems", "properties", "additionalProperties"});
  return silent.contains(keyword) || absl::StartsWith(keyword, "x-");
}

// The names of what is in a list of texts; none if it is something else.
std::optional<std::vector<std::string>> TextsOf(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& item : list) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

uint32_t TypeNamed(absl::string_view name) {
  static constexpr std::pair<absl::string_view, JsonType> kTypes[] = {
      {"null", kNullType},     {"boolean", kBooleanType}, {"integer", kNumberType},
      {"number", kNumberType}, {"string", kStringType},   {"array", kArrayType},
      {"object", kObjectType}};
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  return 0;
}

// Adds a bound to those that there are.
void Bound(NumberConstraints& number, bool is_least, double bound,
           std::optional<absl::int128> integer) {
  if (is_least) {
    number.least = std::max(number.least, bound);
    if (integer) number.least_integer = std::max(number.least_integer.value_or(*integer), *integer);
  } else {
    number.most = std::min(number.most, bound);
    if (integer) number.most_integer = std::min(number.most_integer.value_or(*integer), *integer);
  }
}

// A format of integers: its least and its most. schemars writes isize and usize as int and uint.
struct IntegerFormat {
  absl::string_view name;
  absl::int128 least, most;
};

const IntegerFormat* FindIntegerFormat(absl::string_view name) {
  const auto with_sign = [](absl::string_view format, int bits) -> IntegerFormat {
    const absl::int128 beyond = absl::int128(1) << (bits - 1);
    return {format, -beyond, beyond - 1};
  };
  const auto without = [](absl::string_view format, int bits) -> IntegerFormat {
    return {format, 0, (absl::int128(1) << bits) - 1};
  };
  static const auto& formats = *new std::vector<IntegerFormat>(
      {with_sign("int8", 8), with_sign("int16", 16), with_sign("int32", 32), with_sign("int64", 64),
       with_sign("int", 64), without("uint8", 8), without("uint16", 16), without("uint32", 32),
       without("uint64", 64), without("uint", 64)});
  const auto known = std::find_if(formats.begin(), formats.end(),
                                  [&](const IntegerFormat& format) { return format.name == name; });
  return known == formats.end() ? nullptr : &*known;
}

// Say nothing that could be kept to here.
bool IsSilentFormat(absl::string_view name) {
  static constexpr absl::string_view kSilent[] = {"password",       "binary", "path",  "file-path",
                                                  "directory-path", "float",  "double"};
  return std::find(std::begin(kSilent), std::end(kSilent), name) != std::end(kSilent);
}

bool IsSchema(const Json& value) { return value.is_object() || value.is_boolean(); }

}  // namespace

const std::map<absl::string_view, SchemaKeywords::Adder>& SchemaKeywords::Adders() {
  using K = SchemaKeywords;
  static const auto& adders =
      *new std::map<absl::string_view, Adder>({{"$id", &K::CheckId},
                                               {"id", &K::CheckId},
                                               {"type", &K::AddType},
                                               {"enum", &K::AddEnum},
                                               {"const", &K::AddConst},
                                               {"minimum", &K::AddBound},
                                               {"maximum", &K::AddBound},
                                               {"exclusiveMinimum", &K::AddBound},
                                               {"exclusiveMaximum", &K::AddBound},
                                               {"multipleOf", &K::AddMultipleOf},
                                               {"minLength", &K::AddCount},
                                               {"maxLength", &K::AddCount},
                                               {"minItems", &K::AddCount},
                                               {"maxItems", &K::AddCount},
                                               {"minProperties", &K::AddCount},
                                               {"maxProperties", &K::AddCount},
                                               {"pattern", &K::AddPattern},
                                               {"format", &K::AddFormat},
                                               {"required", &K::AddRequired},
                                               {"propertyNames", &K::AddPropertyNames},
                                               {"patternProperties", &K::AddPatternProperties},
                                               {"uniqueItems", &K::AddUniqueItems},
                                               {"unevaluatedItems", &K::CheckUnevaluated},
                                               {"unevaluatedProperties", &K::CheckUnevaluated}});
  return adders;
}

absl::Status SchemaKeywords::Add(const Json& schema, SchemaShape& shape) {
  for (const auto& [keyword, value] : schema.get_ref<const Json::object_t&>()) {
    const auto adder = Adders().find(keyword);
    if (adder != Adders().end()) {
      INLAY_RETURN_IF_ERROR((this->*adder->second)(schema, keyword, value, shape));
    } else if (!IsSilent(keyword)) {
      return Unsupported(schema, keyword);
    }
  }
  INLAY_RETURN_IF_ERROR(AddItems(schema, shape));
  return AddProperties(schema, shape);
}

size_t SchemaKeywords::IdOf(const Json& value) {
  const auto known = ids_of_values_.find(&value);
  if (known != ids_of_values_.end()) return known->second;
  const size_t id = ids_.try_emplace(CanonicalJson(value), ids_.size()).first->second;
  return ids_of_values_[&value] = id;
}

void SchemaKeywords::Restrict(SchemaShape& shape, std::vector<const Json*> values) {
  if (shape.values) {
    std::set<size_t> known;
    for (const Json* value : *shape.values) known.insert(IdOf(*value));
    values.erase(std::remove_if(values.begin(), values.end(),
                                [&](const Json* value) { return !known.contains(IdOf(*value)); }),
                 values.end());
  }
  shape.values = std::move(values);
}

absl::Status SchemaKeywords::Unsupported(const Json& schema, absl::string_view keyword,
                                         absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "the JSON schema's keyword ", QuoteForMessage(keyword), " at ", document_.PointerTo(&schema),
      " is not supported", why.empty() ? "" : ": ", why));
}

absl::Status SchemaKeywords::CheckId(const Json& schema, absl::string_view keyword, const Json&,
                                     SchemaShape&) {
  if (&schema == document_.root()) return absl::OkStatus();
  return Unsupported(schema, keyword, "it may only stand at the root");
}

absl::Status SchemaKeywords::AddType(const Json& schema, absl::string_view, const Json& value,
                                     SchemaShape& shape) {
  const auto names =
      value.is_string() ? std::vector<std::string>{value.get<std::string>()} : TextsOf(value);
  if (!names) return document_.Error(&value, "must be the name of a type or a list of such names");
  uint32_t types = 0;
  bool whole = false, fraction = false;
  for (const std::string& name : *names) {
    const uint32_t type = TypeNamed(name);
    if (type == 0)
      return document_.Error(&value, absl::StrCat("names no type: ", QuoteForMessage(name)));
    types |= type;
    whole = whole || name == "integer";
    fraction = fraction || name == "number";
  }
  const Json* nullable = document_.Find(schema, "nullable");
  if (nullable && *nullable == true) types |= kNullType;
  shape.types &= types;
  if (whole && !fraction) shape.number.whole = true;
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddEnum(const Json&, absl::string_view, const Json& value,
                                     SchemaShape& shape) {
  if (!value.is_array()) return document_.Error(&value, "must be a list of values");
  std::vector<const Json*> values;
  for (const Json& item : value) values.push_back(&item);
  Restrict(shape, std::move(values));
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddConst(const Json&, absl::string_view, const Json& value,
                                      SchemaShape& shape) {
  Restrict(shape, {&value});
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddBound(const Json&, absl::string_view keyword, const Json& value,
                                      SchemaShape& shape) {
  if (!value.is_number()) return document_.Error(&value, "must be a number");
  const bool is_least = absl::EndsWithIgnoreCase(keyword, "minimum");
  const bool is_exclusive = absl::StartsWith(keyword, "exclusive");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double bound = value.get<double>();
  std::optional<absl::int128> integer = IntegerOf(value);
  if (is_exclusive) {
    bound = std::nextafter(bound, is_least ? kInfinity : -kInfinity);
    if (integer) *integer += is_least ? 1 : -1;
    // Beyond 2^53 the next integer may have the same double.
    if (integer && static_cast<double>(*integer) == value.get<double>())
      integer = absl::int128(bound);
  }
  Bound(shape.number, is_least, bound, integer);
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddMultipleOf(const Json& schema, absl::string_view keyword,
                                           const Json& value, SchemaShape& shape) {
  if (!value.is_number() || value.get<double>() <= 0)
    return document_.Error(&value, "must be a number above 0");
  const double factor = value.get<double>();
  uint32_t halvings = 0;
  double whole = factor;
  for (; halvings < kMostHalvings && whole != std::floor(whole); ++halvings) whole *= 2;
  uint64_t divisor = whole == std::floor(whole) && whole <= kMostDivisor
                         ? static_cast<uint64_t>(whole)
                         : kMostDivisor + 1;
  NumberConstraints& number = shape.number;
  if (number.divisor != 0) {  // the least common multiple
    const uint32_t shared = std::max(halvings, number.halvings);
    divisor = std::lcm(divisor << (shared - halvings),
                       uint64_t{number.divisor} << (shared - number.halvings));
    for (halvings = shared; halvings > 0 && divisor % 2 == 0; --halvings) divisor /= 2;
  }
  const auto fives = static_cast<uint64_t>(std::pow(5, halvings));
  if (divisor * fives > kMostDivisor)
    return Unsupported(schema, keyword,
                       absl::StrCat("it must be a whole number up to ", kMostDivisor,
                                    ", or one with .5, .25, .75 up to a fraction of that; "
                                    "validators do not agree about other fractions"));
  number.divisor = static_cast<uint32_t>(divisor);
  number.halvings = halvings;
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddCount(const Json&, absl::string_view keyword, const Json& value,
                                      SchemaShape& shape) {
  constexpr double kMost = 1e15;
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number < 0 || number != std::floor(number))
    return document_.Error(&value, "must be a whole number of at least 0");
  const auto count = static_cast<size_t>(std::min(number, kMost));
  const auto raise = [&](size_t& least) { least = std::max(least, count); };
  const auto lower = [&](size_t& most) { most = std::min(most, count); };
  if (keyword == "minLength") raise(shape.least_length);
  if (keyword == "maxLength") lower(shape.most_length);
  if (keyword == "minItems") raise(shape.least_items);
  if (keyword == "maxItems") lower(shape.most_items);
  if (keyword == "minProperties") raise(shape.least_properties);
  if (keyword == "maxProperties") lower(shape.most_properties);
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddRegex(const std::string& pattern, const Json& value,
                                      SchemaShape& shape) {
  const auto [known, is_new] = regexes_.try_emplace(pattern);
  if (is_new) {
    absl::StatusOr<Regex> regex = ParseRegex(pattern);
    if (!regex.ok())
      return document_.Error(&value, absl::StrCat("is not supported: ", regex.status().message()));
    known->second = std::make_unique<const Regex>(*std::move(regex));
  }
  const Regex* regex = known->second.get();
  auto& regexes = shape.regexes;
  if (std::find(regexes.begin(), regexes.end(), regex) == regexes.end()) regexes.push_back(regex);
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddPattern(const Json&, absl::string_view, const Json& value,
                                        SchemaShape& shape) {
  if (!value.is_string()) return document_.Error(&value, "must be a text");
  return AddRegex(value.get<std::string>(), value, shape);
}

absl::Status SchemaKeywords::AddFormat(const Json& schema, absl::string_view keyword,
                                       const Json& value, SchemaShape& shape) {
  if (!value.is_string()) return document_.Error(&value, "must be a text");
  const std::string format = value.get<std::string>();
  if (IsSilentFormat(format)) return absl::OkStatus();
  if (const IntegerFormat* integers = FindIntegerFormat(format)) {
    shape.number.whole = true;
    Bound(shape.number, true, static_cast<double>(integers->least), integers->least);
    Bound(shape.number, false, static_cast<double>(integers->most), integers->most);
    return absl::OkStatus();
  }
  const std::optional<std::string> pattern = StringFormat(format);
  // Libraries write a format of their own beside the pattern that says what it means.
  if (!pattern && document_.Find(schema, "pattern")) return absl::OkStatus();
  if (!pattern)
    return Unsupported(schema, keyword,
                       absl::StrCat("no format ", QuoteForMessage(format), " is known here"));
  return AddRegex(*pattern, value, shape);
}

absl::Status SchemaKeywords::AddRequired(const Json&, absl::string_view, const Json& value,
                                         SchemaShape& shape) {
  auto names = TextsOf(value);
  if (!names) return document_.Error(&value, "must be a list of names");
  std::set<std::string> known(shape.required.begin(), shape.required.end());
  for (std::string& name : *names)
    if (known.insert(name).second) shape.required.push_back(std::move(name));
  return absl::OkStatus();
}

// Names that are any text at all, or out of a list.
absl::Status SchemaKeywords::AddPropertyNames(const Json& schema, absl::string_view keyword,
                                              const Json& names_schema, SchemaShape& shape) {
  constexpr size_t kMostRefs = 100;  // of which each is what the one before refers to
  const Json* target = &names_schema;
  for (size_t i = 0; i < kMostRefs && target->is_object() && target->size() == 1; ++i) {
    const Json* ref = document_.Find(*target, "$ref");
    if (!ref) break;
    INLAY_ASSIGN_OR_RETURN(target, document_.Resolve(*ref));
  }
  const Json& value = *target;
  if (value == true) return absl::OkStatus();
  std::optional<std::vector<std::string>> names;
  bool is_supported = value.is_object();
  for (const auto& [name, part] :
       value.is_object() ? value.get_ref<const Json::object_t&>() : Json::object_t()) {
    if (name == "type" && part == "string") continue;
    if (name == "enum") names = TextsOf(part);
    if (name == "const" && part.is_string()) names = {part.get<std::string>()};
    const bool is_understood = (name == "enum" || name == "const")
                                   ? names.has_value()
                                   : name == "title" || name == "description" || name == "$comment";
    is_supported = is_supported && is_understood;
  }
  if (value.is_object() && value.contains("enum") && value.contains("const")) is_supported = false;
  if (!is_supported)
    return Unsupported(schema, keyword, "only {\"type\": \"string\"} and an enum of names are");
  if (!names) return absl::OkStatus();
  if (shape.names) {
    const std::set<std::string> known(shape.names->begin(), shape.names->end());
    names->erase(std::remove_if(names->begin(), names->end(),
                                [&](const std::string& name) { return !known.contains(name); }),
                 names->end());
  }
  shape.names = std::move(names);
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddPatternProperties(const Json& schema, absl::string_view keyword,
                                                  const Json& value, SchemaShape&) {
  if (value.is_object() && value.empty()) return absl::OkStatus();
  return Unsupported(schema, keyword);
}

absl::Status SchemaKeywords::AddUniqueItems(const Json& schema, absl::string_view keyword,
                                            const Json& value, SchemaShape&) {
  if (value == false) return absl::OkStatus();
  return Unsupported(schema, keyword);
}

// Stands for `items` and `additionalProperties` where no other schema beside it looks at the same
// value.
absl::Status SchemaKeywords::CheckUnevaluated(const Json& schema, absl::string_view keyword,
                                              const Json& value, SchemaShape&) {
  if (value == true) return absl::OkStatus();
  for (const char* other : {"$ref", "allOf", "anyOf", "oneOf"})
    if (document_.Find(schema, other))
      return Unsupported(schema, keyword, absl::StrCat("it stands beside '", other, "'"));
  return absl::OkStatus();
}

absl::StatusOr<const Json*> SchemaKeywords::SubSchema(const Json& schema,
                                                      absl::string_view keyword) const {
  const Json* value = document_.Find(schema, keyword);
  if (value && !IsSchema(*value)) return document_.Error(value, "must be a schema");
  return value;
}

absl::Status SchemaKeywords::AddItems(const Json& schema, SchemaShape& shape) {
  ArrayPart part = {{}, nullptr};
  const Json* prefix = document_.Find(schema, "prefixItems");
  const Json* items = document_.Find(schema, "items");
  absl::string_view rest = "items";
  if (!prefix && items && items->is_array()) {  // before 2020-12
    prefix = items;
    rest = "additionalItems";
  }
  if (prefix) {
    if (!prefix->is_array()) return document_.Error(prefix, "must be a list of schemas");
    for (const Json& item : *prefix) {
      if (!IsSchema(item)) return document_.Error(&item, "must be a schema");
      part.prefix.push_back(&item);
    }
  }
  INLAY_ASSIGN_OR_RETURN(part.rest, SubSchema(schema, rest));
  if (!part.rest) {
    INLAY_ASSIGN_OR_RETURN(part.rest, SubSchema(schema, "unevaluatedItems"));
  }
  if (part.rest || !part.prefix.empty()) shape.arrays.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status SchemaKeywords::AddProperties(const Json& schema, SchemaShape& shape) {
  ObjectPart part = {document_.Find(schema, "properties"), nullptr};
  if (part.properties) {
    if (!part.properties->is_object())
      return document_.Error(part.properties, "must be an object of schemas");
    for (const auto& [name, value] : part.properties->get_ref<const Json::object_t&>())
      if (!IsSchema(value)) return document_.Error(&value, "must be a schema");
  }
  INLAY_ASSIGN_OR_RETURN(part.additional, SubSchema(schema, "additionalProperties"));
  if (!part.additional) {
    INLAY_ASSIGN_OR_RETURN(part.additional, SubSchema(schema, "unevaluatedProperties"));
  }
  if (part.properties || part.additional) shape.objects.push_back(part);
  return absl::OkStatus();
}

}  // namespace inlay

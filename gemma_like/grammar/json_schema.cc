#include "gemma_like/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/json_values.h"
#include "gemma_like/grammar/schema_budget.h"
#include "gemma_like/grammar/schema_document.h"
#include "gemma_like/grammar/schema_reader.h"
#include "gemma_like/grammar/schema_shape.h"
#include "gemma_like/grammar/schema_validity.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;
using Rule = GrammarBuilder::Rule;

// How much a number adds to a grammar: multiples have a rule for each remainder, with an option for
// each digit, at each of fifteen places.
size_t Cost(const NumberConstraints& number) {
  return 10 + size_t{150} * number.divisor * static_cast<size_t>(std::pow(5, number.halvings));
}

// Said where no number satisfies them.
std::string WhyNoNumber(const NumberConstraints& number) {
  if (number.least > number.most) return "its minimum is above its maximum";
  if (number.divisor != 0)
    return absl::StrCat("no multiple of its multipleOf with at most ", kMostMultipleDigits,
                        " digits is between its minimum and its maximum");
  return "no number of its type is between its minimum and its maximum";
}

// Whether one of them is false.
bool IsNone(const SchemaSet& schemas) {
  return std::any_of(schemas.begin(), schemas.end(),
                     [](const Json* schema) { return *schema == false; });
}

// A schema that is not in the document, so that "$ref": "#" keeps its meaning beside it.
const Json& OnlyObjects() {
  static const auto& schema = *new Json({{"type", "object"}});
  return schema;
}

// Writes the grammar of one document: a rule for each set of schemas that hold together.
class SchemaWriter {
 public:
  SchemaWriter(const SchemaDocument& document, const JsonSchemaOptions& options,
               GrammarBuilder& builder, JsonValues& values, SchemaBudget& budget)
      : document_(document),
        options_(options),
        builder_(builder),
        reader_(document, budget),
        values_(values) {}

  // The values of each of these schemas.
  absl::StatusOr<std::vector<Expr>> Write(const std::vector<SchemaPlace>& places) {
    std::vector<Expr> values;
    for (const SchemaPlace& place : places) {
      INLAY_ASSIGN_OR_RETURN(const Json* const node, document_.Resolve(Json(place.pointer)));
      std::vector<const Json*> nodes = {node};
      if (place.only_objects) nodes.push_back(&OnlyObjects());
      INLAY_ASSIGN_OR_RETURN(const Rule value, RuleOfNodes(nodes));
      values.push_back(
          builder_.Sequence({values_.Around(), builder_.Call(value), values_.Around()}));
    }
    while (!todo_.empty()) {
      const auto [schemas, rule] = std::move(todo_.front());
      todo_.pop_front();
      why_empty_.clear();
      INLAY_ASSIGN_OR_RETURN(const Expr expr, Value(schemas));
      builder_.Define(rule, expr);
      if (!why_empty_.empty())
        builder_.Explain(rule, absl::StrCat("no value is valid by the JSON schema at ",
                                            document_.PointerTo(schemas[0]), ": ", why_empty_));
      INLAY_RETURN_IF_ERROR(builder_.status());
    }
    INLAY_RETURN_IF_ERROR(CheckOneOfs());
    return values;
  }

 private:
  absl::StatusOr<Rule> RuleOfNodes(absl::Span<const Json* const> nodes) {
    INLAY_ASSIGN_OR_RETURN(SchemaSet schemas, reader_.Resolved(nodes));
    return RuleOf(std::move(schemas));
  }

  // The rule is defined later, so that schemas may contain themselves.
  Rule RuleOf(SchemaSet schemas) {
    if (schemas.empty()) return values_.Any();
    SchemaSet key = schemas;
    std::sort(key.begin(), key.end());
    const auto [place, is_new] = rules_.try_emplace(std::move(key), 0);
    if (is_new) {
      place->second = builder_.Declare(document_.PointerTo(schemas[0]));
      todo_.emplace_back(std::move(schemas), place->second);
    }
    return place->second;
  }

  absl::StatusOr<Expr> Value(const SchemaSet& schemas) {
    std::vector<Expr> options;
    INLAY_ASSIGN_OR_RETURN(const std::vector<const Json*> alternatives,
                           reader_.Alternatives(schemas));
    std::set<Rule> known;
    for (const Json* node : alternatives) {
      INLAY_ASSIGN_OR_RETURN(const Rule rule, RuleOfNodes({&node, 1}));
      if (known.insert(rule).second) options.push_back(builder_.Call(rule));
    }
    if (alternatives.empty()) {
      INLAY_ASSIGN_OR_RETURN(const auto* shapes, reader_.Shapes(schemas));
      if (shapes->empty()) why_empty_ = "it is false, or its types exclude each other";
      for (const SchemaShape& shape : *shapes)
        INLAY_RETURN_IF_ERROR(AddShape(schemas, shape, &options));
    }
    return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
  }

  absl::Status AddShape(const SchemaSet& schemas, const SchemaShape& shape,
                        std::vector<Expr>* options) {
    INLAY_RETURN_IF_ERROR(reader_.Step());
    if (shape.values) return AddValues(shape, options);
    if (shape.types & kNullType) options->push_back(builder_.Text("null"));
    if (shape.types & kBooleanType)
      options->push_back(builder_.Choice({builder_.Text("true"), builder_.Text("false")}));
    if (shape.types & kNumberType) {
      if (!values_.Knows(shape.number)) INLAY_RETURN_IF_ERROR(reader_.Step(Cost(shape.number)));
      options->push_back(values_.Number(shape.number));
      why_empty_ = WhyNoNumber(shape.number);
    }
    if (shape.types & kStringType)
      why_empty_ = shape.least_length <= shape.most_length
                       ? "no text matches its pattern and format with minLength and maxLength"
                       : "its minLength is above its maxLength";
    if ((shape.types & kStringType) && shape.least_length <= shape.most_length) {
      const auto string = values_.String(shape.Text(), reader_.text_budget());
      if (!string.ok())
        return absl::Status(string.status().code(),
                            absl::StrCat("the JSON schema at ", document_.PointerTo(schemas[0]),
                                         ": ", string.status().message()));
      options->push_back(*string);
    }
    if (shape.types & kArrayType) {
      INLAY_ASSIGN_OR_RETURN(const Expr array, Array(shape));
      options->push_back(array);
    }
    if (shape.types & kObjectType) {
      INLAY_ASSIGN_OR_RETURN(const Expr object, Object(schemas, shape));
      options->push_back(object);
    }
    return absl::OkStatus();
  }

  absl::Status AddValues(const SchemaShape& shape, std::vector<Expr>* options) {
    std::vector<const Json*> valid;
    for (const Json* value : *shape.values) {
      INLAY_RETURN_IF_ERROR(reader_.Step());
      INLAY_ASSIGN_OR_RETURN(const bool is_valid, IsValidBesideValues(reader_, shape, *value));
      if (is_valid) valid.push_back(value);
    }
    why_empty_ = "none of the values that 'enum' or 'const' lists is valid by the rest of it";
    options->push_back(values_.OneOf(valid));
    return absl::OkStatus();
  }

  absl::StatusOr<Expr> Array(const SchemaShape& shape) {
    size_t same = 0;
    for (const ArrayPart& part : shape.arrays) same = std::max(same, part.prefix.size());
    std::vector<Rule> items;
    for (size_t i = 0; i <= same; ++i) {
      INLAY_ASSIGN_OR_RETURN(SchemaSet schemas, reader_.OfItem(shape, i));
      items.push_back(RuleOf(std::move(schemas)));
    }
    const auto most = shape.most_items == SchemaShape::kNoBound
                          ? std::nullopt
                          : std::optional<size_t>(shape.most_items);
    if (shape.least_items > shape.most_items) why_empty_ = "its minItems is above its maxItems";
    return values_.Array([&](size_t i) { return items[std::min(i, same)]; }, same,
                         shape.least_items, most);
  }

  // The names that `shape` knows, in the order of the schema.
  std::vector<std::string> Names(const SchemaShape& shape) {
    std::vector<std::string> names;
    std::set<std::string> known;
    const auto add = [&](const std::string& name) {
      if (known.insert(name).second) names.push_back(name);
    };
    for (const ObjectPart& part : shape.objects)
      if (part.properties)
        for (const auto& [name, schema] : part.properties->get_ref<const Json::object_t&>())
          add(name);
    for (const std::string& name : shape.required) add(name);
    if (!shape.names) return names;
    for (const std::string& name : *shape.names) add(name);
    const std::set<std::string> allowed(shape.names->begin(), shape.names->end());
    names.erase(std::remove_if(names.begin(), names.end(),
                               [&](const std::string& name) { return !allowed.contains(name); }),
                names.end());
    return names;
  }

  absl::StatusOr<Expr> Object(const SchemaSet& schemas, const SchemaShape& shape) {
    GrammarBuilder::Object object;
    object.least = shape.least_properties;
    object.most = shape.most_properties;
    object.in_order = options_.in_order;
    object.space = options_.space;
    const std::set<std::string> required(shape.required.begin(), shape.required.end());
    size_t required_and_listed = 0;
    for (const std::string& name : Names(shape)) {
      INLAY_RETURN_IF_ERROR(reader_.Step());
      INLAY_ASSIGN_OR_RETURN(SchemaSet of_name, reader_.OfName(shape, name));
      const bool is_required = required.contains(name);
      if (is_required && IsNone(of_name)) {
        why_empty_ = absl::StrCat("'required' names ", QuoteForMessage(name),
                                  ", which 'properties' or 'additionalProperties' forbids");
        return builder_.Nothing();
      }
      required_and_listed += is_required ? 1 : 0;
      object.members.push_back({name, RuleOf(std::move(of_name)), is_required});
    }
    if (required_and_listed < required.size() || object.least > object.most) {
      why_empty_ = object.least > object.most
                       ? "its minProperties is above its maxProperties"
                       : "'required' names a property that 'propertyNames' forbids";
      return builder_.Nothing();
    }
    if (required.size() > object.most)
      why_empty_ = "'required' names more properties than maxProperties allows";
    INLAY_ASSIGN_OR_RETURN(SchemaSet others, reader_.OfOtherNames(shape));
    const bool has_others = !shape.names && !IsNone(others);
    if (!has_others && object.members.size() < object.least)
      why_empty_ = "its minProperties is above the number of its properties";
    if (has_others) object.other = RuleOf(std::move(others));
    // Another name may come twice, which makes two pairs and one property.
    if (has_others && object.least > required.size() + 1)
      return document_.Error(schemas[0],
                             "has a minProperties that is not supported: it is more than one above "
                             "the number of required names, and other names may come");
    return builder_.AnyObject(std::move(object));
  }

  // Grows while it is read.
  absl::Status CheckOneOfs() {
    for (size_t i = 0; i < reader_.one_ofs().size(); ++i) {
      const Json& branches = *reader_.one_ofs()[i];
      std::vector<SchemaSet> sets;
      for (size_t branch = 0; branch < branches.size(); ++branch) {
        INLAY_ASSIGN_OR_RETURN(SchemaSet set,
                               reader_.Resolved(reader_.SchemasOf(branches, branch)));
        sets.push_back(std::move(set));
      }
      for (size_t b = 1; b < sets.size(); ++b) {
        for (size_t a = 0; a < b; ++a) {
          INLAY_ASSIGN_OR_RETURN(const bool disjoint, AreDisjoint(reader_, sets[a], sets[b]));
          if (!disjoint)
            return document_.Error(&branches,
                                   absl::StrCat("is not supported: its schemas ", a, " and ", b,
                                                " may have values in common (anyOf allows that)"));
        }
      }
    }
    return absl::OkStatus();
  }

  const SchemaDocument& document_;
  const JsonSchemaOptions options_;
  GrammarBuilder& builder_;
  SchemaReader reader_;
  JsonValues& values_;
  std::string why_empty_;            // the value that is being written, if it is
  std::map<SchemaSet, Rule> rules_;  // by sorted schemas
  std::deque<std::pair<SchemaSet, Rule>> todo_;
};

}  // namespace

absl::StatusOr<std::vector<Expr>> AddJsonSchema(GrammarBuilder& builder, JsonValues& values,
                                                absl::string_view schema,
                                                const JsonSchemaOptions& options,
                                                SchemaBudget& budget,
                                                const std::vector<SchemaPlace>& places) {
  INLAY_ASSIGN_OR_RETURN(const SchemaDocument document, SchemaDocument::Parse(schema));
  return SchemaWriter(document, options, builder, values, budget).Write(places);
}

absl::StatusOr<std::shared_ptr<const Grammar>> CompileJsonSchema(absl::string_view schema,
                                                                 const JsonSchemaOptions& options) {
  return OrOutOfMemory("a JSON schema", [&]() -> absl::StatusOr<std::shared_ptr<const Grammar>> {
    GrammarBuilder builder;
    JsonValues values(builder, options.space);
    SchemaBudget budget;
    INLAY_ASSIGN_OR_RETURN(const std::vector<Expr> parts,
                           AddJsonSchema(builder, values, schema, options, budget));
    const Rule start = builder.Declare("the JSON schema");
    builder.Define(start, parts[0]);
    return std::move(builder).Build(start);
  });
}

}  // namespace inlay

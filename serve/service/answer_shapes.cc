#include "serve/service/answer_shapes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/chat/call_shape.h"
#include "gemma_like/grammar/call_grammar.h"
#include "gemma_like/grammar/call_rules.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

using Otherwise = CallRules::Otherwise;

void AddTools(const Call& call, const std::set<std::string>& free, CallRules* rules) {
  const ToolChoice& choice = call.tool_choice;
  for (const Json& tool : *call.tools) {
    const Json& function = tool.at("function");
    const std::string name = function.at("name").get<std::string>();
    if (choice.only.has_value() &&
        std::find(choice.only->begin(), choice.only->end(), name) == choice.only->end())
      continue;
    const bool strict = call.strict_tools.contains(name);
    const bool if_possible = call.strict_if_possible.contains(name);
    CallRules::Tool& added = rules->tools.emplace_back();
    added.name = name;
    if (strict || ((if_possible || choice.must_call) && !free.contains(name)))
      added.parameters.emplace(function.at("parameters"));
    added.in_order = strict || if_possible;
  }
}

absl::StatusOr<std::optional<AnswerShape>> CallsOf(const Call& call, const AnswerFormat& format,
                                                   const std::set<std::string>& free) {
  const bool chosen = call.tool_choice.must_call || call.tool_choice.only.has_value();
  std::optional<CallRules> rules = CallRulesOf(format);
  if (!rules.has_value()) {
    if (chosen) {
      return absl::InvalidArgumentError(
          "tool_choice can only be auto or none: this model's way of writing calls is none that "
          "answers can be kept to");
    }
    if (call.shape.has_value()) {
      return absl::InvalidArgumentError(
          "a format of the answer cannot be combined with tools that may be called: this model's "
          "way of writing calls is none that answers can be kept to");
    }
    return std::nullopt;
  }
  AddTools(call, free, &*rules);
  rules->one_call = call.one_call;
  rules->otherwise = call.tool_choice.must_call ? Otherwise::kNothing : Otherwise::kText;
  // Where a call is demanded, there is no other answer that could have the call's own shape.
  if (call.shape.has_value() && !call.tool_choice.must_call) {
    if (call.shape->kind != AnswerShape::Kind::kJsonSchema) {
      return absl::InvalidArgumentError(
          "a grammar cannot be combined with tools that may be called");
    }
    rules->otherwise = Otherwise::kSchema;
    INLAY_ASSIGN_OR_RETURN(rules->schema, ParseJson("the JSON schema", call.shape->source));
    rules->schema_in_order = call.shape->in_order;
  }
  return AnswerShape{.kind = AnswerShape::Kind::kCalls, .source = CallRulesJson(*rules)};
}

// Whether the model was asked to think. Where its prompt does not open the thoughts, it does.
bool IsToThink(const Call& call, const AnswerFormat& format) {
  const auto asked = call.template_variables->find("enable_thinking");
  return asked != call.template_variables->end() && *asked == true && !format.think_begin.empty();
}

// The schema after thoughts that the model opens itself, or without any.
absl::StatusOr<AnswerShape> WithThoughts(const AnswerShape& shape, const AnswerFormat& format) {
  CallRules rules;
  rules.think_begin = std::string(format.think_begin);
  rules.think_end = std::string(format.think_end);
  rules.otherwise = Otherwise::kSchema;
  INLAY_ASSIGN_OR_RETURN(rules.schema, ParseJson("the JSON schema", shape.source));
  rules.schema_in_order = shape.in_order;
  return AnswerShape{.kind = AnswerShape::Kind::kCalls, .source = CallRulesJson(rules)};
}

// An error about a tool; those about the grammar as a whole do not name it.
absl::Status WithName(absl::string_view tool, const absl::Status& status) {
  if (absl::StartsWith(status.message(), "the tool ")) return status;
  return absl::Status(status.code(),
                      absl::StrCat("the tool '", PrintableName(tool), "': ", status.message()));
}

}  // namespace

absl::StatusOr<std::optional<AnswerShape>> ShapeOf(const Call& call, const AnswerFormat& format,
                                                   bool in_thinking,
                                                   const std::set<std::string>& free) {
  std::optional<AnswerShape> shape = call.shape;
  const bool shapes_calls = call.tool_choice.must_call || call.tool_choice.only.has_value() ||
                            !call.strict_tools.empty() || !call.strict_if_possible.empty() ||
                            call.shape.has_value();
  if (!call.tools->is_null() && shapes_calls) {
    INLAY_ASSIGN_OR_RETURN(shape, CallsOf(call, format, free));
  } else if (shape.has_value() && shape->kind == AnswerShape::Kind::kJsonSchema && !in_thinking &&
             IsToThink(call, format)) {
    INLAY_ASSIGN_OR_RETURN(shape, WithThoughts(*shape, format));
  }
  if (shape.has_value() && in_thinking) shape->after = std::string(format.think_end);
  return shape;
}

absl::StatusOr<std::set<std::string>> ToolsNotKept(const Call& call, const Tokenizer& tokenizer) {
  CallRules all;
  AddTools(call, /*free=*/{}, &all);
  std::set<std::string> not_kept;
  for (const CallRules::Tool& tool : all.tools) {
    if (!tool.parameters.has_value()) continue;
    CallRules rules;
    rules.tools = {tool};
    const absl::Status status = CompileCalls(rules, tokenizer).status();
    if (status.ok()) continue;
    if (call.strict_tools.contains(tool.name)) return WithName(tool.name, status);
    not_kept.insert(tool.name);
  }
  return not_kept;
}

}  // namespace inlay::serve

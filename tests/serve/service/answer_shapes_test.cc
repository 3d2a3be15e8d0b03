// What requests with tools demand of an answer.
#include "serve/service/answer_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/call_rules.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using Otherwise = CallRules::Otherwise;

Call WithTools() {
  Call call;
  *call.tools = Json::parse(R"([
      {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
      {"type": "function", "function": {"name": "g", "parameters": {"title": "G"}}}])");
  return call;
}

const AnswerFormat kHermes = AnswerFormat::Of("<tool_call></think>");
const AnswerFormat kGemma = AnswerFormat::Of("<|tool_call><tool_call|>");

CallRules RulesOf(const Call& call) {
  const auto shape = Must(ShapeOf(call, kHermes, /*in_thinking=*/false));
  EXPECT_TRUE(shape.has_value() && shape->kind == AnswerShape::Kind::kCalls);
  return Must(ParseCallRules(shape->source));
}

TEST(AnswerShapes, ToolsAloneDemandNothing) {
  EXPECT_EQ(Must(ShapeOf(Call(), kHermes, false)), std::nullopt);
  EXPECT_EQ(Must(ShapeOf(WithTools(), kHermes, true)), std::nullopt);
}

TEST(AnswerShapes, ADemandedCallIsValid) {
  Call call = WithTools();
  call.tool_choice.must_call = true;
  call.strict_tools = {"g"};
  const CallRules rules = RulesOf(call);
  EXPECT_EQ(rules.otherwise, Otherwise::kNothing);
  ASSERT_EQ(rules.tools.size(), 2u);
  EXPECT_EQ(**rules.tools[0].parameters, (Json{{"type", "object"}}));
  EXPECT_FALSE(rules.tools[0].in_order);
  EXPECT_TRUE(rules.tools[1].in_order);
  EXPECT_EQ(Must(ShapeOf(call, kHermes, true))->after, "</think>");

  call.tool_choice.only = {"g"};
  call.one_call = true;
  EXPECT_EQ(RulesOf(call).tools[0].name, "g");
  EXPECT_EQ(RulesOf(call).tools.size(), 1u);
  EXPECT_TRUE(RulesOf(call).one_call);
}

TEST(AnswerShapes, StrictToolsLeaveTextFree) {
  Call call = WithTools();
  call.strict_tools = {"g"};
  const CallRules rules = RulesOf(call);
  EXPECT_EQ(rules.otherwise, Otherwise::kText);
  EXPECT_FALSE(rules.tools[0].parameters.has_value());
  EXPECT_TRUE(rules.tools[1].parameters.has_value());
  Call meant = WithTools();
  meant.strict_if_possible = {"g"};
  EXPECT_EQ(Must(ShapeOf(meant, kHermes, false)), Must(ShapeOf(call, kHermes, false)));
  // Clients set it without being asked.
  EXPECT_EQ(Must(ShapeOf(call, kGemma, false)), std::nullopt);
}

// Their arguments are any object then, but for strict tools.
TEST(AnswerShapes, ParametersThatCannotBeKeptTo) {
  const std::unique_ptr<Tokenizer> tokenizer = Must(SpmBase().Load());
  Call call = WithTools();
  call.tools->at(1)["function"]["parameters"] = {{"properties", {{"s", {{"uniqueItems", true}}}}}};
  EXPECT_TRUE(Must(ToolsNotKept(call, *tokenizer)).empty()) << "nothing is kept to them";
  call.tool_choice.must_call = true;
  const auto not_kept = Must(ToolsNotKept(call, *tokenizer));
  EXPECT_THAT(not_kept, testing::ElementsAre("g"));
  const auto rules_without = [&] {
    return Must(ParseCallRules(Must(ShapeOf(call, kHermes, false, not_kept))->source));
  };
  EXPECT_TRUE(rules_without().tools[0].parameters.has_value());
  EXPECT_FALSE(rules_without().tools[1].parameters.has_value());
  call.tool_choice.only = {"f"};
  EXPECT_TRUE(Must(ToolsNotKept(call, *tokenizer)).empty()) << "it cannot be called";
  call.tool_choice = {};
  call.strict_if_possible = {"f", "g"};
  EXPECT_THAT(Must(ToolsNotKept(call, *tokenizer)), testing::ElementsAre("g"));
  call.strict_tools = {"g"};
  EXPECT_TRUE(rules_without().tools[1].parameters.has_value());
  EXPECT_THAT(std::string(ToolsNotKept(call, *tokenizer).status().message()),
              HasSubstr("the tool 'g': the JSON schema's keyword 'uniqueItems' at"));
  call.tools->at(1)["function"]["parameters"] = {{"required", {"a"}},
                                                 {"properties", {{"a", false}}}};
  EXPECT_THAT(std::string(ToolsNotKept(call, *tokenizer).status().message()),
              testing::StartsWith("the tool 'g': "));
}

TEST(AnswerShapes, AFormatBesideTools) {
  Call call = WithTools();
  call.shape = AnswerShape{.source = "{\"type\":\"null\"}", .in_order = true};
  CallRules rules = RulesOf(call);
  EXPECT_EQ(rules.otherwise, Otherwise::kSchema);
  EXPECT_EQ(*rules.schema, (Json{{"type", "null"}}));
  EXPECT_TRUE(rules.schema_in_order);
  EXPECT_FALSE(rules.tools[0].parameters.has_value());
  call.tool_choice.must_call = true;
  EXPECT_EQ(RulesOf(call).otherwise, Otherwise::kNothing);
  call.tool_choice.must_call = false;
  EXPECT_THAT(std::string(ShapeOf(call, kGemma, false).status().message()),
              HasSubstr("cannot be combined with tools"));
  call.shape = AnswerShape{.kind = AnswerShape::Kind::kGbnf, .source = "root ::= \"a\""};
  EXPECT_THAT(std::string(ShapeOf(call, kHermes, false).status().message()),
              HasSubstr("a grammar cannot be combined"));
}

// Gemma 4 opens its thoughts itself.
TEST(AnswerShapes, AFormatAfterThoughts) {
  const AnswerFormat format =
      AnswerFormat::Of("<|channel>thought<channel|><|tool_call><tool_call|>");
  ASSERT_FALSE(format.think_begin.empty());
  Call call;
  call.shape = AnswerShape{.source = "{\"type\":\"null\"}", .in_order = true};
  EXPECT_EQ(Must(ShapeOf(call, format, false)), call.shape);
  (*call.template_variables)["enable_thinking"] = false;
  EXPECT_EQ(Must(ShapeOf(call, format, false)), call.shape);
  (*call.template_variables)["enable_thinking"] = true;
  EXPECT_EQ(Must(ShapeOf(call, AnswerFormat(), false)), call.shape) << "a model without thoughts";
  const std::unique_ptr<Tokenizer> tokenizer = Must(SpmBase().Load());
  const auto shape = Must(ShapeOf(call, format, false));
  AnswerGrammars grammars(*tokenizer);
  EXPECT_NE(Must(grammars.Get(*shape)), nullptr);
  const CallRules rules = Must(ParseCallRules(shape->source));
  EXPECT_EQ(rules.think_begin, format.think_begin);
  EXPECT_EQ(rules.think_end, format.think_end);
  EXPECT_EQ(rules.otherwise, Otherwise::kSchema);
  EXPECT_EQ(*rules.schema, (Json{{"type", "null"}}));
  EXPECT_TRUE(rules.schema_in_order);
  // Where the prompt opens them, the format follows what closes them.
  EXPECT_EQ(Must(ShapeOf(call, format, true))->after, format.think_end);
  call.shape = AnswerShape{.kind = AnswerShape::Kind::kGbnf, .source = "root ::= \"a\""};
  EXPECT_EQ(Must(ShapeOf(call, format, false)), call.shape);
}

TEST(AnswerShapes, OtherWaysOfWritingCallsAreRefused) {
  Call call = WithTools();
  call.tool_choice.must_call = true;
  EXPECT_THAT(std::string(ShapeOf(call, kGemma, false).status().message()),
              HasSubstr("tool_choice can only be auto or none"));
}

}  // namespace
}  // namespace inlay::serve

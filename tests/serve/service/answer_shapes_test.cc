// What requests with tools demand of an answer.
#include "serve/service/answer_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gemma_like/grammar/call_rules.h"
#include "tests/must.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using Otherwise = CallRules::Otherwise;

Call WithTools() {
  Call call;
  call.tools = Json::parse(R"([
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
  EXPECT_EQ(rules.tools[0].parameters, (Json{{"type", "object"}}));
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

TEST(AnswerShapes, AFormatBesideTools) {
  Call call = WithTools();
  call.shape = AnswerShape{.source = "{\"type\":\"null\"}", .in_order = true};
  CallRules rules = RulesOf(call);
  EXPECT_EQ(rules.otherwise, Otherwise::kSchema);
  EXPECT_EQ(rules.schema, (Json{{"type", "null"}}));
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

TEST(AnswerShapes, OtherWaysOfWritingCallsAreRefused) {
  Call call = WithTools();
  call.tool_choice.must_call = true;
  EXPECT_THAT(std::string(ShapeOf(call, kGemma, false).status().message()),
              HasSubstr("tool_choice can only be auto or none"));
}

}  // namespace
}  // namespace inlay::serve

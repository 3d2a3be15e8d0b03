// What a server uses where requests leave something out.
#include "serve/api/parse_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "serve/api/parse_call.h"
#include "tests/must.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

ParseOptions WithDefaults() {
  ParseOptions options;
  CallDefaults& defaults = options.defaults;
  defaults.sampling.temperature = 0.5f;
  defaults.sampling.top_p = 0.25f;
  defaults.sampling.top_k = 20;
  defaults.sampling.repeat_last_n = 9;
  defaults.sampling.seed = 7;
  defaults.max_tokens = 512;
  defaults.template_variables = {{"enable_thinking", true}, {"style", "short"}};
  return options;
}

Call Parse(Protocol protocol, absl::string_view request, const ParseOptions& options) {
  return Must(ParseCall(protocol, Quoted(request), options));
}

constexpr char kChat[] = "{'messages':[{'role':'user','content':'a'}]";

TEST(CallDefaults, AreUsedWhereARequestSaysNothing) {
  const Call call = Parse(Protocol::kChatCompletions,
                          std::string(kChat) + ",'temperature':null,'top_k':null}", WithDefaults());
  EXPECT_EQ(call.sampling.temperature, 0.5f);
  EXPECT_EQ(call.sampling.top_p, 0.25f);
  EXPECT_EQ(call.sampling.top_k, 20);
  EXPECT_EQ(call.sampling.repeat_last_n, 9);
  EXPECT_EQ(call.sampling.seed, 7u);
  EXPECT_EQ(call.sampling.min_p, std::nullopt) << "the model's";
  EXPECT_EQ(call.max_tokens, 512u);
  const nlohmann::ordered_json variables = {{"enable_thinking", true}, {"style", "short"}};
  EXPECT_EQ(*call.template_variables, variables);
}

TEST(CallDefaults, ARequestsOwnValuesWin) {
  const Call call = Parse(Protocol::kChatCompletions,
                          std::string(kChat) +
                              ",'temperature':0,'top_k':-1,'seed':-1,'max_tokens':-1,"
                              "'chat_template_kwargs':{'enable_thinking':false}}",
                          WithDefaults());
  EXPECT_EQ(call.sampling.temperature, 0.0f);
  EXPECT_EQ(call.sampling.top_k, 0);
  EXPECT_EQ(call.sampling.top_p, 0.25f);
  EXPECT_EQ(call.sampling.seed, std::nullopt) << "a new one";
  EXPECT_EQ(call.max_tokens, std::nullopt) << "no limit";
  EXPECT_EQ(call.template_variables->at("enable_thinking"), false);
  EXPECT_EQ(call.template_variables->at("style"), "short");
  EXPECT_EQ(Parse(Protocol::kChatCompletions, std::string(kChat) + ",'reasoning_effort':'none'}",
                  WithDefaults())
                .template_variables->at("enable_thinking"),
            false);
}

// Two names of one setting must agree with each other, not with the server.
TEST(CallDefaults, ARepetitionPenaltyMayDifferFromThem) {
  ParseOptions options;
  options.defaults.sampling.repeat_penalty = 1.5f;
  EXPECT_EQ(Parse(Protocol::kCompletions, "{'prompt':'a','repetition_penalty':1.25}", options)
                .sampling.repeat_penalty,
            1.25f);
  EXPECT_EQ(Parse(Protocol::kCompletions, "{'prompt':'a'}", options).sampling.repeat_penalty, 1.5f);
}

TEST(CallDefaults, TakeThePlaceOfTheLimitOfCompletions) {
  EXPECT_EQ(Parse(Protocol::kCompletions, "{'prompt':'a'}", {}).max_tokens, 16u);
  EXPECT_EQ(Parse(Protocol::kCompletions, "{'prompt':'a'}", WithDefaults()).max_tokens, 512u);
  EXPECT_EQ(
      Parse(Protocol::kCompletions, "{'prompt':'a','max_tokens':3}", WithDefaults()).max_tokens,
      3u);
  ParseOptions unlimited;
  unlimited.defaults.max_tokens = kNoLimit;
  EXPECT_EQ(Parse(Protocol::kCompletions, "{'prompt':'a'}", unlimited).max_tokens, kNoLimit);
  EXPECT_TRUE(
      Parse(Protocol::kCompletions, "{'prompt':'a'}", WithDefaults()).template_variables->empty());
}

TEST(CallDefaults, AreWrittenAsFarAsTheyAreSet) {
  EXPECT_EQ(ToJson(CallDefaults()).dump(), "{}");
  EXPECT_EQ(ToJson(WithDefaults().defaults).dump(),
            Quoted("{'temperature':0.5,'top_k':20,'top_p':0.25,'repeat_last_n':9,'seed':7,"
                   "'max_tokens':512,'chat_template_kwargs':{'enable_thinking':true,"
                   "'style':'short'}}"));
}

TEST(TemplateVariables, AreAnObjectWithoutTheServersOwn) {
  EXPECT_EQ(Must(ParseTemplateVariables("{\"a\": [1]}")).dump(), "{\"a\":[1]}");
  EXPECT_THAT(ParseTemplateVariables("{\"messages\": []}").status().message(),
              HasSubstr("chat_template_kwargs.messages is set by this server alone"));
  EXPECT_THAT(ParseTemplateVariables("[]").status().message(),
              HasSubstr("must be an object, not a list"));
  EXPECT_FALSE(ParseTemplateVariables("{").ok());
}

}  // namespace
}  // namespace inlay::serve

#include "serve/service/answer_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/grammar/call_rules.h"
#include "nlohmann/json.hpp"
#include "serve/api/call_fields.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"
#include "tests/serve/service/short_record.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

AnswerRecord Example() {
  AnswerRecord record = ShortRecord();
  record.options.sampling = {.temperature = 0.7f,
                             .top_k = 0,
                             .top_p = 0.123456789f,
                             .min_p = 0.05f,
                             .repeat_penalty = 1.1f,
                             .repeat_last_n = 3,
                             .presence_penalty = -0.5f,
                             .frequency_penalty = 0.25f,
                             .logit_bias = {{5, -100.0f}, {6, 0.1f}},
                             .seed = std::numeric_limits<uint64_t>::max(),
                             .choice = 2};
  record.options.max_tokens = 20;
  record.options.stop_texts = {"\n\n", "\xC3\xA9"};
  record.options.ignore_eos = true;
  record.options.shown_control = {4, 9};
  return record;
}

TEST(AnswerRecordTest, ARecordComesBackAsItWas) {
  const AnswerRecord record = Example();
  const std::string line = RecordLine(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const AnswerRecord back = Must(ParseRecord(line));
  EXPECT_EQ(RecordLine(back), line);
  EXPECT_EQ(back.prompt, record.prompt);
  EXPECT_EQ(back.tokens, record.tokens);
  EXPECT_EQ(back.reason, record.reason);
  EXPECT_EQ(back.options.sampling.top_p, record.options.sampling.top_p) << "to the bit";
  EXPECT_EQ(back.options.sampling.logit_bias, record.options.sampling.logit_bias);
  EXPECT_EQ(back.options.sampling.seed, record.options.sampling.seed);
  EXPECT_EQ(back.options.sampling.choice, 2u);
  EXPECT_EQ(back.options.max_tokens, 20u);
  EXPECT_EQ(back.options.stop_texts, record.options.stop_texts);
  EXPECT_EQ(back.options.shown_control, record.options.shown_control);
  EXPECT_TRUE(back.options.ignore_eos);
}

TEST(AnswerRecordTest, NoBoundOnTokensStaysNone) {
  AnswerRecord record = Example();
  record.options.max_tokens = std::numeric_limits<size_t>::max();
  EXPECT_EQ(Must(ParseRecord(RecordLine(record))).options.max_tokens, record.options.max_tokens);
}

TEST(AnswerRecordTest, RefusesWhatIsNoRecord) {
  for (const char* line : {"", "[]", "{}", "{\"id\": 1}", "null", "{\"id\": \"a\""}) {
    EXPECT_EQ(ParseRecord(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
  std::string line = RecordLine(Example());
  line.replace(line.find("\"stop\"}"), 7, "\"tired\"}");
  const absl::Status status = ParseRecord(line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("reason must be "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("not 'tired'"));
}

// Conversions would make other tokens of them, and compare an answer to another prompt.
TEST(AnswerRecordTest, RefusesIdsThatAreNoTokens) {
  for (const char* member : {"prompt", "tokens"}) {
    for (const char* id : {"4294967298", "2.7", "\"2\"", "true", "null", "1e1"}) {
      nlohmann::json json = nlohmann::json::parse(RecordLine(Example()));
      json[member][1] = nlohmann::json::parse(id);
      const absl::Status status = ParseRecord(json.dump()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << member << id;
      EXPECT_THAT(
          std::string(status.message()),
          HasSubstr(absl::StrCat(member, "[1] must be a whole number from -2147483648 to")));
    }
  }
}

TEST(AnswerRecordTest, FindsTheFirstDifference) {
  using Tokens = std::vector<int32_t>;
  EXPECT_FALSE(Compare(Tokens{1, 2}, Tokens{1, 2}).has_value());
  EXPECT_FALSE(Compare(Tokens{}, Tokens{}).has_value());
  const auto differs = Compare(Tokens{1, 2, 3}, Tokens{1, 5, 3});
  ASSERT_TRUE(differs.has_value());
  EXPECT_EQ(differs->token, 1u);
  EXPECT_EQ(differs->expected, 2);
  EXPECT_EQ(differs->recomputed, 5);
  EXPECT_EQ(Compare(Tokens{1}, Tokens{1, 5})->expected, std::nullopt);
  EXPECT_EQ(Compare(Tokens{1, 5}, Tokens{1})->recomputed, std::nullopt);
}

TEST(AnswerRecordTest, AnAnswerThatWasCutShortIsComputedAsFarAsItWent) {
  const std::unique_ptr<Tokenizer> tokenizer = Must(SpmBase().Load());
  AnswerGrammars grammars(*tokenizer);
  AnswerRecord record = Example();
  EXPECT_EQ(Must(ReplayOptions(record, grammars)).max_tokens, 20u);
  for (const StopReason cut : {StopReason::kCancelled, StopReason::kContextFull}) {
    record.reason = cut;
    EXPECT_EQ(Must(ReplayOptions(record, grammars)).max_tokens, 2u);
  }
}

// A record may come from anybody, and longer lists would take the time of all answers.
TEST(AnswerRecordTest, RecordsHaveTheLimitsOfRequests) {
  const std::unique_ptr<Tokenizer> tokenizer = Must(SpmBase().Load());
  AnswerGrammars grammars(*tokenizer);
  const auto refused = [&](const AnswerRecord& record, const std::string& message) {
    const absl::Status status = ReplayOptions(record, grammars).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  AnswerRecord record = Example();
  record.options.stop_texts.assign(kMostStopTexts, std::string(1024, 'a'));
  EXPECT_TRUE(ReplayOptions(record, grammars).ok());
  record.options.stop_texts.emplace_back("a");
  refused(record, absl::StrCat(kMostStopTexts + 1, " stop texts, more than ", kMostStopTexts));
  record.options.stop_texts = {std::string(1025, 'a')};
  refused(record, "1025 bytes, more than 1024");
  record = Example();
  record.options.sampling.logit_bias.clear();
  for (int32_t id = 0; id <= 4096; ++id) record.options.sampling.logit_bias.emplace_back(id, 1.0f);
  refused(record, "biases 4097 tokens, more than 4096");
}

TEST(AnswerRecordTest, KeepsTheShapeOfAnAnswer) {
  const std::unique_ptr<Tokenizer> tokenizer = Must(SpmBase().Load());
  AnswerGrammars grammars(*tokenizer);
  AnswerRecord record = Example();
  EXPECT_EQ(Must(ReplayOptions(record, grammars)).grammar, nullptr);
  const CallRules rules{.begin = "<call>",
                        .tools = {{.name = "f", .parameters = JsonDocument(Json::object())}}};
  const std::vector<std::pair<AnswerShape::Kind, std::string>> sources = {
      {AnswerShape::Kind::kJsonSchema, "true"},
      {AnswerShape::Kind::kRegex, "true"},
      {AnswerShape::Kind::kCalls, CallRulesJson(rules)},
      {AnswerShape::Kind::kGbnf, "root ::= \"a\""}};
  for (const auto& [kind, source] : sources) {
    const AnswerShape shape{.kind = kind, .source = source, .in_order = true, .after = "</think>"};
    record.shape = shape;
    const AnswerRecord read = Must(ParseRecord(RecordLine(record)));
    const auto grammar = Must(ReplayOptions(read, grammars)).grammar;
    ASSERT_NE(grammar, nullptr);
    EXPECT_EQ(grammar->shape, shape);
    EXPECT_EQ(grammar->compiled, Must(grammars.Get(shape))->compiled);
  }
  std::string line = RecordLine(record);
  line.replace(line.find("gbnf"), 4, "html");
  EXPECT_EQ(ParseRecord(line).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace inlay::serve

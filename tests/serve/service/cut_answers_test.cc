// Answers that end early in the log of answers: whoever has read some of one may want to check it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "nlohmann/json.hpp"
#include "serve/service/answer_log.h"
#include "serve/service/answer_record.h"
#include "serve/service/answer_routes.h"
#include "serve/service/service.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr int kEndless = 100'000;  // tokens, of which few are computed before the client leaves

class CutAnswersTest : public ::testing::Test {
 protected:
  void Start() {
    ServiceOptions options;
    options.scheduler.context = 200'000;
    options.answer_log = Must(AnswerLog::Open(path_));
    service_ = Must(Service::Create(
        model_, ChatRenderer::CreateFrom(*model_.tokenizer, "{{ messages[0].content }}"), keys_,
        options));
  }
  // The records of the log, once there are so many.
  std::vector<AnswerRecord> Records(size_t count) {
    std::vector<AnswerRecord> records;
    EXPECT_TRUE(WaitUntil([&] {
      records.clear();
      std::ifstream file(path_);
      // A line that is being written has no end yet.
      for (std::string line; std::getline(file, line) && !file.eof();)
        records.push_back(Must(ParseRecord(line)));
      return records.size() >= count;
    }));
    EXPECT_EQ(records.size(), count);
    return records;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.Path("answers.jsonl");
  const LoadedModel model_ = LoadBard();
  const ApiKeys keys_;
  std::unique_ptr<Service> service_;
};

TEST_F(CutAnswersTest, AnAnswerThatItsClientCutIsLoggedAsFarAsItCame) {
  Start();
  const json body = {
      {"prompt", "ROMEO:"}, {"stream", true}, {"ignore_eos", true}, {"max_tokens", kEndless}};
  const auto stream = Ask(*service_, "POST", "/v1/completions", body.dump());
  stream->WaitFor("\"text\":\"");
  stream->Leave();
  stream->Wait();
  const std::vector<AnswerRecord> records = Records(1);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].reason, StopReason::kCancelled);
  EXPECT_FALSE(records[0].tokens.empty());
  const auto replay = Ask(*service_, "POST", "/v1/replay", RecordLine(records[0]));
  replay->Wait();
  EXPECT_EQ(replay->Json()["same"], true) << replay->body();
  AnswerRecord changed = records[0];
  changed.tokens.back() ^= 1;
  const auto differs = Ask(*service_, "POST", "/v1/replay", RecordLine(changed));
  differs->Wait();
  EXPECT_EQ(differs->Json()["same"], false) << differs->body();
}

TEST_F(CutAnswersTest, ATurnThatItsClientCutIsLoggedToo) {
  Start();
  Ask(*service_, "POST", "/v1/sessions", R"({"name": "talk"})")->Wait();
  const json turn = {{"parent", 0},
                     {"content", "ROMEO:"},
                     {"stream", true},
                     {"ignore_eos", true},
                     {"max_tokens", kEndless}};
  const auto stream = Ask(*service_, "POST", "/v1/sessions/talk/turns", turn.dump());
  stream->WaitFor("delta");
  stream->Leave();
  stream->Wait();
  const std::vector<AnswerRecord> records = Records(1);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].reason, StopReason::kCancelled);
  EXPECT_FALSE(records[0].tokens.empty());
}

TEST_F(CutAnswersTest, WhatADeadlineCutIsLoggedUnlessThereIsNothing) {
  const absl::StatusOr<ChatRenderer> no_chats = absl::InvalidArgumentError("no chats");
  AnswerGrammars grammars(*model_.tokenizer);
  ServiceOptions options;
  options.answer_log = Must(AnswerLog::Open(path_));
  const Fingerprints fingerprints;
  const AnswerRoutes routes(model_, no_chats, options, fingerprints, nullptr, grammars);
  const Visit visit{
      .request = {}, .reply = nullptr, .client = {}, .protocol = Protocol::kCompletions};
  const auto log = routes.LogAnswers({AnswerRequest{.prompt = {1, 2}, .options = {}}}, visit);
  AnswerEnd end;
  end.status = absl::DeadlineExceededError("late");
  log(0, end);
  end.tokens = {3, 4};
  log(0, end);
  const std::vector<AnswerRecord> records = Records(1);
  ASSERT_FALSE(records.empty());
  EXPECT_THAT(records[0].tokens, ElementsAre(3, 4));
  EXPECT_EQ(records[0].reason, StopReason::kCancelled);
}

}  // namespace
}  // namespace inlay::serve

#include "tests/serve/api/reply_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"

namespace inlay::serve {

const Tokenizer& ByteTokenizer() {
  static const auto* const tokenizer = Must(SpmBase().Load()).release();
  return *tokenizer;
}

std::string WriteReply(const Call& call, const std::vector<ScriptedAnswer>& answers) {
  const ReplyHeader header = {
      .id = "ID", .model = "M", .created = 9, .system_fingerprint = "FP", .seed = 8};
  const std::unique_ptr<ReplyWriter> writer = MakeReplyWriter(call, header, ByteTokenizer());
  std::string reply = writer->Begin(answers[0].usage.prompt_tokens, answers[0].usage.cached_tokens);
  size_t ended = 0;
  for (size_t at = 0; ended < answers.size(); ++at) {
    for (size_t choice = 0; choice < answers.size(); ++choice) {
      const ScriptedAnswer& answer = answers[choice];
      const size_t scored = answer.prompt_tokens;
      const size_t updates = std::max(
          {answer.events.size(), answer.tokens.size() - scored, std::min<size_t>(scored, 1)});
      if (at < updates) {
        ReplyUpdate update = {.choice = choice, .events = {}, .tokens = {}};
        if (at < answer.events.size()) update.events = absl::MakeSpan(&answer.events[at], 1);
        const absl::Span<const ChosenToken> tokens = answer.tokens;
        update.tokens = at == 0 ? tokens.first(std::min(tokens.size(), scored + 1))
                                : tokens.subspan(std::min(tokens.size(), scored + at), 1);
        reply += writer->Update(update);
      } else if (at == updates) {
        reply += writer->End({choice, answer.reason, answer.stop_text, answer.usage});
        ++ended;
      }
    }
  }
  return reply + writer->Finish();
}

std::vector<Json> StreamEvents(absl::string_view stream) {
  std::vector<Json> events;
  for (absl::string_view event : absl::StrSplit(stream, "\n\n", absl::SkipEmpty())) {
    if (absl::StartsWith(event, ":")) continue;
    absl::string_view name;
    if (absl::ConsumePrefix(&event, "event: ")) {
      name = event.substr(0, event.find('\n'));
      event.remove_prefix(name.size() + 1);
    }
    EXPECT_TRUE(absl::ConsumePrefix(&event, "data: ")) << event;
    if (event == "[DONE]") {
      events.push_back("[DONE]");
      continue;
    }
    events.push_back(*Must(ParseJson("an event", event)));
    if (!name.empty()) {
      EXPECT_EQ(events.back()["type"], std::string(name));
    }
  }
  return events;
}

std::string EventLines(absl::string_view stream, const std::vector<std::string>& without) {
  std::string lines;
  for (Json& event : StreamEvents(stream)) {
    for (const std::string& member : without)
      if (event.is_object()) event.erase(member);
    absl::StrAppend(&lines, DumpJson(event), "\n");
  }
  return lines;
}

ScriptedAnswer RandomAnswer(std::mt19937& random) {
  const auto text = [&] {
    static constexpr const char* kPieces[] = {"", "a", "b\n", "\"", "\xc3\xa9", "\\", " ", "data:"};
    return std::string(kPieces[random() % 8]);
  };
  using Kind = AnswerEvent::Kind;
  ScriptedAnswer answer;
  size_t calls = 0;
  for (size_t parts = random() % 5; parts > 0; --parts) {
    const size_t kind = random() % 3;
    if (kind < 2) {
      for (size_t n = random() % 4; n > 0; --n)
        answer.events.push_back({kind == 0 ? Kind::kText : Kind::kReasoning, text(), 0});
      continue;
    }
    answer.events.push_back({Kind::kCallBegin, absl::StrCat("f", calls), calls});
    for (absl::string_view piece : {"{\"x", "\":", "", "{}}"})
      answer.events.push_back({Kind::kCallArguments, std::string(piece), calls});
    answer.events.push_back({Kind::kCallEnd, "", calls++});
  }
  if (random() % 3 == 0) {
    answer.reason = random() % 2 == 0 ? StopReason::kMaxTokens : StopReason::kContextFull;
    answer.events.resize(random() % (answer.events.size() + 1));
    const auto is_within_call = [](const AnswerEvent& event) {
      return event.kind == Kind::kCallBegin || event.kind == Kind::kCallArguments;
    };
    while (!answer.events.empty() && is_within_call(answer.events.back())) answer.events.pop_back();
  } else if (random() % 3 == 0) {
    answer.reason = StopReason::kStopText;
    answer.stop_text = "STOP";
  }
  for (size_t n = random() % 8; n > 0; --n) {
    answer.tokens.push_back({static_cast<int32_t>(random() % 259), -0.5f, {}});
    for (size_t top = random() % 3; top > 0; --top)
      answer.tokens.back().top.push_back({static_cast<int32_t>(random() % 259), -1.5f});
  }
  answer.usage = {.prompt_tokens = 10 + random() % 9,
                  .cached_tokens = random() % 9,
                  .completion_tokens = 5 + random() % 9,
                  .reasoning_tokens = random() % 5};
  return answer;
}

}  // namespace inlay::serve

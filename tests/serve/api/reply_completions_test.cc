#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/serve/api/call_text.h"
#include "tests/serve/api/reply_script.h"

namespace inlay::serve {
namespace {

using Kind = AnswerEvent::Kind;

Call CompletionCall(bool stream) {
  Call call;
  call.protocol = Protocol::kCompletions;
  call.stream = stream;
  call.prompts = {"Once"};
  return call;
}

const std::vector<std::string> kCompletionHeader = {
    "id", "object", "created", "model", "system_fingerprint", "seed"};

TEST(ReplyCompletions, StreamsInOrder) {
  Call call = CompletionCall(true);
  call.stream_usage = true;
  call.prompts = {"Once", std::vector<int32_t>{3 + 'u', 3 + 'p'}};
  call.echo = true;
  const ScriptedAnswer answer = {.events = {{Kind::kText, " upon", 0}}};
  const auto chunk = [](size_t index, const char* text, const char* finish_reason = "null") {
    return Quoted(absl::StrCat("{'choices':[{'text':'", text, "','index':", index,
                               ",'logprobs':null,'finish_reason':", finish_reason,
                               "}],'usage':null}\n"));
  };
  EXPECT_EQ(EventLines(WriteReply(call, {answer, answer}), kCompletionHeader),
            absl::StrCat(chunk(0, "Once"), chunk(0, " upon"), chunk(1, "up"), chunk(1, " upon"),
                         chunk(0, "", "'stop'"), chunk(1, "", "'stop'"),
                         Quoted("{'choices':[],'usage':{'prompt_tokens':14,'completion_tokens':10,"
                                "'total_tokens':24,'prompt_tokens_details':{'cached_tokens':8},"
                                "'completion_tokens_details':{'reasoning_tokens':4}}}\n"
                                "'[DONE]'\n")));
}

TEST(ReplyCompletions, WritesTheWholeReply) {
  Call call = CompletionCall(false);
  call.logprobs = true;
  const ScriptedAnswer answer = {.events = {{Kind::kText, "\xc3\xa9", 0}, {Kind::kText, "a", 0}},
                                 // The same text twice: the likelier one stays.
                                 .tokens = {{3 + 0xC3, -0.5f, {{3 + 'x', -0.25f}, {3 + 'x', -4}}},
                                            {3 + 0xA9, -1, {}},
                                            {3 + 'a', -2, {}}},
                                 .reason = StopReason::kMaxTokens};
  EXPECT_EQ(WriteReply(call, {answer}),
            Quoted("{'id':'cmpl-ID','object':'text_completion','created':9,'model':'M',"
                   "'system_fingerprint':'FP','seed':8,'choices':[{'text':'\xc3\xa9"
                   "a','index':0,"
                   "'logprobs':{'tokens':['\xef\xbf\xbd','\xef\xbf\xbd','a'],"
                   "'token_logprobs':[-0.5,-1.0,-2.0],'top_logprobs':[{'x':-0.25},{},{}],"
                   "'text_offset':[0,1,1]},'finish_reason':'length'}],"
                   "'usage':{'prompt_tokens':7,'completion_tokens':5,'total_tokens':12,"
                   "'prompt_tokens_details':{'cached_tokens':4},"
                   "'completion_tokens_details':{'reasoning_tokens':2}}}"));
}

// The vocabulary puts BOS (1) and a space in front of a text. The first token has no probability,
// and the answer's tokens follow the prompt's.
TEST(ReplyCompletions, EchoesThePromptWithItsProbabilities) {
  Call call = CompletionCall(false);
  call.prompts = {
      "\xc3\xa9"
      "b"};
  call.prompt_tokens = {{1, 3 + ' ', 3 + 0xC3, 3 + 0xA9, 3 + 'b'}};
  call.echo = call.logprobs = true;
  const auto choice = [&](const std::vector<ChosenToken>& tokens, const std::string& text) {
    ScriptedAnswer answer = {.tokens = tokens, .prompt_tokens = 4};
    if (!text.empty()) answer.events = {{Kind::kText, text, 0}};
    return Json::parse(WriteReply(call, {answer}))["choices"][0];
  };
  const std::vector<ChosenToken> prompt = {
      {3 + ' ', -1, {{3 + 'x', -0.5f}}}, {3 + 0xC3, -2, {}}, {3 + 0xA9, -3, {}}, {3 + 'b', -4, {}}};
  Json whole = choice(prompt, "");
  EXPECT_EQ(whole["text"],
            "\xc3\xa9"
            "b");
  EXPECT_EQ(DumpJson(whole["logprobs"]),
            Quoted("{'tokens':['<s>',' ','\xef\xbf\xbd','\xef\xbf\xbd','b'],"
                   "'token_logprobs':[null,-1.0,-2.0,-3.0,-4.0],"
                   "'top_logprobs':[null,{'x':-0.5},{},{},{}],'text_offset':[0,0,0,1,1]}"));
  std::vector<ChosenToken> all = prompt;
  all.push_back({3 + 'c', -5, {}});
  all.push_back({2, -6, {}});
  whole = choice(all, "c");
  EXPECT_EQ(whole["text"],
            "\xc3\xa9"
            "bc");
  EXPECT_EQ(whole["logprobs"]["tokens"].back(), "</s>");
  EXPECT_EQ(DumpJson(whole["logprobs"]["text_offset"]), "[0,0,0,1,1,2,3]");
  EXPECT_EQ(whole["logprobs"]["token_logprobs"].size(), 7u);
}

TEST(ReplyCompletions, StreamsAddUpToTheWholeReply) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Call call = CompletionCall(true);
    call.choices = 1 + random() % 2;
    call.prompts.resize(1 + random() % 3, "a");
    call.logprobs = random() % 2 == 0;
    call.echo = random() % 2 == 0;
    call.prompt_tokens.resize(call.prompts.size(), {1, 3 + 'a'});
    std::vector<ScriptedAnswer> answers;
    for (size_t i = 0; i < call.choices * call.prompts.size(); ++i) {
      answers.push_back(RandomAnswer(random));
      for (AnswerEvent& event : answers.back().events) event.kind = Kind::kText;
      if (call.echo && random() % 4 != 0) {
        answers.back().tokens.insert(answers.back().tokens.begin(), {3 + 'a', -2, {}});
        answers.back().prompt_tokens = 1;
      }
    }
    std::map<size_t, Json> choices;
    for (const Json& chunk : StreamEvents(WriteReply(call, answers))) {
      if (!chunk.is_object()) continue;
      for (const Json& part : chunk["choices"]) {
        Json& choice = choices[part["index"]];
        if (choice.is_null()) {
          choice = part;
          continue;
        }
        choice["text"] = choice["text"].get<std::string>() + part["text"].get<std::string>();
        choice["finish_reason"] = part["finish_reason"];
        for (const auto& [key, list] : part["logprobs"].items())
          for (const Json& item : list) choice["logprobs"][key].push_back(item);
      }
    }
    call.stream = false;
    const Json whole = Json::parse(WriteReply(call, answers));
    ASSERT_EQ(whole["choices"].size(), answers.size());
    for (const Json& choice : whole["choices"])
      ASSERT_EQ(choices[choice["index"]], choice) << round;
  }
}

}  // namespace
}  // namespace inlay::serve

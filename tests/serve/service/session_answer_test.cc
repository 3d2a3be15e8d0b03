// Answers of sessions with thoughts and calls, as messages and as events.
#include "serve/service/session_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/service/session_reply.h"

namespace inlay::serve {
namespace {

// As Qwen 3 writes them.
constexpr absl::string_view kTemplate =
    "<think></think>{% if tools %}<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>";

SessionAnswerReader Reader(bool calls = true) {
  return {AnswerFormat::Of(kTemplate), {.in_thinking = false, .calls = calls}, "id"};
}

TEST(SessionAnswer, ThoughtsAndCalls) {
  const std::string text =
      "<think>\nHm.\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"look\", \"arguments\": "
      "{\"at\": 1}}\n</tool_call>";
  for (size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    SessionAnswerReader reader = Reader();
    for (size_t at = 0; at < text.size(); at += piece) reader.Push(text.substr(at, piece));
    reader.Finish();
    EXPECT_TRUE(reader.called());
    const SessionAnswer answer = reader.Take();
    EXPECT_EQ(answer.said, text);
    EXPECT_EQ(answer.message->at("reasoning_content"), "Hm.");
    EXPECT_EQ(answer.message->at("content"), "Let me see.");
    const Json& call = answer.message->at("tool_calls")[0];
    EXPECT_EQ(call["id"], "call_id_0");
    EXPECT_EQ(call["function"]["name"], "look");
    EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>()), (Json{{"at", 1}}));
    // A stored answer is told as it was when it came.
    std::vector<std::string> types;
    for (const AnswerEvent& event : EventsOf(answer))
      types.push_back(EventJson(event)["type"].get<std::string>());
    EXPECT_EQ(types, (std::vector<std::string>{"reasoning", "text", "call", "call", "call_end"}));
  }
}

TEST(SessionAnswer, ACallThatIsCutIsText) {
  SessionAnswerReader reader = Reader();
  reader.Push("<tool_call>\n{\"name\": \"look\", \"argu");
  reader.Finish();
  EXPECT_FALSE(reader.called());
  const SessionAnswer answer = reader.Take();
  EXPECT_FALSE(answer.message->contains("tool_calls"));
  EXPECT_EQ(answer.message->at("content"), answer.said);
}

// Calls in thoughts that never ended are known at the end alone.
TEST(SessionAnswer, OneThatMayHaveOneCallHasOne) {
  const AnswerFormat format = AnswerFormat::Of("<tool_call>\n</tool_call></think>");
  for (const bool one_call : {false, true}) {
    SessionAnswerReader reader(format, {.in_thinking = true, .calls = true}, "id", one_call);
    for (const char* name : {"f", "g"}) {
      reader.Push(absl::StrCat("<tool_call>\n{\"name\": \"", name,
                               "\", \"arguments\": {}}\n</tool_call>\n"));
    }
    EXPECT_FALSE(reader.has_enough());
    reader.Finish();
    EXPECT_EQ(reader.has_enough(), one_call);
    const Json calls = reader.Take().message->at("tool_calls");
    ASSERT_EQ(calls.size(), one_call ? 1u : 2u);
    EXPECT_EQ(calls[0]["function"]["name"], "f");
  }
}

TEST(SessionAnswer, ADraftOfOneThatWasCutIsNoCall) {
  SessionAnswerReader reader(AnswerFormat::Of(kTemplate), {.in_thinking = true, .calls = true},
                             "id");
  reader.Push("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  reader.Finish(/*ended=*/false);
  EXPECT_FALSE(reader.Take().message->contains("tool_calls"));
}

TEST(SessionAnswer, WhatFollowsTheOneCallIsNotRead) {
  SessionAnswerReader reader(AnswerFormat::Of(kTemplate), {.in_thinking = false, .calls = true},
                             "id", /*one_call=*/true);
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  const std::vector<AnswerEvent> events = reader.Push(call + "\n" + call + "\nDone.");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, AnswerEvent::Kind::kCallEnd);
  EXPECT_TRUE(reader.has_enough());
  EXPECT_TRUE(reader.Push("More.").empty());
  EXPECT_TRUE(reader.Finish().empty());
  const SessionAnswer answer = reader.Take();
  EXPECT_EQ(answer.message->at("tool_calls").size(), 1u);
  EXPECT_EQ(answer.message->at("content"), "");
}

TEST(SessionAnswer, RawTextIsNoMessage) {
  SessionAnswerReader reader;
  EXPECT_TRUE(reader.Push("").empty());
  const std::vector<AnswerEvent> events = reader.Push("<think>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(EventJson(events[0]), (Json{{"type", "text"}, {"delta", "<think>"}}));
  EXPECT_TRUE(reader.Finish().empty());
  const SessionAnswer answer = reader.Take();
  EXPECT_TRUE(answer.message->is_null());
  EXPECT_EQ(EventsOf(answer), events);
}

// What a client's document may hold for a message.
TEST(SessionAnswer, MessagesOfStrangers) {
  for (const char* message :
       {R"({"role": "assistant", "content": ""})", R"({"content": 1, "tool_calls": 7})",
        R"({"tool_calls": [1, {}, {"function": 2}, {"function": {"name": [], "arguments": {}}}]})",
        "7", "null"}) {
    const SessionAnswer answer{.said = "", .message = JsonDocument(Json::parse(message))};
    for (const AnswerEvent& event : EventsOf(answer)) EXPECT_TRUE(EventJson(event).is_object());
  }
}

}  // namespace
}  // namespace inlay::serve

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/serve/api/call_text.h"
#include "tests/serve/api/reply_script.h"

namespace inlay::serve {
namespace {

using Kind = AnswerEvent::Kind;

Call ChatCall(bool stream) {
  Call call;
  call.protocol = Protocol::kChatCompletions;
  call.stream = stream;
  return call;
}

ScriptedAnswer AnswerWithCalls() {
  return {.events = {{Kind::kReasoning, "Hm", 0},
                     {Kind::kText, "Let me", 0},
                     {Kind::kText, "", 0},
                     {Kind::kText, " see.", 0},
                     {Kind::kCallBegin, "f", 0},
                     {Kind::kCallArguments, "{\"x\":", 0},
                     {Kind::kCallArguments, "1}", 0},
                     {Kind::kCallEnd, "", 0},
                     {Kind::kCallBegin, "g", 1},
                     {Kind::kCallArguments, "{}", 1},
                     {Kind::kCallEnd, "", 1}}};
}

const std::vector<std::string> kHeader = {"id",  "object", "created", "model", "system_fingerprint",
                                          "seed"};

TEST(ReplyChatCompletions, StreamsInOrder) {
  Call call = ChatCall(true);
  call.stream_usage = true;
  const auto chunk = [](const char* delta, const char* finish_reason = "null") {
    return Quoted(absl::StrCat("{'choices':[{'index':0,'delta':", delta,
                               ",'logprobs':null,'finish_reason':", finish_reason,
                               "}],'usage':null}\n"));
  };
  EXPECT_EQ(
      EventLines(WriteReply(call, {AnswerWithCalls()}), kHeader),
      absl::StrCat(chunk("{'role':'assistant','content':''}"), chunk("{'reasoning_content':'Hm'}"),
                   chunk("{'content':'Let me'}"), chunk("{'content':' see.'}"),
                   chunk("{'tool_calls':[{'index':0,'id':'call_ID_0','type':'function','function':"
                         "{'name':'f','arguments':''}}]}"),
                   chunk("{'tool_calls':[{'index':0,'function':{'arguments':'{\\'x\\':'}}]}"),
                   chunk("{'tool_calls':[{'index':0,'function':{'arguments':'1}'}}]}"),
                   chunk("{'tool_calls':[{'index':1,'id':'call_ID_1','type':'function','function':"
                         "{'name':'g','arguments':''}}]}"),
                   chunk("{'tool_calls':[{'index':1,'function':{'arguments':'{}'}}]}"),
                   chunk("{}", "'tool_calls'"),
                   Quoted("{'choices':[],'usage':{'prompt_tokens':7,'completion_tokens':5,"
                          "'total_tokens':12,'prompt_tokens_details':{'cached_tokens':4},"
                          "'completion_tokens_details':{'reasoning_tokens':2}}}\n'[DONE]'\n")));
}

TEST(ReplyChatCompletions, EveryChunkSaysWhatItBelongsTo) {
  const std::string stream = WriteReply(ChatCall(true), {AnswerWithCalls()});
  EXPECT_EQ(stream.substr(0, stream.find('\n')),
            Quoted("data: {'id':'chatcmpl-ID','object':'chat.completion.chunk','created':9,"
                   "'model':'M','system_fingerprint':'FP','seed':8,'choices':[{'index':0,'delta':"
                   "{'role':'assistant','content':''},'logprobs':null,'finish_reason':null}]}"));
}

TEST(ReplyChatCompletions, WritesTheWholeReply) {
  EXPECT_EQ(
      WriteReply(ChatCall(false), {AnswerWithCalls()}),
      Quoted("{'id':'chatcmpl-ID','object':'chat.completion','created':9,'model':'M',"
             "'system_fingerprint':'FP','seed':8,'choices':[{'index':0,'message':{"
             "'role':'assistant','content':'Let me see.','refusal':null,'reasoning_content':'Hm',"
             "'tool_calls':[{'id':'call_ID_0','type':'function','function':{'name':'f',"
             "'arguments':'{\\'x\\':1}'}},{'id':'call_ID_1','type':'function','function':{"
             "'name':'g','arguments':'{}'}}]},'logprobs':null,'finish_reason':'tool_calls'}],"
             "'usage':{'prompt_tokens':7,'completion_tokens':5,'total_tokens':12,"
             "'prompt_tokens_details':{'cached_tokens':4},"
             "'completion_tokens_details':{'reasoning_tokens':2}}}"));
}

TEST(ReplyChatCompletions, SaysWhyItEnds) {
  const auto reason = [](ScriptedAnswer answer, StopReason stop) {
    answer.reason = stop;
    const std::string reply = WriteReply(ChatCall(false), {answer});
    return Json::parse(reply)["choices"][0]["finish_reason"].get<std::string>();
  };
  const ScriptedAnswer text = {.events = {{Kind::kText, "a", 0}}};
  EXPECT_EQ(reason(text, StopReason::kEndOfGeneration), "stop");
  EXPECT_EQ(reason(text, StopReason::kStopText), "stop");
  EXPECT_EQ(reason(text, StopReason::kMaxTokens), "length");
  EXPECT_EQ(reason(text, StopReason::kContextFull), "length");
  EXPECT_EQ(reason(text, StopReason::kCancelled), "length");
  EXPECT_EQ(reason(AnswerWithCalls(), StopReason::kEndOfGeneration), "tool_calls");
  EXPECT_EQ(reason(AnswerWithCalls(), StopReason::kMaxTokens), "length");
}

TEST(ReplyChatCompletions, AnswersOfOneReplyHaveCallsOfTheirOwn) {
  Call call = ChatCall(false);
  call.choices = 2;
  const Json reply = Json::parse(WriteReply(call, {AnswerWithCalls(), AnswerWithCalls()}));
  EXPECT_EQ(reply["choices"][0]["message"]["tool_calls"][1]["id"], "call_ID_1");
  EXPECT_EQ(reply["choices"][1]["message"]["tool_calls"][1]["id"], "call_ID_1_1");
  // They share the prompt.
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 10);
}

TEST(ReplyChatCompletions, ContentIsNullWhereThereAreOnlyCalls) {
  ScriptedAnswer answer = {.events = {{Kind::kCallBegin, "f", 0},
                                      {Kind::kCallArguments, "{}", 0},
                                      {Kind::kCallEnd, "", 0}}};
  Json reply = Json::parse(WriteReply(ChatCall(false), {answer}));
  EXPECT_TRUE(reply["choices"][0]["message"]["content"].is_null());
  reply = Json::parse(WriteReply(ChatCall(false), {ScriptedAnswer()}));
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "");
}

TEST(ReplyChatCompletions, CallWithoutAnEndIsNone) {
  const ScriptedAnswer answer = {.events = {{Kind::kCallBegin, "f", 0},
                                            {Kind::kCallArguments, "{\"x\":", 0},
                                            {Kind::kText, "<call>", 0}}};
  const Json choice = Json::parse(WriteReply(ChatCall(false), {answer}))["choices"][0];
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(choice["message"]["content"], "<call>");
  EXPECT_EQ(choice["finish_reason"], "stop");
  // After two calls that are.
  ScriptedAnswer three = AnswerWithCalls();
  three.events.push_back({Kind::kCallBegin, "h", 2});
  const Json rest = Json::parse(WriteReply(ChatCall(false), {three}))["choices"][0];
  EXPECT_EQ(rest["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(rest["finish_reason"], "tool_calls");
  const std::vector<Json> events = StreamEvents(WriteReply(ChatCall(true), {three}));
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "stop");
}

TEST(ReplyChatCompletions, WritesLogprobs) {
  Call call = ChatCall(true);
  call.logprobs = true;
  const ScriptedAnswer answer = {
      .events = {{Kind::kText, "", 0}, {Kind::kText, "a", 0}},
      .tokens = {
          {3 + 0xC3, -0.5f, {{3 + 0xC3, -0.5f}, {2, -INFINITY}}}, {3 + 'a', -1, {}}, {2, -2, {}}}};
  const auto chunk = [](const char* delta, const char* logprobs,
                        const char* finish_reason = "null") {
    return Quoted(absl::StrCat("{'choices':[{'index':0,'delta':", delta, ",'logprobs':", logprobs,
                               ",'finish_reason':", finish_reason, "}]}\n"));
  };
  EXPECT_EQ(EventLines(WriteReply(call, {answer}), kHeader),
            absl::StrCat(chunk("{'role':'assistant','content':''}", "null"),
                         chunk("{'content':'a'}",
                               "{'content':[{'token':'\xef\xbf\xbd','logprob':-0.5,'bytes':[195],"
                               "'top_logprobs':[{'token':'\xef\xbf\xbd','logprob':-0.5,'bytes':"
                               "[195]},{'token':'</s>','logprob':-9999.0,'bytes':[60,47,115,62]}]},"
                               "{'token':'a','logprob':-1.0,'bytes':[97],'top_logprobs':[]}],"
                               "'refusal':null}"),
                         chunk("{}",
                               "{'content':[{'token':'</s>','logprob':-2.0,'bytes':"
                               "[60,47,115,62],'top_logprobs':[]}],'refusal':null}"),
                         chunk("{}", "null", "'stop'"), "\"[DONE]\"\n"));
}

TEST(ReplyChatCompletions, FailsWithAnError) {
  const Call call = ChatCall(true);
  const auto writer = MakeReplyWriter(call, {}, ByteTokenizer());
  EXPECT_EQ(writer->Ping(), ": ping\n\n");
  EXPECT_EQ(writer->Fail(absl::DataLossError("broken")),
            Quoted("data: {'error':{'message':'broken','type':'server_error','param':null,"
                   "'code':null}}\n\n"));
}

// What a client makes of a stream.
Json Assemble(const std::vector<Json>& chunks, const Call& call) {
  std::map<size_t, Json> choices;
  Json usage;
  for (const Json& chunk : chunks) {
    if (!chunk.is_object()) continue;
    if (chunk.contains("usage") && !chunk["usage"].is_null()) usage = chunk["usage"];
    for (const Json& part : chunk["choices"]) {
      Json& choice = choices[part["index"]];
      const Json& delta = part["delta"];
      if (choice.is_null()) choice = {{"text", ""}, {"reasoning", ""}, {"logprobs", Json::array()}};
      for (const auto& [from, to] :
           {std::pair("content", "text"), {"reasoning_content", "reasoning"}})
        if (delta.contains(from))
          choice[to] = choice[to].get<std::string>() + delta[from].get<std::string>();
      if (delta.contains("tool_calls")) {
        for (const Json& call : delta["tool_calls"]) {
          Json& all = choice["calls"][call["index"].get<size_t>()];
          if (all.is_null()) {
            all = call;
            all.erase("index");
          } else {
            Json& arguments = all["function"]["arguments"];
            arguments =
                arguments.get<std::string>() + call["function"]["arguments"].get<std::string>();
          }
        }
      }
      if (!part["logprobs"].is_null())
        for (const Json& token : part["logprobs"]["content"]) choice["logprobs"].push_back(token);
      if (!part["finish_reason"].is_null()) choice["finish_reason"] = part["finish_reason"];
    }
  }
  Json all = Json::array();
  for (const auto& [index, choice] : choices) {
    Json message = {{"role", "assistant"}, {"content", choice["text"]}, {"refusal", nullptr}};
    if (choice["text"] == "" && choice.contains("calls")) message["content"] = nullptr;
    if (choice["reasoning"] != "") message["reasoning_content"] = choice["reasoning"];
    if (choice.contains("calls")) message["tool_calls"] = choice["calls"];
    Json logprobs;
    if (call.logprobs) logprobs = {{"content", choice["logprobs"]}, {"refusal", nullptr}};
    all.push_back({{"index", index},
                   {"message", message},
                   {"logprobs", logprobs},
                   {"finish_reason", choice["finish_reason"]}});
  }
  return {{"choices", all}, {"usage", usage}};
}

TEST(ReplyChatCompletions, StreamsAddUpToTheWholeReply) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Call call = ChatCall(true);
    call.stream_usage = true;
    call.choices = 1 + random() % 3;
    call.logprobs = random() % 2 == 0;
    std::vector<ScriptedAnswer> answers;
    for (size_t i = 0; i < call.choices; ++i) {
      answers.push_back(RandomAnswer(random));
      if (!call.logprobs) answers.back().tokens.clear();
    }
    const Json assembled = Assemble(StreamEvents(WriteReply(call, answers)), call);
    call.stream = false;
    const Json whole = Json::parse(WriteReply(call, answers));
    ASSERT_EQ(assembled["choices"], whole["choices"]) << round;
    ASSERT_EQ(assembled["usage"], whole["usage"]) << round;
  }
}

}  // namespace
}  // namespace inlay::serve

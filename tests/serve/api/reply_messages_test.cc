#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/api/sealed_reasoning.h"
#include "tests/serve/api/call_text.h"
#include "tests/serve/api/reply_script.h"

namespace inlay::serve {
namespace {

using Kind = AnswerEvent::Kind;

Call MessagesCall(bool stream) {
  Call call;
  call.protocol = Protocol::kMessages;
  call.stream = stream;
  return call;
}

ScriptedAnswer TextThenCall() {
  return {.events = {{Kind::kReasoning, "Hm", 0},
                     {Kind::kReasoning, ".", 0},
                     {Kind::kText, "", 0},
                     {Kind::kText, "Let me see.", 0},
                     {Kind::kCallBegin, "f", 0},
                     {Kind::kCallArguments, "", 0},
                     {Kind::kCallArguments, "{\"x\":", 0},
                     {Kind::kCallArguments, "1}", 0},
                     {Kind::kCallEnd, "", 0}}};
}

TEST(ReplyMessages, StreamsInOrder) {
  EXPECT_EQ(
      EventLines(WriteReply(MessagesCall(true), {TextThenCall()}), {}),
      Quoted("{'type':'message_start','message':{'id':'msg_ID','type':'message','role':'assistant',"
             "'model':'M','content':[],'stop_reason':null,'stop_sequence':null,'usage':{"
             "'input_tokens':3,'cache_creation_input_tokens':0,'cache_read_input_tokens':4,"
             "'output_tokens':0},'system_fingerprint':'FP','seed':8}}\n"
             "{'type':'ping'}\n"
             "{'type':'content_block_start','index':0,'content_block':{'type':'thinking',"
             "'thinking':'','signature':''}}\n"
             "{'type':'content_block_delta','index':0,'delta':{'type':'thinking_delta',"
             "'thinking':'Hm'}}\n"
             "{'type':'content_block_delta','index':0,'delta':{'type':'thinking_delta',"
             "'thinking':'.'}}\n"
             "{'type':'content_block_delta','index':0,'delta':{'type':'signature_delta',"
             "'signature':'inlay'}}\n"
             "{'type':'content_block_stop','index':0}\n"
             "{'type':'content_block_start','index':1,'content_block':{'type':'text','text':''}}\n"
             "{'type':'content_block_delta','index':1,'delta':{'type':'text_delta',"
             "'text':'Let me see.'}}\n"
             "{'type':'content_block_stop','index':1}\n"
             "{'type':'content_block_start','index':2,'content_block':{'type':'tool_use',"
             "'id':'toolu_ID_0','name':'f','input':{}}}\n"
             "{'type':'content_block_delta','index':2,'delta':{'type':'input_json_delta',"
             "'partial_json':'{\\'x\\':'}}\n"
             "{'type':'content_block_delta','index':2,'delta':{'type':'input_json_delta',"
             "'partial_json':'1}'}}\n"
             "{'type':'content_block_stop','index':2}\n"
             "{'type':'message_delta','delta':{'stop_reason':'tool_use','stop_sequence':null},"
             "'usage':{'input_tokens':3,'cache_creation_input_tokens':0,"
             "'cache_read_input_tokens':4,'output_tokens':5}}\n"
             "{'type':'message_stop'}\n"));
}

TEST(ReplyMessages, EventsHaveNames) {
  const std::string stream = WriteReply(MessagesCall(true), {ScriptedAnswer()});
  EXPECT_NE(stream.find("event: ping\ndata: {\"type\":\"ping\"}\n\n"), std::string::npos);
  EXPECT_EQ(stream.substr(0, 21), "event: message_start\n");
}

TEST(ReplyMessages, WritesTheWholeReply) {
  EXPECT_EQ(WriteReply(MessagesCall(false), {TextThenCall()}),
            Quoted("{'id':'msg_ID','type':'message','role':'assistant','model':'M','content':["
                   "{'type':'thinking','thinking':'Hm.','signature':'inlay'},"
                   "{'type':'text','text':'Let me see.'},"
                   "{'type':'tool_use','id':'toolu_ID_0','name':'f','input':{'x':1}}],"
                   "'stop_reason':'tool_use','stop_sequence':null,'usage':{'input_tokens':3,"
                   "'cache_creation_input_tokens':0,'cache_read_input_tokens':4,"
                   "'output_tokens':5},'system_fingerprint':'FP','seed':8}"));
}

TEST(ReplyMessages, SaysWhyItEnds) {
  const auto reason = [](ScriptedAnswer answer, StopReason stop) {
    answer.reason = stop;
    answer.stop_text = "END";
    const Json reply = Json::parse(WriteReply(MessagesCall(false), {answer}));
    return absl::StrCat(DumpJson(reply["stop_reason"]), " ", DumpJson(reply["stop_sequence"]));
  };
  const ScriptedAnswer text = {.events = {{Kind::kText, "a", 0}}};
  EXPECT_EQ(reason(text, StopReason::kEndOfGeneration), "\"end_turn\" null");
  EXPECT_EQ(reason(text, StopReason::kStopText), "\"stop_sequence\" \"END\"");
  EXPECT_EQ(reason(text, StopReason::kMaxTokens), "\"max_tokens\" null");
  EXPECT_EQ(reason(text, StopReason::kCancelled), "\"max_tokens\" null");
  EXPECT_EQ(reason(text, StopReason::kContextFull), "\"model_context_window_exceeded\" null");
  EXPECT_EQ(reason(TextThenCall(), StopReason::kEndOfGeneration), "\"tool_use\" null");
  EXPECT_EQ(reason(TextThenCall(), StopReason::kMaxTokens), "\"max_tokens\" null");
  const ScriptedAnswer half = {.events = {{Kind::kCallBegin, "f", 0}}};
  EXPECT_EQ(reason(half, StopReason::kEndOfGeneration), "\"end_turn\" null");
}

TEST(ReplyMessages, HidesThoughts) {
  Call call = MessagesCall(false);
  call.hide_reasoning = true;
  const Json block = Json::parse(WriteReply(call, {TextThenCall()}))["content"][0];
  EXPECT_EQ(block["thinking"], "");
  EXPECT_EQ(UnsealReasoning(block["signature"].get<std::string>()), "Hm.");
  call.stream = true;
  const std::string stream = WriteReply(call, {TextThenCall()});
  EXPECT_EQ(stream.find("thinking_delta"), std::string::npos);
  EXPECT_EQ(StreamEvents(stream)[3]["delta"]["signature"], block["signature"]);
}

// Nobody may make a call that the model did not write to its end.
TEST(ReplyMessages, CallWithoutAnEndIsNone) {
  const ScriptedAnswer answer = {.events = {{Kind::kCallBegin, "f", 0},
                                            {Kind::kCallArguments, "{\"x\":", 0},
                                            {Kind::kText, "<call>{\"x\":oops", 0}}};
  const Json whole = Json::parse(WriteReply(MessagesCall(false), {answer}));
  EXPECT_EQ(whole["content"].dump(), Quoted("[{'type':'text','text':'<call>{\\'x\\':oops'}]"));
  EXPECT_EQ(whole["stop_reason"], "end_turn");
  // What was streamed cannot be taken back; "tool_use" would have it called.
  std::vector<Json> events = StreamEvents(WriteReply(MessagesCall(true), {answer}));
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "end_turn");
  ScriptedAnswer both = TextThenCall();
  both.events.push_back({Kind::kCallBegin, "g", 1});
  events = StreamEvents(WriteReply(MessagesCall(true), {both}));
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "end_turn") << "open at the end";
  both.events.push_back({Kind::kText, "<call>", 0});
  const Json first = Json::parse(WriteReply(MessagesCall(false), {both}));
  EXPECT_EQ(first["stop_reason"], "tool_use");
  EXPECT_EQ(first["content"][2]["input"]["x"], 1);
  EXPECT_EQ(first["content"][3]["type"], "text");
  events = StreamEvents(WriteReply(MessagesCall(true), {both}));
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "end_turn");
}

TEST(ReplyMessages, FailsWithAnError) {
  const Call call = MessagesCall(true);
  const auto writer = MakeReplyWriter(call, {}, ByteTokenizer());
  EXPECT_EQ(writer->Fail(absl::DataLossError("broken")),
            Quoted("event: error\ndata: {'type':'error','error':{'type':'api_error',"
                   "'message':'broken'}}\n\n"));
}

Json Assemble(const std::vector<Json>& events) {
  Json message;
  std::vector<std::string> inputs;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (type == "message_start") message = event["message"];
    if (type == "message_delta") {
      message.update(event["delta"]);
      message["usage"].update(event["usage"]);
    }
    if (type == "content_block_start") {
      EXPECT_EQ(event["index"], message["content"].size());
      message["content"].push_back(event["content_block"]);
      inputs.push_back("");
    }
    if (type == "content_block_delta") {
      const Json& delta = event["delta"];
      Json& block = message["content"][event["index"].get<size_t>()];
      const auto append = [&](const char* member) {
        block[member] = block[member].get<std::string>() + delta[member].get<std::string>();
      };
      if (delta["type"] == "text_delta") append("text");
      if (delta["type"] == "thinking_delta") append("thinking");
      if (delta["type"] == "signature_delta") append("signature");
      if (delta["type"] == "input_json_delta") inputs.back() += delta["partial_json"];
    }
    if (type == "content_block_stop") {
      Json& block = message["content"][event["index"].get<size_t>()];
      if (block["type"] == "tool_use" && Json::accept(inputs.back()))
        block["input"] = Json::parse(inputs.back());
    }
  }
  return message;
}

TEST(ReplyMessages, StreamsAddUpToTheWholeReply) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Call call = MessagesCall(true);
    const ScriptedAnswer answer = RandomAnswer(random);
    call.hide_reasoning = random() % 4 == 0;
    const Json assembled = Assemble(StreamEvents(WriteReply(call, {answer})));
    call.stream = false;
    ASSERT_EQ(assembled, Json::parse(WriteReply(call, {answer}))) << round;
  }
}

}  // namespace
}  // namespace inlay::serve

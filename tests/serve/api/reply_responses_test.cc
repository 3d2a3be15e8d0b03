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

Call ResponsesCall(bool stream) {
  Call call;
  call.protocol = Protocol::kResponses;
  call.stream = stream;
  *call.repeated = {{"temperature", nullptr}, {"tools", Json::array()}};
  call.namespaced_tools["agents.wait"] = {"agents", "wait"};
  return call;
}

ScriptedAnswer AnswerWithCall() {
  return {.events = {{Kind::kReasoning, "Hm", 0},
                     {Kind::kText, "", 0},
                     {Kind::kText, "Let", 0},
                     {Kind::kText, " me", 0},
                     {Kind::kCallBegin, "agents.wait", 0},
                     {Kind::kCallArguments, "{}", 0},
                     {Kind::kCallEnd, "", 0}}};
}

constexpr char kReasoningItem[] =
    "{'id':'rs_ID_0','status':'completed','type':'reasoning','summary':[],"
    "'content':[{'type':'reasoning_text','text':'Hm'}]}";
constexpr char kMessageItem[] =
    "{'id':'msg_ID_1','status':'completed','type':'message','role':'assistant','content':["
    "{'type':'output_text','text':'Let me','annotations':[],'logprobs':[]}]}";
constexpr char kCallItem[] =
    "{'id':'fc_ID_2','status':'completed','type':'function_call','call_id':'call_ID_0',"
    "'name':'wait','arguments':'{}','namespace':'agents'}";

std::string Response(absl::string_view status, absl::string_view output, absl::string_view usage) {
  return absl::StrCat(
      "{'id':'resp_ID','object':'response','created_at':9,'status':'", status,
      "','background':false,'error':null,'incomplete_details':null,'model':'M','output':", output,
      ",'previous_response_id':null,'store':false,'usage':", usage,
      ",'system_fingerprint':'FP','seed':8,'temperature':null,'tools':[]}");
}

std::string WholeResponse() {
  return Response("completed",
                  absl::StrCat("[", kReasoningItem, ",", kMessageItem, ",", kCallItem, "]"),
                  "{'input_tokens':7,'input_tokens_details':{'cached_tokens':4},"
                  "'output_tokens':5,'output_tokens_details':{'reasoning_tokens':2},"
                  "'total_tokens':12}");
}

TEST(ReplyResponses, StreamsInOrder) {
  const std::string begun = Response("in_progress", "[]", "null");
  const std::string events[] = {
      absl::StrCat("response.created','sequence_number':0,'response':", begun),
      absl::StrCat("response.in_progress','sequence_number':1,'response':", begun),
      "response.output_item.added','sequence_number':2,'output_index':0,'item':{'id':'rs_ID_0',"
      "'status':'in_progress','type':'reasoning','summary':[],'content':[]}",
      "response.content_part.added','sequence_number':3,'item_id':'rs_ID_0','output_index':0,"
      "'content_index':0,'part':{'type':'reasoning_text','text':''}",
      "response.reasoning_text.delta','sequence_number':4,'item_id':'rs_ID_0','output_index':0,"
      "'content_index':0,'delta':'Hm'",
      "response.reasoning_text.done','sequence_number':5,'item_id':'rs_ID_0','output_index':0,"
      "'content_index':0,'text':'Hm'",
      "response.content_part.done','sequence_number':6,'item_id':'rs_ID_0','output_index':0,"
      "'content_index':0,'part':{'type':'reasoning_text','text':'Hm'}",
      absl::StrCat("response.output_item.done','sequence_number':7,'output_index':0,'item':",
                   kReasoningItem),
      "response.output_item.added','sequence_number':8,'output_index':1,'item':{'id':'msg_ID_1',"
      "'status':'in_progress','type':'message','role':'assistant','content':[]}",
      "response.content_part.added','sequence_number':9,'item_id':'msg_ID_1','output_index':1,"
      "'content_index':0,'part':{'type':'output_text','text':'','annotations':[],'logprobs':[]}",
      "response.output_text.delta','sequence_number':10,'item_id':'msg_ID_1','output_index':1,"
      "'content_index':0,'delta':'Let','logprobs':[]",
      "response.output_text.delta','sequence_number':11,'item_id':'msg_ID_1','output_index':1,"
      "'content_index':0,'delta':' me','logprobs':[]",
      "response.output_text.done','sequence_number':12,'item_id':'msg_ID_1','output_index':1,"
      "'content_index':0,'text':'Let me','logprobs':[]",
      "response.content_part.done','sequence_number':13,'item_id':'msg_ID_1','output_index':1,"
      "'content_index':0,'part':{'type':'output_text','text':'Let me','annotations':[],"
      "'logprobs':[]}",
      absl::StrCat("response.output_item.done','sequence_number':14,'output_index':1,'item':",
                   kMessageItem),
      "response.output_item.added','sequence_number':15,'output_index':2,'item':{'id':'fc_ID_2',"
      "'status':'in_progress','type':'function_call','call_id':'call_ID_0','name':'wait',"
      "'arguments':'','namespace':'agents'}",
      "response.function_call_arguments.delta','sequence_number':16,'item_id':'fc_ID_2',"
      "'output_index':2,'delta':'{}'",
      "response.function_call_arguments.done','sequence_number':17,'item_id':'fc_ID_2',"
      "'output_index':2,'name':'wait','arguments':'{}'",
      absl::StrCat("response.output_item.done','sequence_number':18,'output_index':2,'item':",
                   kCallItem),
      absl::StrCat("response.completed','sequence_number':19,'response':", WholeResponse()),
  };
  std::string expected;
  for (const std::string& event : events) absl::StrAppend(&expected, "{'type':'", event, "}\n");
  EXPECT_EQ(EventLines(WriteReply(ResponsesCall(true), {AnswerWithCall()}), {}), Quoted(expected));
}

TEST(ReplyResponses, WritesTheWholeReply) {
  EXPECT_EQ(WriteReply(ResponsesCall(false), {AnswerWithCall()}), Quoted(WholeResponse()));
}

TEST(ReplyResponses, EndsIncomplete) {
  ScriptedAnswer answer = {.events = {{Kind::kText, "a", 0}}, .reason = StopReason::kMaxTokens};
  const std::vector<Json> events = StreamEvents(WriteReply(ResponsesCall(true), {answer}));
  EXPECT_EQ(events[events.size() - 2]["item"]["status"], "incomplete");
  EXPECT_EQ(events.back()["type"], "response.incomplete");
  EXPECT_EQ(events.back()["response"]["status"], "incomplete");
  EXPECT_EQ(events.back()["response"]["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(ReplyResponses, CallWithoutAnEndIsNone) {
  const ScriptedAnswer answer = {.events = {{Kind::kCallBegin, "f", 0},
                                            {Kind::kCallArguments, "{\"x\":", 0},
                                            {Kind::kText, "<call>", 0}}};
  const Json whole = Json::parse(WriteReply(ResponsesCall(false), {answer}));
  ASSERT_EQ(whole["output"].size(), 1u);
  EXPECT_EQ(whole["output"][0]["type"], "message");
  // What was streamed cannot be taken back, but nothing says that it is complete.
  std::vector<std::string> ends;
  const std::vector<Json> events = StreamEvents(WriteReply(ResponsesCall(true), {answer}));
  for (const Json& event : events) {
    EXPECT_NE(event["type"], "response.function_call_arguments.done");
    if (event["type"] == "response.output_item.done")
      ends.push_back(event["item"]["status"].get<std::string>());
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"incomplete", "completed"}));
  const Json& last = events.back()["response"];
  EXPECT_EQ(last["status"], "completed");
  ASSERT_EQ(last["output"].size(), 1u);
  EXPECT_EQ(last["output"][0]["type"], "message");
}

TEST(ReplyResponses, SealsThoughts) {
  Call call = ResponsesCall(false);
  call.sealed_reasoning = true;
  const Json reply = Json::parse(WriteReply(call, {AnswerWithCall()}));
  EXPECT_EQ(UnsealReasoning(reply["output"][0]["encrypted_content"].get<std::string>()), "Hm");
}

TEST(ReplyResponses, FailsWithinTheStream) {
  const Call call = ResponsesCall(true);
  const auto fail = [&](const absl::Status& status) {
    const auto writer = MakeReplyWriter(call, {}, ByteTokenizer());
    (void)writer->Begin(1, 0);
    const Json event = StreamEvents(writer->Fail(status))[0];
    EXPECT_EQ(event["type"], "response.failed");
    EXPECT_EQ(event["sequence_number"], 2);
    EXPECT_EQ(event["response"]["status"], "failed");
    return DumpJson(event["response"]["error"]);
  };
  EXPECT_EQ(fail(absl::DataLossError("a")), Quoted("{'code':'server_error','message':'a'}"));
  EXPECT_EQ(fail(MarkTooLong(absl::OutOfRangeError("a"))),
            Quoted("{'code':'context_length_exceeded','message':'a'}"));
  EXPECT_EQ(fail(absl::ResourceExhaustedError("a")),
            Quoted("{'code':'rate_limit_exceeded','message':'a'}"));
  EXPECT_EQ(fail(absl::InvalidArgumentError("a")),
            Quoted("{'code':'invalid_prompt','message':'a'}"));
}

// Helpers of clients make a response of the first event alone.
TEST(ReplyResponses, IsCreatedBeforeItFails) {
  const Call call = ResponsesCall(true);
  const auto writer = MakeReplyWriter(call, {}, ByteTokenizer());
  const std::vector<Json> events = StreamEvents(writer->Fail(absl::UnavailableError("a")));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["type"], "response.created");
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_EQ(events[1]["type"], "response.in_progress");
  EXPECT_EQ(events[2]["type"], "response.failed");
  EXPECT_EQ(events[2]["sequence_number"], 2);
}

// What a client makes of all events but the last, which has it all again.
Json AssembleOutput(const std::vector<Json>& events) {
  Json output = Json::array();
  for (size_t i = 0; i < events.size(); ++i) {
    const Json& event = events[i];
    EXPECT_EQ(event["sequence_number"], i);
    const std::string type = event["type"];
    if (type == "response.output_item.added") {
      EXPECT_EQ(event["output_index"], output.size());
      output.push_back(event["item"]);
    }
    if (!event.contains("output_index")) continue;
    Json& item = output[event["output_index"].get<size_t>()];
    if (event.contains("item_id")) {
      EXPECT_EQ(event["item_id"], item["id"]);
    }
    if (type == "response.content_part.added") item["content"].push_back(event["part"]);
    if (event.contains("delta")) {
      Json& text = item["type"] == "function_call" ? item["arguments"] : item["content"][0]["text"];
      text = text.get<std::string>() + event["delta"].get<std::string>();
    }
    if (type == "response.output_item.done") {
      item["status"] = event["item"]["status"];
      EXPECT_EQ(item, event["item"]);
    }
  }
  return output;
}

TEST(ReplyResponses, StreamsAddUpToTheWholeReply) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Call call = ResponsesCall(true);
    const ScriptedAnswer answer = RandomAnswer(random);
    const std::vector<Json> events = StreamEvents(WriteReply(call, {answer}));
    call.stream = false;
    const Json whole = Json::parse(WriteReply(call, {answer}));
    ASSERT_EQ(AssembleOutput(events), whole["output"]) << round;
    ASSERT_EQ(events.back()["response"], whole) << round;
  }
}

}  // namespace
}  // namespace inlay::serve

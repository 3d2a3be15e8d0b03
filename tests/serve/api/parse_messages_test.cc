#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "serve/api/parse_call.h"
#include "serve/api/sealed_reasoning.h"
#include "tests/must.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

// Without what every request says that does not ask for thoughts.
std::string ParseMessages(absl::string_view request, const ParseOptions& options = {}) {
  std::string text = Parsed(Protocol::kMessages, request, options);
  if (absl::StrContains(request, "'thinking':{")) return text;
  return absl::StrReplaceAll(text, {{Quoted("'variables':{'enable_thinking':false},"), ""}});
}

constexpr char kHelloMessage[] = "'messages':[{'role':'user','content':'Hello'}]";

TEST(ParseMessages, ReadsContents) {
  const ParseTable table = {
      {"{'role':'user','content':'a'}", "{'role':'user','content':'a'}"},
      {"{'role':'user','content':[{'type':'text','text':'a','cache_control':{'type':'ephemeral'},"
       "'citations':null},{'type':'text','text':'b'}]}",
       "{'role':'user','content':'a\\nb'}"},
      // Claude Code adds such messages to a conversation.
      {"{'role':'user','content':'a'},{'role':'system','content':'s'}",
       "{'role':'user','content':'a'},{'role':'system','content':'s'}"},
      {"{'role':'assistant','content':[{'type':'thinking','thinking':'r','signature':'x'},"
       "{'type':'text','text':'t'},{'type':'tool_use','id':'c','name':'f','input':{'x':1}},"
       "{'type':'tool_use','id':'d','name':'g','input':{},'cache_control':{}}]},"
       "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c','content':'1'},"
       "{'type':'tool_result','tool_use_id':'d','is_error':true,"
       "'content':[{'type':'text','text':'2'}]},"
       "{'type':'tool_result','tool_use_id':'e'},{'type':'text','text':'u'}]}",
       "{'role':'assistant','content':'t','reasoning_content':'r','tool_calls':["
       "{'id':'c','type':'function','function':{'name':'f','arguments':{'x':1}}},"
       "{'id':'d','type':'function','function':{'name':'g','arguments':{}}}]},"
       "{'role':'tool','content':'1','tool_call_id':'c','name':'f'},"
       "{'role':'tool','content':'Error: 2','tool_call_id':'d','name':'g'},"
       "{'role':'tool','content':'','tool_call_id':'e'},{'role':'user','content':'u'}"},
      // As Claude Code sends a picture that it has read.
      {"{'role':'user','content':[{'type':'tool_result','tool_use_id':'a',"
       "'content':[{'type':'image','source':{'type':'base64','data':''}}]}]}",
       "{'role':'tool','content':'[an image, which this model cannot see]','tool_call_id':'a'}"},
  };
  for (const auto& [messages, expected] : table) {
    EXPECT_EQ(ParseMessages(absl::StrCat("{'max_tokens':1,'messages':[", messages, "]}")),
              Quoted(absl::StrCat("{'messages':[", expected, "],'max_tokens':1}")));
  }
}

// Thoughts that were left out of the reply come back in their signature.
TEST(ParseMessages, ReadsThoughtsThatWereLeftOut) {
  const auto reasoning = [](absl::string_view thinking, absl::string_view signature) {
    const Call call = Must(ParseCall(
        Protocol::kMessages,
        Quoted(absl::StrCat("{'max_tokens':1,'messages':[{'role':'assistant','content':[{'type':"
                            "'thinking','thinking':'",
                            thinking, "','signature':'", signature,
                            "'},{'type':'text','text':'t'}]},{'role':'user','content':'u'}]}"))));
    return call.messages->at(0).value("reasoning_content", "none");
  };
  EXPECT_EQ(reasoning("", SealReasoning("Hm.")), "Hm.");
  EXPECT_EQ(reasoning("Ah.", SealReasoning("Hm.")), "Ah.");
  EXPECT_EQ(reasoning("", "of another server"), "");
}

TEST(ParseMessages, RefusesContentsByName) {
  const ParseTable table = {
      {"", "messages must not be empty"},
      {"{'role':'user','content':[]}", "messages must not be empty"},
      {"{'role':'tool','content':'a'}",
       "messages[0].role must be user or assistant or system, not ~tool~"},
      {"{'role':'user'}", "messages[0].content must be given"},
      {"{'role':'user','content':7}",
       "messages[0].content must be a string or a list of blocks, not a number"},
      {"{'role':'user','content':'a','x':1}",
       "messages[0].~x~ is not a field that this server knows"},
      {"{'role':'user','content':[{'type':'image','source':{}}]}",
       "messages[0].content[0].type is ~image~, which this server cannot read in a message of "
       "user"},
      {"{'role':'user','content':[{'type':'tool_use','id':'a','name':'f','input':{}}]}",
       "messages[0].content[0].type is ~tool_use~, which this server cannot read in a message of "
       "user"},
      {"{'role':'assistant','content':[{'type':'redacted_thinking','data':'a'}]}",
       "messages[0].content[0].type is ~redacted_thinking~, which this server cannot read in a "
       "message of assistant"},
      {"{'role':'user','content':[{'type':'tool_result'}]}",
       "messages[0].content[0].tool_use_id must be given"},
      {"{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f','input':7}]}",
       "messages[0].content[0].input must be an object, not a number"},
      {"{'role':'user','content':'a'},{'role':'assistant','content':'b'}",
       "messages[1].role must not be assistant: the last message cannot be the beginning of an "
       "answer"},
  };
  for (const auto& [messages, expected] : table) {
    EXPECT_EQ(ParseMessages(absl::StrCat("{'max_tokens':1,'messages':[", messages, "]}")),
              Quoted(expected));
  }
}

TEST(ParseMessages, ReadsSystem) {
  const ParseTable table = {
      {"'s'", "{'role':'system','content':'s'},"},
      {"''", ""},
      {"[]", ""},
      {"null", ""},
      {"[{'type':'text','text':'a'},{'type':'text','text':'b','cache_control':{}}]",
       "{'role':'system','content':'a\\nb'},"},
      {"[{'type':'text','text':'x-anthropic-billing-header: cc_version=2.1.0;'},"
       "{'type':'text','text':'b'}]",
       "{'role':'system','content':'b'},"},
      {"[{'type':'text','text':'x-anthropic-billing-header: cc_version=2.1.0;'}]", ""},
      // Only the first block is one.
      {"[{'type':'text','text':'b'},{'type':'text','text':'x-anthropic-billing-header: a'}]",
       "{'role':'system','content':'b\\nx-anthropic-billing-header: a'},"},
  };
  for (const auto& [system, expected] : table) {
    EXPECT_EQ(
        ParseMessages(absl::StrCat("{'system':", system, ",'max_tokens':1,", kHelloMessage, "}")),
        Quoted(absl::StrCat("{'messages':[", expected,
                            "{'role':'user','content':'Hello'}],'max_tokens':1}")));
  }
  EXPECT_EQ(ParseMessages(
                absl::StrCat("{'system':[{'type':'text','text':'x-anthropic-billing-header: a'}],"
                             "'max_tokens':1,",
                             kHelloMessage, "}"),
                {.drop_billing_line = false}),
            Quoted("{'messages':[{'role':'system','content':'x-anthropic-billing-header: a'},"
                   "{'role':'user','content':'Hello'}],'max_tokens':1}"));
  EXPECT_EQ(ParseMessages(absl::StrCat("{'system':7,'max_tokens':1,", kHelloMessage, "}")),
            "system must be a string or a list of parts, not a number");
}

TEST(ParseMessages, ReadsFields) {
  const ParseTable table = {
      {"'temperature':0.5,'top_p':0.5,'top_k':3,'stop_sequences':['a'],'stream':true",
       "{'temperature':0.5,'top_p':0.5,'top_k':3,'max_tokens':9,'stop_texts':['a'],"
       "'stream':true}"},
      {"'output_format':{'type':'json_schema','schema':{'type':'array'}}",
       "{'max_tokens':9,'shape':['json_schema','{\\'type\\':\\'array\\'}',false]}"},
      {"'output_config':{'format':{'type':'json_schema','schema':{'type':'array'}}}",
       "{'max_tokens':9,'shape':['json_schema','{\\'type\\':\\'array\\'}',false]}"},
      {"'thinking':{'type':'adaptive'},'output_config':{'effort':'high'}",
       "{'variables':{'enable_thinking':true,'reasoning_effort':'high'},'max_tokens':9}"},
      {"'thinking':{'type':'enabled','budget_tokens':1024,'display':'summarized'}",
       "{'variables':{'enable_thinking':true,'thinking_budget':1024},'max_tokens':9}"},
      {"'thinking':{'type':'disabled'}", "{'variables':{'enable_thinking':false},'max_tokens':9}"},
      {"'thinking':{'type':'adaptive','display':'omitted'}",
       "{'variables':{'enable_thinking':true},'hide_reasoning':true,'max_tokens':9}"},
      {"'tools':[{'name':'f','description':'d','input_schema':{'type':'object'},'type':'custom',"
       "'cache_control':{},'eager_input_streaming':true,'strict':true,'defer_loading':false,"
       "'allowed_callers':['direct'],'input_examples':[]}]",
       "{'tools':[{'type':'function','function':{'name':'f','description':'d','parameters':"
       "{'type':'object'}}}],'parse_calls':true,'strict':['f'],'max_tokens':9}"},
      {"'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':'any'}",
       "{'tools':[{'type':'function','function':{'name':'f','parameters':{}}}],"
       "'parse_calls':true,'must_call':true,'max_tokens':9}"},
      {"'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':'tool','name':'f'}",
       "{'tools':[{'type':'function','function':{'name':'f','parameters':{}}}],"
       "'parse_calls':true,'one_call':true,'must_call':true,'only':['f'],'max_tokens':9}"},
      {"'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':'none'}",
       "{'max_tokens':9}"},
      {"'tool_choice':{'type':'auto','disable_parallel_tool_use':true}",
       "{'one_call':true,'max_tokens':9}"},
      {"'context_management':{'edits':[{'type':'clear_thinking_20251015','keep':'all'},"
       "{'keep':'all','type':'clear_thinking_20251015'},"
       "{'keep':{'type':'all'},'type':'clear_thinking_20251015'}]},'not_known':null",
       "{'max_tokens':9}"},
      {"'metadata':{'user_id':'u'},'service_tier':'auto','cache_control':{'type':'ephemeral'},"
       "'speed':'fast','container':null,'mcp_servers':[]",
       "{'max_tokens':9}"},
  };
  for (const auto& [fields, expected] : table) {
    const std::string hello = "{'messages':[{'role':'user','content':'Hello'}],";
    EXPECT_EQ(ParseMessages(absl::StrCat("{'max_tokens':9,", kHelloMessage, ",", fields, "}")),
              Quoted(absl::StrCat(hello, expected + 1)))
        << fields;
  }
}

// Its clients take the first block of an answer for its text.
TEST(ParseMessages, ThinksOnlyWhereItIsAskedTo) {
  const auto variables = [](absl::string_view fields) {
    const Call call = Must(ParseCall(
        Protocol::kMessages, Quoted(absl::StrCat("{'max_tokens':9,", kHelloMessage, fields, "}"))));
    return call.template_variables->dump();
  };
  EXPECT_EQ(variables(""), Quoted("{'enable_thinking':false}"));
  EXPECT_EQ(variables(",'thinking':null"), Quoted("{'enable_thinking':false}"));
  EXPECT_EQ(variables(",'thinking':{'type':'adaptive'}"), Quoted("{'enable_thinking':true}"));
  EXPECT_EQ(variables(",'chat_template_kwargs':{'enable_thinking':true}"),
            Quoted("{'enable_thinking':true}"));
}

TEST(ParseMessages, RefusesFieldsByName) {
  const ParseTable table = {
      {"'thinking':{}", "thinking.type must be given"},
      {"'thinking':{'type':'x'}", "thinking.type must be enabled or adaptive or disabled, not ~x~"},
      {"'thinking':{'type':'enabled','budget_tokens':0}",
       "thinking.budget_tokens must be a whole number from 1 to 9007199254740992, not 0"},
      {"'output_config':{'format':{'type':'json_schema'}}",
       "output_config.format.schema must be given"},
      {"'tool_choice':{'type':'any'}",
       "tool_choice demands a call of a tool, but there is none to be called"},
      {"'tool_choice':{'type':'tool'}", "tool_choice.name must be given"},
      {"'tool_choice':{}", "tool_choice.type must be given"},
      {"'tool_choice':{'type':'x'}",
       "tool_choice.type must be auto or none or any or tool, not ~x~"},
      {"'tool_choice':'auto'", "tool_choice must be an object, not a string"},
      {"'tools':[{'type':'web_search_20250305','name':'web_search'}]",
       "tools[0].type is ~web_search_20250305~, a tool that this server does not have"},
      {"'tools':[{'name':'f'}]", "tools[0].input_schema must be given"},
      {"'tools':[{'name':'f','input_schema':{},'defer_loading':true}]",
       "tools[0].defer_loading cannot be true: this server does not search for tools"},
      {"'tools':[{'name':'f','input_schema':{},'input_examples':[{}]}]",
       "tools[0].input_examples is not supported"},
      {"'tools':[{'name':'f','input_schema':{},'allowed_callers':['code_execution_20250825']}]",
       "tools[0].allowed_callers must be ['direct']"},
      {"'context_management':{'edits':[{'type':'clear_tool_uses_20250919'}]}",
       "context_management.edits[0] must be {'type':'clear_thinking_20251015','keep':'all'}: this "
       "server leaves nothing out of a conversation"},
      {"'container':'c'", "container is not supported"},
      {"'mcp_servers':[{}]", "mcp_servers is not supported"},
      {"'thread':{'type':'create'}",
       "thread is not supported: this server stores no messages, so send all of them"},
      {"'n':2", "~n~ is not a field that this server knows"},
      {"'logprobs':true", "~logprobs~ is not a field that this server knows"},
  };
  for (const auto& [fields, expected] : table)
    EXPECT_EQ(ParseMessages(absl::StrCat("{'max_tokens':9,", kHelloMessage, ",", fields, "}")),
              Quoted(expected));
  EXPECT_EQ(ParseMessages(absl::StrCat("{", kHelloMessage, "}")), "max_tokens must be given");
}

TEST(ParseMessages, CountsWithoutLimit) {
  const auto count = [](const char* request) {
    return ParsedText(ParseCountTokens(Quoted(request)));
  };
  EXPECT_EQ(count("{'messages':[{'role':'assistant','content':'a'}]}"),
            Quoted("{'messages':[{'role':'assistant','content':'a'}],"
                   "'variables':{'enable_thinking':false}}"));
  EXPECT_EQ(count("{'messages':[]}"), "messages must not be empty");
}

}  // namespace
}  // namespace inlay::serve

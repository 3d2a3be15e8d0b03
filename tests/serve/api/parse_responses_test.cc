#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "serve/api/sealed_reasoning.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

std::string ParseResponse(absl::string_view request) {
  return Parsed(Protocol::kResponses, request);
}

TEST(ParseResponses, ReadsInput) {
  const std::string sealed = SealReasoning("thought");
  const std::string sealed_items = absl::StrCat(
      "[{'type':'reasoning','id':'r','summary':[],'encrypted_content':'", sealed,
      "'},{'type':'message','role':'assistant','content':[{'type':'output_text','text':'a',"
      "'annotations':[],'logprobs':[]}],'id':'m','status':'completed','phase':'final_answer'}]");
  const ParseTable table = {
      {"'a'", "{'role':'user','content':'a'}"},
      {"[{'role':'developer','content':'d'},{'type':'message','role':'user','content':["
       "{'type':'input_text','text':'a'},{'type':'input_text','text':'b'}]}]",
       "{'role':'developer','content':'d'},{'role':'user','content':'a\\nb'}"},
      {sealed_items.c_str(), "{'role':'assistant','content':'a','reasoning_content':'thought'}"},
      // One turn is one message, and thoughts begin the next.
      {"[{'type':'reasoning','summary':[],'content':[{'type':'reasoning_text','text':'r'}]},"
       "{'role':'assistant','content':'a'},"
       "{'type':'function_call','id':'i','status':'completed','call_id':'c','name':'f',"
       "'arguments':'{\\'x\\':1}'},"
       "{'type':'function_call','call_id':'d','name':'wait','namespace':'agents',"
       "'arguments':'{}','caller':null},"
       "{'type':'function_call_output','call_id':'c','output':'1'},"
       "{'type':'function_call_output','call_id':'d','output':["
       "{'type':'input_text','text':'2'}]},"
       "{'type':'reasoning','summary':[{'type':'summary_text','text':'s'}]},"
       "{'type':'function_call','call_id':'e','name':'f','arguments':''},"
       "{'type':'reasoning','summary':[]},"
       "{'type':'function_call_output','call_id':'e','output':'3','id':null}]",
       "{'role':'assistant','content':'a','reasoning_content':'r','tool_calls':["
       "{'id':'c','type':'function','function':{'name':'f','arguments':{'x':1}}},"
       "{'id':'d','type':'function','function':{'name':'agents.wait','arguments':{}}}]},"
       "{'role':'tool','content':'1','tool_call_id':'c','name':'f'},"
       "{'role':'tool','content':'2','tool_call_id':'d','name':'agents.wait'},"
       "{'role':'assistant','content':'','reasoning_content':'s','tool_calls':["
       "{'id':'e','type':'function','function':{'name':'f','arguments':{}}}]},"
       "{'role':'tool','content':'3','tool_call_id':'e','name':'f'}"},
      {"[{'role':'assistant','content':'a'},"
       "{'type':'reasoning','summary':[{'type':'summary_text','text':'s'}]},"
       "{'type':'function_call','call_id':'c','name':'f','arguments':''}]",
       "{'role':'assistant','content':'a'},{'role':'assistant','content':'',"
       "'reasoning_content':'s','tool_calls':[{'id':'c','type':'function','function':"
       "{'name':'f','arguments':{}}}]}"},
      // As the parse() of OpenAI's client leaves it.
      {"[{'role':'assistant','content':[{'type':'output_text','text':'{}','parsed':{}}]},"
       "{'type':'function_call','call_id':'c','name':'f','arguments':'{','parsed_arguments':null}]",
       "{'role':'assistant','content':'{}','tool_calls':[{'id':'c','type':'function','function':{"
       "'name':'f','arguments':{'malformed':'{'}}}]}"},
      // Arguments that are an object already.
      {"[{'type':'function_call','call_id':'c','name':'f','arguments':{'x':1}}]",
       "{'role':'assistant','content':'','tool_calls':[{'id':'c','type':'function','function':{"
       "'name':'f','arguments':{'x':1}}}]}"},
      // Thoughts that nothing followed: the client broke off.
      {"[{'type':'reasoning','summary':[{'type':'summary_text','text':'s'}]},"
       "{'role':'user','content':'a'}]",
       "{'role':'assistant','content':'','reasoning_content':'s'},{'role':'user','content':'a'}"},
  };
  for (const auto& [input, expected] : table) {
    EXPECT_EQ(ParseResponse(absl::StrCat("{'input':", input, "}")),
              Quoted(absl::StrCat("{'messages':[", expected, "]}")));
  }
  EXPECT_EQ(ParseResponse("{'input':'a','instructions':'i'}"),
            Quoted("{'messages':[{'role':'system','content':'i'},{'role':'user','content':'a'}]}"));
}

TEST(ParseResponses, RefusesInputByName) {
  const ParseTable table = {
      {"null", "input must be given"},
      {"7", "input must be a string or a list of items, not a number"},
      {"[]", "input must not be empty"},
      {"[7]", "input[0] must be an object, not a number"},
      {"[{'type':'item_reference','id':'a'}]",
       "input[0].type is ~item_reference~, but this server stores no items: send each in full, "
       "with store set to false (in the AI SDK: providerOptions.openai.store)"},
      {"[{'type':'computer_call'}]",
       "input[0].type is ~computer_call~, an item that this server cannot read"},
      {"[{'content':'a'}]", "input[0].role must be given"},
      {"[{'role':'user'}]", "input[0].content must be given"},
      {"[{'role':'user','content':[{'type':'input_image','image_url':'u'}]}]",
       "input[0].content[0].type is ~input_image~, but this server reads only text"},
      {"[{'type':'reasoning','summary':[],'encrypted_content':'gAAAA'}]",
       "input[0].encrypted_content is not from this server, which therefore cannot read it"},
      {"[{'type':'function_call','name':'f','arguments':'{}'}]", "input[0].call_id must be given"},
      {"[{'type':'function_call_output','call_id':'c'}]", "input[0].output must be given"},
      {"[{'role':'user','content':'a','x':1}]",
       "input[0].~x~ is not a field that this server knows"},
  };
  for (const auto& [input, expected] : table)
    EXPECT_EQ(ParseResponse(absl::StrCat("{'input':", input, "}")), Quoted(expected));
}

TEST(ParseResponses, ReadsFields) {
  const ParseTable table = {
      {"'max_output_tokens':5,'temperature':1,'top_p':0.5,'stream':true,"
       "'stream_options':{'include_obfuscation':false}",
       "'temperature':1.0,'top_p':0.5,'max_tokens':5,'stream':true"},
      {"'reasoning':{'effort':'low','summary':'auto'}", "'variables':{'reasoning_effort':'low'}"},
      {"'reasoning':{'effort':'none'}", "'variables':{'enable_thinking':false}"},
      {"'text':{'format':{'type':'text'},'verbosity':'high'}", "'variables':{'verbosity':'high'}"},
      {"'text':{'format':{'type':'json_schema','name':'n','schema':{},'strict':true}}",
       "'shape':['json_schema','{}',true]"},
      {"'include':['reasoning.encrypted_content','web_search_call.action.sources']",
       "'sealed_reasoning':true"},
      {"'parallel_tool_calls':false", "'one_call':true"},
      {"'tools':[{'type':'function','name':'f','description':'d','strict':false,"
       "'parameters':{'type':'object'}},{'type':'web_search','external_web_access':false},"
       "{'type':'namespace','name':'agents','description':'All.','tools':["
       "{'type':'function','name':'wait','strict':false,'description':'Wait.','parameters':{}},"
       "{'type':'function','name':'go','parameters':null}]}]",
       "'tools':[{'type':'function','function':{'name':'f','description':'d','parameters':"
       "{'type':'object'}}},{'type':'function','function':{'name':'agents.wait','description':"
       "'All.\\nWait.','parameters':{}}},{'type':'function','function':{'name':'agents.go',"
       "'description':'All.\\n','parameters':{'type':'object','properties':{}}}}],"
       "'parse_calls':true,'strict_if_possible':['agents.go'],'namespaced':{'agents.go':['agents','"
       "go'],"
       "'agents.wait':['agents','wait']}"},
      {"'tool_choice':'none','tools':[{'type':'function','name':'f'}]", ""},
      {"'tool_choice':{'type':'function','name':'f'},'tools':[{'type':'function','name':'f',"
       "'strict':true,'parameters':{}}]",
       "'tools':[{'type':'function','function':{'name':'f','parameters':{}}}],"
       "'parse_calls':true,'one_call':true,'must_call':true,'only':['f'],'strict':['f']"},
      {"'tool_choice':{'type':'allowed_tools','mode':'required','tools':[{'type':'function',"
       "'name':'g'}]},'tools':[{'type':'function','name':'f'},{'type':'function','name':'g'}]",
       "'tools':[{'type':'function','function':{'name':'f','parameters':{'type':'object',"
       "'properties':{}}}},{'type':'function','function':{'name':'g','parameters':{'type':"
       "'object','properties':{}}}}],'parse_calls':true,'must_call':true,'only':['g'],"
       "'strict_if_possible':['f','g']"},
      {"'store':false,'metadata':{},'prompt_cache_key':'k','client_metadata':{'a':'b'},"
       "'user':'u','service_tier':'auto','max_tool_calls':3,'truncation':'disabled',"
       "'top_logprobs':0,'background':false,'previous_response_id':null,'conversation':null,"
       "'prompt':null,'context_management':null",
       ""},
  };
  for (const auto& [fields, expected] : table) {
    EXPECT_EQ(ParseResponse(absl::StrCat("{'input':'a',", fields, "}")),
              Quoted(absl::StrCat("{'messages':[{'role':'user','content':'a'}]",
                                  *expected == '\0' ? "" : ",", expected, "}")));
  }
}

TEST(ParseResponses, RefusesFieldsByName) {
  const ParseTable table = {
      {"'store':true", "store cannot be true: this server stores no answers"},
      {"'background':true", "background cannot be true: this server stores no answers"},
      {"'previous_response_id':'r'",
       "previous_response_id is not supported: this server stores no answers, so send the whole "
       "input"},
      {"'conversation':'c'",
       "conversation is not supported: this server stores no answers, so send the whole input"},
      {"'prompt':{'id':'p'}", "prompt is not supported: this server stores no prompts"},
      {"'truncation':'auto'", "truncation must be disabled, not ~auto~"},
      {"'top_logprobs':1", "top_logprobs must be a whole number from 0 to 0, not 1"},
      {"'include':['message.output_text.logprobs']",
       "include[0] is 'message.output_text.logprobs', which is not supported"},
      {"'include':[7]", "include[0] is 7, which is not supported"},
      {"'text':{'format':{'type':'json_schema'}}", "text.format.schema must be given"},
      {"'reasoning':{'mode':'pro'}", "reasoning.mode must be standard, not ~pro~"},
      {"'reasoning':{'context':'all_turns'}", "reasoning.context must be auto, not ~all_turns~"},
      {"'tools':[{'type':'web_search'}]",
       "tools[0].type is ~web_search~, a tool that this server does not have: leave it out, or set "
       "its external_web_access to false (in Codex~s config.toml: web_search = 'disabled')"},
      {"'tools':[{'type':'custom','name':'f'}]",
       "tools[0].type is ~custom~, a tool that this server does not have"},
      {"'tools':[{'type':'namespace','name':'a','tools':[{'type':'custom'}]}]",
       "tools[0].tools[0].type must be function, not ~custom~"},
      {"'tools':[{'type':'function','name':'a.b'},"
       "{'type':'namespace','name':'a','tools':[{'type':'function','name':'b'}]}]",
       "tools[1].tools[0].name is ~a.b~, as that of a tool before it"},
      {"'tools':[{'type':'function','name':'f','output_schema':{'a':1}}]",
       "tools[0].output_schema is not supported"},
      {"'tool_choice':'required'",
       "tool_choice demands a call of a tool, but there is none to be called"},
      {"'tool_choice':{'type':'hosted'}",
       "tool_choice.type is ~hosted~, not function or allowed_tools"},
      {"'n':2", "~n~ is not a field that this server knows"},
  };
  for (const auto& [fields, expected] : table)
    EXPECT_EQ(ParseResponse(absl::StrCat("{'input':'a',", fields, "}")), Quoted(expected));
}

TEST(ParseResponses, RepeatsTheRequest) {
  const auto repeated = [](const char* request) {
    return DumpJson(*ParseCall(Protocol::kResponses, Quoted(request))->repeated);
  };
  EXPECT_EQ(repeated("{'input':'a'}"),
            Quoted("{'instructions':null,'max_output_tokens':null,'max_tool_calls':null,"
                   "'temperature':null,'top_p':null,'prompt_cache_key':null,"
                   "'safety_identifier':null,'user':null,'metadata':{},"
                   "'parallel_tool_calls':true,'reasoning':{'effort':null,'summary':null},"
                   "'text':{'format':{'type':'text'}},'tool_choice':'auto','tools':[],"
                   "'truncation':'disabled','service_tier':'default','top_logprobs':0}"));
  EXPECT_EQ(repeated("{'input':'a','temperature':0.5,'tools':[{'type':'function','name':'f'}]}"),
            Quoted("{'instructions':null,'max_output_tokens':null,'max_tool_calls':null,"
                   "'temperature':0.5,'top_p':null,'prompt_cache_key':null,"
                   "'safety_identifier':null,'user':null,'metadata':{},"
                   "'parallel_tool_calls':true,'reasoning':{'effort':null,'summary':null},"
                   "'text':{'format':{'type':'text'}},'tool_choice':'auto',"
                   "'tools':[{'type':'function','name':'f'}],"
                   "'truncation':'disabled','service_tier':'default','top_logprobs':0}"));
}

TEST(SealedReasoning, ComesBack) {
  EXPECT_EQ(UnsealReasoning(SealReasoning("a\n\xc3\xa9")), "a\n\xc3\xa9");
  EXPECT_EQ(UnsealReasoning(SealReasoning("")), "");
  EXPECT_EQ(UnsealReasoning("inlay1:?"), std::nullopt);
  EXPECT_EQ(UnsealReasoning("YQ=="), std::nullopt);
  EXPECT_EQ(UnsealReasoning(SealReasoning("\xff")), std::nullopt);  // nobody else wrote this
}

}  // namespace
}  // namespace inlay::serve

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

constexpr char kHello[] = R"('messages':[{'role':'user','content':'Hello'}])";

std::string ParseChat(absl::string_view request) {
  return Parsed(Protocol::kChatCompletions, request);
}

// The call of a request with these fields beside one message, without that message.
std::string ParseFields(absl::string_view fields) {
  const std::string text = ParseChat(absl::StrCat("{", kHello, ",", fields, "}"));
  const std::string hello = Quoted(absl::StrCat("{", kHello));
  if (text.substr(0, hello.size()) != hello) return text;
  const size_t rest = text[hello.size()] == ',' ? hello.size() + 1 : hello.size();
  return absl::StrCat("{", text.substr(rest));
}

// Of one message.
std::string ParseMessage(absl::string_view message) {
  return ParseChat(absl::StrCat("{'messages':[", message, "]}"));
}

TEST(ParseChatCompletions, HonoursFields) {
  const ParseTable table = {
      {"'model':'gemma'", "{'model':'gemma'}"},
      {"'temperature':0", "{'temperature':0.0}"},
      {"'temperature':2,'top_p':0.5,'top_k':7,'min_p':1",
       "{'temperature':2.0,'top_p':0.5,'min_p':1.0,'top_k':7}"},
      {"'top_p':0", "{'top_p':0.0}"},
      {"'top_k':-1", "{'top_k':0}"},
      {"'repeat_penalty':1.5", "{'repeat_penalty':1.5}"},
      {"'repetition_penalty':1.5", "{'repeat_penalty':1.5}"},
      {"'repetition_penalty':1.5,'repeat_penalty':1.5", "{'repeat_penalty':1.5}"},
      {"'repeat_last_n':32", "{'repeat_last_n':32}"},
      {"'repeat_last_n':0", "{'repeat_last_n':0}"},
      {"'repeat_last_n':-1", "{'repeat_last_n':2147483647}"},
      {"'presence_penalty':-2,'frequency_penalty':2",
       "{'presence_penalty':-2.0,'frequency_penalty':2.0}"},
      {"'seed':18446744073709551615", "{'seed':18446744073709551615}"},
      {"'seed':-1", "{}"},
      {"'logit_bias':{'7':-100,'0':1.5}", "{'logit_bias':[[7,-100.0],[0,1.5]]}"},
      {"'max_tokens':5", "{'max_tokens':5}"},
      {"'max_completion_tokens':5", "{'max_tokens':5}"},
      {"'max_tokens':5.0,'max_completion_tokens':5", "{'max_tokens':5}"},
      // The newer name counts.
      {"'max_completion_tokens':2,'max_tokens':5", "{'max_tokens':2}"},
      // As clients say that there is no limit.
      {"'max_tokens':-1", "{}"},
      {"'max_tokens':5,'max_completion_tokens':-1", "{}"},
      {"'max_tokens':2147483647", "{'max_tokens':2147483647}"},
      {"'max_tokens':9007199254740991", "{'max_tokens':9007199254740991}"},
      {"'stop':'a'", "{'stop_texts':['a']}"},
      {"'stop':['a','b']", "{'stop_texts':['a','b']}"},
      {"'stop':[]", "{}"},
      {"'stop':''", "{}"},
      {"'stop':['','a']", "{'stop_texts':['a']}"},
      {"'n':16", "{'choices':16}"},
      {"'logprobs':true,'top_logprobs':20", "{'logprobs':true,'top_logprobs':20}"},
      {"'stream':true,'stream_options':{'include_usage':true,'include_obfuscation':true}",
       "{'stream':true,'stream_usage':true}"},
      {"'reasoning_effort':'high'", "{'variables':{'reasoning_effort':'high'}}"},
      {"'reasoning_effort':'none'", "{'variables':{'enable_thinking':false}}"},
      {"'verbosity':'low'", "{'variables':{'verbosity':'low'}}"},
      {"'enable_thinking':false", "{'variables':{'enable_thinking':false}}"},
      {"'thinking':{'type':'enabled'}", "{'variables':{'enable_thinking':true}}"},
      {"'thinking':{'type':'disabled'}", "{'variables':{'enable_thinking':false}}"},
      {"'reasoning':{'effort':'low'}", "{'variables':{'reasoning_effort':'low'}}"},
      {"'reasoning':{'enabled':false}", "{'variables':{'enable_thinking':false}}"},
      {"'chat_template_kwargs':{'enable_thinking':true},'enable_thinking':false",
       "{'variables':{'enable_thinking':true}}"},
      {"'add_generation_prompt':true,'continue_final_message':false", "{}"},
      {"'chat_template_kwargs':{'enable_thinking':true,'x':[1]},'reasoning_effort':'none'",
       "{'variables':{'enable_thinking':true,'x':[1]}}"},
      {"'ignore_eos':true", "{'ignore_eos':true}"},
      {"'parallel_tool_calls':false", "{'one_call':true}"},
      {"'response_format':{'type':'text'}", "{}"},
      {"'response_format':{'type':'json_object'}",
       "{'shape':['json_schema','{\\'type\\':\\'object\\'}',false]}"},
      // As llama.cpp's server has it.
      {"'response_format':{'type':'json_object','schema':{'type':'array'}}",
       "{'shape':['json_schema','{\\'type\\':\\'array\\'}',false]}"},
      {"'response_format':{'type':'json_schema','json_schema':{'name':'n','description':'d',"
       "'schema':{'b':1,'a':[2]},'strict':true}}",
       "{'shape':['json_schema','{\\'b\\':1,\\'a\\':[2]}',true]}"},
      {"'response_format':{'type':'json_schema','json_schema':{'schema':true}}",
       "{'shape':['json_schema','true',false]}"},
      {"'grammar':'root ::= [a-z]'", "{'shape':['gbnf','root ::= [a-z]',false]}"},
      {"'modalities':['text']", "{}"},
      // Of two members of one name the last one counts.
      {"'max_tokens':5,'max_tokens':6", "{'max_tokens':6}"},
  };
  for (const auto& [fields, expected] : table)
    EXPECT_EQ(ParseFields(fields), Quoted(expected)) << fields;
}

TEST(ParseChatCompletions, NucleusOfNothingIsTheLikeliestToken) {
  const auto call =
      ParseCall(Protocol::kChatCompletions, Quoted(absl::StrCat("{", kHello, ",'top_p':0}")));
  ASSERT_TRUE(call.ok());
  EXPECT_GT(*call->sampling.top_p, 0);  // what the sampler takes
}

TEST(ParseChatCompletions, AcceptsWhatChangesNoAnswer) {
  for (const char* fields :
       {"'user':'u','metadata':{'a':'b'},'service_tier':'auto','safety_identifier':'s'",
        "'prompt_cache_key':'k','prompt_cache_retention':'24h','prompt_cache_options':{}",
        "'cache_prompt':true,'timings_per_token':true,'store':false",
        "'audio':null,'modalities':null,'functions':[],'prediction':null,'n':null,'stop':null",
        "'stream_options':{'continuous_usage_stats':false}", "'not_known':[],'neither':{}",
        "'tool_choice':'auto'", "'tool_choice':'none'", "'tools':[]", "'stream':false",
        "'tool_choice':{'type':'allowed_tools','allowed_tools':{'mode':'auto','tools':[]}}"})
    EXPECT_EQ(ParseFields(fields), "{}") << fields;
}

TEST(ParseChatCompletions, RefusesFieldsByName) {
  const ParseTable table = {
      {"'temperature':2.5", "temperature must be a number from 0 to 2, not 2.5"},
      {"'temperature':'1'", "temperature must be a number, not a string"},
      {"'temperature':1e999",
       "the body has the number ~1e999~, which is beyond the range of a double"},
      {"'top_p':-0.1", "top_p must be a number from 0 to 1, not -0.1"},
      {"'top_k':-2", "top_k must be a whole number from -1 to 2147483647, not -2"},
      {"'top_k':1.5", "top_k must be a whole number from -1 to 2147483647, not 1.5"},
      {"'min_p':true", "min_p must be a number, not true"},
      {"'repeat_penalty':0", "repeat_penalty must be a number from 0.01 to 100, not 0"},
      {"'repetition_penalty':1.5,'repeat_penalty':1",
       "repetition_penalty must equal repeat_penalty, which is another name for it"},
      {"'repeat_last_n':-2", "repeat_last_n must be a whole number from -1 to 2147483647, not -2"},
      {"'repeat_last_n':1.5",
       "repeat_last_n must be a whole number from -1 to 2147483647, not 1.5"},
      {"'seed':-2",
       "seed must be a whole number from 0 to 18446744073709551615 or -1 for any, not -2"},
      {"'seed':18446744073709551616",
       "seed must be a whole number from 0 to 18446744073709551615 or -1 for any, not "
       "1.8446744073709552e+19"},
      {"'logit_bias':{'x':1}", "logit_bias.~x~ must be the number of a token"},
      {"'logit_bias':{'-1':1}", "logit_bias.~-1~ must be the number of a token"},
      {"'logit_bias':{'99999999999':1}", "logit_bias.~99999999999~ must be the number of a token"},
      {"'logit_bias':{'1':101}", "logit_bias.1 must be a number from -100 to 100, not 101"},
      {"'logit_bias':{'1':null}", "logit_bias.1 must be a number from -100 to 100, not null"},
      {"'logit_bias':[]", "logit_bias must be an object, not a list"},
      {"'max_tokens':0",
       "max_tokens must be a whole number of at least 1, or -1 for no limit, not 0"},
      {"'max_tokens':-2", "max_tokens must be a whole number from 1 to 9007199254740992, not -2"},
      {"'max_tokens':1e300",
       "max_tokens must be a whole number from 1 to 9007199254740992, not 1e+300"},
      {"'max_tokens':true", "max_tokens must be a whole number, not true"},
      {"'stop':7", "stop must be a string or a list of strings, not a number"},
      {"'stop':['a',7]", "stop[1] must be a string, not a number"},
      {"'n':17", "n must be a whole number from 1 to 16, not 17"},
      {"'n':0", "n must be a whole number from 1 to 16, not 0"},
      {"'logprobs':2", "logprobs must be true or false, not a number"},
      {"'top_logprobs':1", "top_logprobs needs logprobs to be true"},
      {"'logprobs':true,'top_logprobs':21",
       "top_logprobs must be a whole number from 0 to 20, not 21"},
      {"'reasoning':{'effort':'low','exclude':true}",
       "reasoning.~exclude~ is not a field that this server knows"},
      {"'guided_json':{'type':'object'}",
       "guided_json is not supported: use response_format or grammar"},
      {"'n_predict':5", "n_predict is not supported: use max_tokens"},
      {"'continue_final_message':true",
       "continue_final_message cannot be true: each answer is a message of its own; "
       "/v1/completions goes on from a text"},
      {"'add_generation_prompt':false",
       "add_generation_prompt cannot be false: an answer is what the model begins then"},
      {"'stream_options':true", "stream_options must be an object, not true"},
      {"'stream_options':{'x':1}", "stream_options.~x~ is not a field that this server knows"},
      {"'stream_options':{'continuous_usage_stats':true}",
       "stream_options.continuous_usage_stats cannot be true: the usage comes once, at the end"},
      {"'reasoning_effort':'huge'",
       "reasoning_effort must be none or minimal or low or medium or high or xhigh or max, not "
       "~huge~"},
      {"'chat_template_kwargs':{'messages':[]}",
       "chat_template_kwargs.messages is set by this server alone"},
      {"'response_format':{'type':'json_schema','json_schema':{}}",
       "response_format.json_schema.schema must be given"},
      {"'response_format':{'type':'json_schema'}", "response_format.json_schema must be given"},
      {"'response_format':{'type':'xml'}",
       "response_format.type is ~xml~, not text, json_object or json_schema"},
      {"'response_format':{'type':'json_schema','json_schema':{'schema':{},'lax':1}}",
       "response_format.json_schema.~lax~ is not a field that this server knows"},
      {"'response_format':{'type':'json_object'},'grammar':'root ::= [a-z]'",
       "grammar cannot be combined with a schema"},
      {"'tool_choice':'required'",
       "tool_choice demands a call of a tool, but there is none to be called"},
      {"'tool_choice':{'type':'function','function':{'name':'f'}}",
       "tool_choice demands a call of a tool, but there is none to be called"},
      {"'tool_choice':{'type':'function'}", "tool_choice.name must be given"},
      {"'tool_choice':{'type':7}", "tool_choice.type must be a string, not a number"},
      {"'tool_choice':{'type':'custom'}",
       "tool_choice.type is ~custom~, not function or allowed_tools"},
      {"'tool_choice':'always'",
       "tool_choice must be auto, none, required or an object, not ~always~"},
      {"'tool_choice':7", "tool_choice must be auto, none, required or an object, not a number"},
      {"'tool_choice':{'type':'function','function':{'name':'g'}},"
       "'tools':[{'type':'function','function':{'name':'f'}}]",
       "tool_choice names ~g~, which is none of the tools"},
      {"'tool_choice':{'type':'allowed_tools','allowed_tools':{'mode':'required','tools':[]}},"
       "'tools':[{'type':'function','function':{'name':'f'}}]",
       "tool_choice demands a call of a tool, but there is none to be called"},
      {"'tool_choice':{'type':'allowed_tools','allowed_tools':{'mode':'x','tools':[]}}",
       "tool_choice.allowed_tools.mode must be auto or required, not ~x~"},
      {"'store':true", "store cannot be true: this server stores no answers"},
      {"'audio':{'voice':'a'}", "audio is not supported"},
      {"'prediction':{'type':'content'}", "prediction is not supported"},
      {"'web_search_options':{'a':1}", "web_search_options is not supported"},
      {"'moderation':{'model':'m'}", "moderation is not supported"},
      {"'functions':[{}]", "functions is not supported: use tools and tool_choice"},
      {"'function_call':'auto'", "function_call is not supported: use tools and tool_choice"},
      {"'modalities':['text','audio']",
       "modalities must be ['text']: this server answers with nothing else"},
      {"'grammar':7", "grammar must be a string, not a number"},
      {"'a\\nb':1", "~a\\nb~ is not a field that this server knows"},
  };
  for (const auto& [fields, expected] : table) {
    EXPECT_EQ(ParseFields(fields), Quoted(expected)) << fields;
  }
}

TEST(ParseChatCompletions, StopTextsAreManyAtMost) {
  std::string stop = "'stop':['0'";
  for (int i = 1; i < 128; ++i) absl::StrAppend(&stop, ",'", i, "'");
  EXPECT_EQ(ParseFields(stop + "]").substr(0, 20), Quoted("{'stop_texts':['0','"));
  EXPECT_EQ(ParseFields(stop + ",'x']"), "stop has 129 texts, more than 128");
}

// What JavaScript writes of a text that was cut within a character: half of it is U+FFFD.
TEST(ParseChatCompletions, ReadsHalfSurrogatePairs) {
  const ParseTable table = {
      {"\\ud83d", "\xef\xbf\xbd"},
      {"a\\uDE00b",
       "a\xef\xbf\xbd"
       "b"},
      {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
      {"\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
      {"\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\\ud83d\\u00e9", "\xef\xbf\xbd\xc3\xa9"},
      {"\\ud83d\\n", "\xef\xbf\xbd\\n"},
      {"\\\\ud83d", "\\\\ud83d"},  // a backslash, and no escape
      {"\\\\\\ud83d", "\\\\\xef\xbf\xbd"},
  };
  for (const auto& [text, expected] : table) {
    const auto message = [](absl::string_view content) {
      return absl::StrCat("{'role':'user','content':'", content, "'}");
    };
    EXPECT_EQ(ParseMessage(message(text)),
              Quoted(absl::StrCat("{'messages':[", message(expected), "]}")))
        << text;
  }
  // Also in arguments, which are JSON within JSON.
  const auto call =
      ParseCall(Protocol::kChatCompletions,
                R"({"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":)"
                R"({"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]}]})",
                {});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->messages->at(0)["tool_calls"][0]["function"]["arguments"].dump(),
            "{\"a\":\"\xef\xbf\xbd\"}");
  for (const char* text : {"\\ud83", "\\ud83x", "\\u", "\\x"}) {
    EXPECT_EQ(ParseMessage(absl::StrCat("{'role':'user','content':'", text, "'}")).substr(0, 16),
              "the body is not ");
  }
}

TEST(ParseChatCompletions, ReadsMessages) {
  const ParseTable table = {
      {"{'role':'system','content':'s'},{'role':'developer','content':'d'},"
       "{'role':'user','content':'u','name':'Ann'}",
       "{'role':'system','content':'s'},{'role':'developer','content':'d'},"
       "{'role':'user','content':'u','name':'Ann'}"},
      {"{'role':'user','content':[{'type':'text','text':'a','cache_control':{'type':'ephemeral'}},"
       "{'type':'text','text':'b'}]}",
       "{'role':'user','content':'a\\nb'}"},
      {"{'role':'user','content':[]}", "{'role':'user','content':''}"},
      {"{'role':'assistant'}", "{'role':'assistant','content':''}"},
      {"{'role':'assistant','content':'a','reasoning_content':'r','refusal':null,"
       "'annotations':[],'audio':null,'function_call':null}",
       "{'role':'assistant','content':'a','reasoning_content':'r'}"},
      {"{'role':'assistant','content':null,'reasoning':'r'}",
       "{'role':'assistant','content':'','reasoning_content':'r'}"},
      {"{'role':'assistant','content':[{'type':'refusal','refusal':'no'}]}",
       "{'role':'assistant','content':'no'}"},
      // What LiteLLM and others add to what they got.
      {"{'role':'user','content':[{'type':'text','text':'a','id':'p','index':0}],'images':[],"
       "'metadata':{}},"
       "{'role':'assistant','content':'a','reasoning_content':'r','provider_specific_fields':"
       "{'refusal':null},'thinking_blocks':[{'type':'thinking','thinking':'r'}],"
       "'tool_calls':[{'id':'c','type':'function','provider_specific_fields':{'x':1},'function':"
       "{'name':'f','arguments':'{}','provider_specific_fields':null}}]},"
       "{'role':'tool','tool_call_id':'c','content':'1','is_error':true},"
       "{'role':'tool','tool_call_id':'c','content':'2','is_error':false}",
       "{'role':'user','content':'a'},"
       "{'role':'assistant','content':'a','reasoning_content':'r','tool_calls':[{'id':'c',"
       "'type':'function','function':{'name':'f','arguments':{}}}]},"
       "{'role':'tool','content':'Error: 1','tool_call_id':'c','name':'f'},"
       "{'role':'tool','content':'2','tool_call_id':'c','name':'f'}"},
      // As @openai/agents sends back what it got.
      {"{'role':'assistant','content':[{'type':'text','text':'a','role':'assistant',"
       "'refusal':null,'reasoning_content':'r','tool_calls':[]}],'tool_calls':[]}",
       "{'role':'assistant','content':'a','reasoning_content':'r'}"},
      // Arguments become an object, and a result gets the name of the function.
      {"{'role':'assistant','content':null,'tool_calls':[{'index':0,'id':'c','type':'function',"
       "'function':{'name':'f','arguments':'{\\'x\\':[1,{}]}'}},"
       "{'id':'d','function':{'name':'g','arguments':''}},"
       "{'id':'x','function':{'name':'g','arguments':{'a':1}}}]},"
       "{'role':'tool','tool_call_id':'c','content':'1'},"
       "{'role':'tool','tool_call_id':'d','content':'2','name':'h'},"
       "{'role':'tool','tool_call_id':'e','content':[{'type':'text','text':'3'}]}",
       "{'role':'assistant','content':'','tool_calls':[{'id':'c','type':'function',"
       "'function':{'name':'f','arguments':{'x':[1,{}]}}},"
       "{'id':'d','type':'function','function':{'name':'g','arguments':{}}},"
       "{'id':'x','type':'function','function':{'name':'g','arguments':{'a':1}}}]},"
       "{'role':'tool','content':'1','tool_call_id':'c','name':'f'},"
       "{'role':'tool','content':'2','tool_call_id':'d','name':'h'},"
       "{'role':'tool','content':'3','tool_call_id':'e'}"},
      // A tool's image would come again with each later request.
      {"{'role':'tool','tool_call_id':'e','content':[{'type':'text','text':'3'},"
       "{'type':'image_url','image_url':{'url':'data:'}}]}",
       "{'role':'tool','content':'3\\n[an image, which this model cannot see]',"
       "'tool_call_id':'e'}"},
      // What a model wrote that is no object, null where nothing is, and what OpenAI's client adds.
      {"{'role':'assistant','parsed':{'a':1},'x':null,'tool_calls':[{'id':'c','function':{"
       "'name':'f','arguments':'[','parsed_arguments':null}},{'id':'d','function':{'name':'f',"
       "'arguments':'null','parsed_arguments':{'a':1}}},{'id':'e','function':{'name':'f',"
       "'arguments':'7'}}]}",
       "{'role':'assistant','content':'','tool_calls':[{'id':'c','type':'function',"
       "'function':{'name':'f','arguments':{'malformed':'['}}},"
       "{'id':'d','type':'function','function':{'name':'f','arguments':{}}},"
       "{'id':'e','type':'function','function':{'name':'f','arguments':{'malformed':'7'}}}]}"},
  };
  for (const auto& [messages, expected] : table) {
    EXPECT_EQ(ParseMessage(messages), Quoted(absl::StrCat("{'messages':[", expected, "]}")))
        << messages;
  }
}

TEST(ParseChatCompletions, RefusesMessagesByName) {
  const ParseTable table = {
      {"", "messages must not be empty"},
      {"7", "messages[0] must be an object, not a number"},
      {"{'content':'a'}", "messages[0].role must be given"},
      {"{'role':7}", "messages[0].role must be a string, not a number"},
      {"{'role':'function','content':'a'}",
       "messages[0].role must be system or developer or user or assistant or tool, not "
       "~function~"},
      {"{'role':'user'}", "messages[0].content must be given"},
      {"{'role':'user','content':7}",
       "messages[0].content must be a string or a list of parts, not a number"},
      {"{'role':'user','content':['a']}", "messages[0].content[0] must be an object, not a string"},
      {"{'role':'user','content':[{'type':'image_url','image_url':{'url':'u'}}]}",
       "messages[0].content[0].type is ~image_url~, but this server reads only text"},
      {"{'role':'user','content':[{'type':'text'}]}", "messages[0].content[0].text must be given"},
      {"{'role':'user','content':[{'type':'text','text':'a','x':1}]}",
       "messages[0].content[0].~x~ is not a field that this server knows"},
      {"{'role':'user','content':'a'},{'role':'assistant','content':'a','prefix':true}",
       "messages[1].~prefix~ is not a field that this server knows"},
      {"{'role':'assistant','content':[{'type':'text','text':'a','role':'assistant',"
       "'reasoning_content':'r'}],'reasoning_content':'s'}",
       "messages[0].content[0].~reasoning_content~ is not a field that this server knows"},
      {"{'role':'tool','content':'a'}", "messages[0].tool_call_id must be given"},
      {"{'role':'assistant','audio':{'id':'a'}}", "messages[0].audio is not supported"},
      {"{'role':'assistant','function_call':{'name':'f'}}",
       "messages[0].function_call is not supported: use tool_calls"},
      {"{'role':'assistant','tool_calls':[7]}",
       "messages[0].tool_calls[0] must be an object, not a number"},
      {"{'role':'assistant','tool_calls':[{'id':'c','type':'custom'}]}",
       "messages[0].tool_calls[0].type must be function, not ~custom~"},
      {"{'role':'assistant','tool_calls':[{'id':'c'}]}",
       "messages[0].tool_calls[0].function must be given"},
      {"{'role':'assistant','tool_calls':[{'id':'c','function':{'name':'f','arguments':[]}}]}",
       "messages[0].tool_calls[0].function.arguments must be a string or an object, not a list"},
      {"{'role':'assistant','tool_calls':[{'id':'c','function':{'name':'f'}}]}",
       "messages[0].tool_calls[0].function.arguments must be given"},
      {"{'role':'user','content':'a','images':['i']}",
       "messages[0].~images~ is not a field that this server knows"},
  };
  for (const auto& [messages, expected] : table) {
    EXPECT_EQ(ParseMessage(messages), Quoted(expected)) << messages;
  }
}

TEST(ParseChatCompletions, ReadsTools) {
  const ParseTable table = {
      {"'tools':[{'type':'function','function':{'name':'f','description':'d','strict':true,"
       "'parameters':{'type':'object','properties':{'z':{},'a':{}}}}},"
       "{'type':'function','function':{'name':'a-b.c_9'}}]",
       "{'tools':[{'type':'function','function':{'name':'f','description':'d',"
       "'parameters':{'type':'object','properties':{'z':{},'a':{}}}}},"
       "{'type':'function','function':{'name':'a-b.c_9',"
       "'parameters':{'type':'object','properties':{}}}}],'parse_calls':true,'strict':['f']}"},
      {"'tools':[{'type':'function','function':{'name':'f'}}],'tool_choice':'required'",
       "{'tools':[{'type':'function','function':{'name':'f','parameters':{'type':'object',"
       "'properties':{}}}}],'parse_calls':true,'must_call':true}"},
      {"'tools':[{'type':'function','function':{'name':'f'}}],"
       "'tool_choice':{'type':'function','function':{'name':'f'}}",
       "{'tools':[{'type':'function','function':{'name':'f','parameters':{'type':'object',"
       "'properties':{}}}}],'parse_calls':true,'one_call':true,'must_call':true,'only':['f']}"},
      {"'tools':[{'type':'function','function':{'name':'f'}}],'parallel_tool_calls':false,"
       "'tool_choice':{'type':'allowed_tools','allowed_tools':{'mode':'auto','tools':["
       "{'type':'function','function':{'name':'f'}}]}}",
       "{'tools':[{'type':'function','function':{'name':'f','parameters':{'type':'object',"
       "'properties':{}}}}],'parse_calls':true,'one_call':true,'only':['f']}"},
      {"'tools':[{'type':'function','function':{'name':'f'}}],'tool_choice':'none'", "{}"},
      {"'tools':[{'type':'custom','custom':{'name':'f'}}]",
       "tools[0].type must be function, not ~custom~"},
      {"'tools':[{'type':'function'}]", "tools[0].function must be given"},
      {"'tools':[{'type':'function','function':{'name':'a b'}}]",
       "tools[0].function.name is ~a b~, not 1 to 128 of the characters A-Z, a-z, 0-9, _, . and -"},
      {"'tools':[{'type':'function','function':{'name':'f'}},"
       "{'type':'function','function':{'name':'f'}}]",
       "tools[1].function.name is ~f~, as that of a tool before it"},
      {"'tools':[{'type':'function','function':{'name':'f','parameters':[]}}]",
       "tools[0].function.parameters must be an object, not a list"},
      {"'tools':[{'type':'function','function':{'name':'f','x':[1]}}]",
       "tools[0].function.~x~ is not a field that this server knows"},
  };
  for (const auto& [fields, expected] : table) {
    EXPECT_EQ(ParseFields(fields), Quoted(expected)) << fields;
  }
}

TEST(ParseChatCompletions, RefusesOtherBodies) {
  const ParseTable table = {
      {"", "the body is not JSON in UTF-8 at byte 1"},
      {"[]", "the body must be an object, not a list"},
      {"{}", "messages must be given"},
      {"{'messages':{}}", "messages must be a list, not an object"},
      {"{'model':7}", "model must be a string, not a number"},
      {"{'messages':'\xff'}", "the body is not JSON in UTF-8 at byte 14"},
      {"{} {}", "the body is not JSON in UTF-8 at byte 4"},
  };
  for (const auto& [body, expected] : table) EXPECT_EQ(ParseChat(body), expected) << body;
}

}  // namespace
}  // namespace inlay::serve

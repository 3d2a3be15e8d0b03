// Calls that a template writes, read again: each format with a template in the style of its family.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/chat_renderer.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/answer_text.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

using nlohmann::ordered_json;

struct Family {
  const char* name;
  const char* source;  // writes the answer that is the last message, and nothing else
};

constexpr Family kFamilies[] = {
    {"Hermes",
     R"({%- set m = messages[-1] -%}
{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' + m.content }}
{%- for call in m.tool_calls %}
{{ '\n<tool_call>\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson
   + '\n</tool_call>' }}
{%- endfor %})"},
    {"tags",
     R"({%- set m = messages[-1] -%}
{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' + m.content + '\n' }}
{%- for call in m.tool_calls %}
{{ '<tool_call>\n<function=' + call.function.name + '>\n' }}
  {%- for key, value in call.function.arguments | items -%}
    {{ '<parameter=' + key + '>\n' }}{{ value if value is string or value is number else value | tojson }}
    {{- '\n</parameter>\n' }}
  {%- endfor -%}
{{ '</function>\n</tool_call>' }}
{%- endfor %})"},
    // Texts of values that are no mappings and lists: True, 2.5.
    {"Nemotron 3",
     R"({%- set m = messages[-1] -%}
{{ '<think>\n' + m.reasoning_content + '\n</think>\n' + m.content + '\n' }}
{%- for call in m.tool_calls %}
{{- '<tool_call>\n<function=' ~ call.function.name ~ '>\n' }}
  {%- for key, value in call.function.arguments | items -%}
    {%- set is_text = value is string or value is not iterable -%}
    {{ '<parameter=' ~ key ~ '>\n' ~ (value | string if is_text else value | tojson) }}
    {{- '\n</parameter>\n' }}
  {%- endfor -%}
{{ '</function>\n</tool_call>\n' }}
{%- endfor %})"},
    {"Granite 3",
     R"({#- <response></response> -#}{%- set m = messages[-1] -%}
{{ '<think>' + m.reasoning_content + '</think>\n<response>' + m.content + '</response>' }}
{{- '<|tool_call|>[' }}
{%- for call in m.tool_calls %}
{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
{{- ', ' if not loop.last }}
{%- endfor %}{{ ']' }})"},
    {"Nemotron Nano 2",
     R"({%- set m = messages[-1] -%}
{{ '<think>\n' + m.reasoning_content + '\n</think>\n' + m.content + '\n<TOOLCALL>[' }}
{%- for call in m.tool_calls %}
{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
{{- ', ' if not loop.last }}
{%- endfor %}{{ ']</TOOLCALL>' }})"},
    {"Mistral",
     R"({%- set m = messages[-1] -%}
{{ '[THINK]' + m.reasoning_content + '[/THINK]' + m.content }}
{%- for call in m.tool_calls %}
{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' + call.function.arguments | tojson }}
{%- endfor %})"},
    {"LFM2",
     R"({%- macro literal(value) -%}
  {{ ("'" + value + "'") if value is string else value | tojson if value is mapping else value }}
{%- endmacro -%}
{%- set m = messages[-1] -%}
{{ '<think>' + m.reasoning_content + '</think>' + m.content + '<|tool_call_start|>[' }}
{%- for call in m.tool_calls -%}
  {{ call.function.name + '(' }}
  {%- for key, value in call.function.arguments | items -%}
    {{ key + '=' + literal(value) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
  {{ ')' }}{{ ', ' if not loop.last }}
{%- endfor %}{{ ']<|tool_call_end|>' }})"},
    // Templates that know nothing of tool_calls get them as text.
    {"LFM2 as text",
     "{#- List of tools: [ </think> -#}{{ messages[-1].content.split('</think>')[0] }}"
     "{{ '</think>' + messages[-1].content.split('</think>')[1] }}"},
    {"Granite 3 as text", "{#- <|tool_call|> -#}{{ messages[-1].content }}"},
    {"Hermes as text", "{#- <tool_call> -#}{{ messages[-1].content }}"},
    {"FunctionGemma",
     R"({%- macro value(v) -%}
  {%- if v is string -%}{{ '<escape>' + v + '<escape>' }}
  {%- elif v is mapping -%}
    {{ '{' }}{% for k, x in v | items %}{{ k }}:{{ value(x) }}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}
  {%- elif v is sequence -%}
    [{% for x in v %}{{ value(x) }}{{ ',' if not loop.last }}{% endfor %}]
  {%- else -%}{{ v | tojson }}{%- endif -%}
{%- endmacro -%}
{%- set m = messages[-1] -%}{{ m.content }}
{%- for call in m.tool_calls -%}
{{ '<start_function_call>call:' + call.function.name }}{{ value(call.function.arguments) }}
{{- '<end_function_call>' }}
{%- endfor %})"},
    {"Gemma 4",
     R"({%- macro value(v) -%}
  {%- if v is string -%}{{ '<|"|>' + v + '<|"|>' }}
  {%- elif v is mapping -%}
    {{ '{' }}{% for k, x in v | dictsort %}{{ k }}:{{ value(x) }}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}
  {%- elif v is boolean -%}{{ 'true' if v else 'false' }}
  {%- elif v is sequence -%}
    [{% for x in v %}{{ value(x) }}{{ ',' if not loop.last }}{% endfor %}]
  {%- else -%}{{ v }}{%- endif -%}
{%- endmacro -%}
{%- set m = messages[-1] -%}
{{ '<|channel>thought\n' + m.reasoning_content + '\n<channel|>' + m.content }}
{%- for call in m.tool_calls -%}
{{ '<|tool_call>call:' + call.function.name }}{{ value(call.function.arguments) }}{{ '<tool_call|>' }}
{%- endfor %})"},
};

// What the events say, as the message that was rendered.
ordered_json MessageOf(const std::vector<AnswerEvent>& events) {
  using Kind = AnswerEvent::Kind;
  std::string text, thoughts;
  auto calls = ordered_json::array();
  std::vector<std::string> arguments;
  for (const AnswerEvent& event : events) {
    if (event.kind == Kind::kText) text += event.text;
    if (event.kind == Kind::kReasoning) thoughts += event.text;
    if (event.kind == Kind::kCallBegin) {
      calls.push_back({{"function", {{"name", event.text}}}});
      arguments.emplace_back();
    }
    if (event.kind == Kind::kCallArguments) arguments.back() += event.text;
  }
  for (size_t i = 0; i < calls.size(); ++i)
    calls[i]["function"]["arguments"] = ordered_json::parse(arguments[i]);
  return {{"role", "assistant"},
          {"content", text},
          {"reasoning_content", thoughts},
          {"tool_calls", calls}};
}

TEST(CallRoundTripTest, WhatATemplateWritesIsReadAgain) {
  const auto tools = ordered_json::parse(R"([{"type": "function", "function": {"name": "f.g",
      "parameters": {"properties": {"count": {"type": "integer"}, "list": {"type": "array"},
      "map": {"type": "object"}, "on": {"type": "boolean"}, "text": {"type": "string"}}}}}])");
  const auto message = ordered_json::parse(R"({"role": "assistant", "content": "Let me see.",
      "reasoning_content": "I should\nlook.", "tool_calls": [
        {"function": {"name": "f.g", "arguments": {"count": -12, "list": [1, 2.5, "x"],
          "map": {"a": {"b": "c"}}, "on": true, "text": "it's \"so\",\n(a) {é} = 1"}}},
        {"function": {"name": "empty", "arguments": {}}}]})");
  const auto tokenizer = GemmaTokenizer();
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const auto renderer = Must(ChatRenderer::CreateFrom(*tokenizer, family.source));
    const ChatInput input =
        Must(ChatInput::Parse(ordered_json::array({message}).dump(), tools.dump()));
    const std::string text(Must(renderer.RenderText(input)).bytes());
    ordered_json wanted = message;
    if (renderer.answer_format(true).think_begin.empty()) wanted["reasoning_content"] = "";
    for (const size_t size : {text.size(), size_t{1}}) {
      const auto events = ParseInPieces(renderer.answer_format(true), text, {.tools = input.tools},
                                        [&] { return size; });
      EXPECT_EQ(MessageOf(events), wanted) << text;
    }
  }
}

}  // namespace
}  // namespace inlay

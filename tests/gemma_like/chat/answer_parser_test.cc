#include "gemma_like/chat/answer_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "io/template/json_input.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/answer_text.h"
#include "tests/must.h"
#include "tests/repetitions.h"

namespace inlay {
namespace {

using Kind = AnswerEvent::Kind;

// "text", "(thoughts)" and "f{...}." for a call, with "!" in place of "." where it has no end; a
// bar between them.
std::string Shown(const std::vector<AnswerEvent>& events) {
  std::string shown;
  bool open = false;
  for (const AnswerEvent& event : events) {
    const bool in_call = event.kind == Kind::kCallArguments || event.kind == Kind::kCallEnd;
    if (open && !in_call) shown += "!";
    open = event.kind == Kind::kCallBegin || event.kind == Kind::kCallArguments;
    if (!shown.empty() && !in_call) shown += "|";
    if (event.kind == Kind::kReasoning) {
      absl::StrAppend(&shown, "(", event.text, ")");
    } else {
      absl::StrAppend(&shown, event.text, event.kind == Kind::kCallEnd ? "." : "");
    }
  }
  return shown + (open ? "!" : "");
}

// Parses the text whole, byte by byte and in random pieces, which must all say the same.
std::vector<AnswerEvent> Parse(const AnswerFormat& format, const std::string& text,
                               const AnswerParserOptions& options = {}) {
  const auto whole = ParseInPieces(format, text, options, [&] { return text.size(); });
  EXPECT_EQ(ParseInPieces(format, text, options, [] { return 1; }), whole) << text;
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ParseInPieces(format, text, options, [&] { return 1 + random() % 9; }), whole);
  return whole;
}

std::string ShowAnswer(const AnswerFormat& format, const std::string& text,
                       const AnswerParserOptions& options = {}) {
  return Shown(Parse(format, text, options));
}

const AnswerFormat kQwen = AnswerFormat::Of("<think></think><tool_call>");
const AnswerFormat kGemma4 =
    AnswerFormat::Of("<|channel>thought<channel|><|tool_call><tool_call|>");
const AnswerFormat kFunctionGemma = AnswerFormat::Of("<start_function_call>");
const AnswerFormat kLfm2 = AnswerFormat::Of("</think> List of tools: [");
const AnswerFormat kNemotron2 = AnswerFormat::Of("</think><TOOLCALL>");
const AnswerFormat kGranite3 = AnswerFormat::Of("</think><response></response><|tool_call|>");
const AnswerFormat kMistral = AnswerFormat::Of("[TOOL_CALLS][THINK][/THINK]");

AnswerParserOptions WithTools(const char* tools) {
  return {.tools = Must(jinja::ParseJson(tools))};
}

TEST(AnswerFormatTest, IsFoundInTheTemplatesText) {
  EXPECT_EQ(AnswerFormat::Of("{{ messages[0].content }}").calls, CallSyntax::kNone);
  EXPECT_EQ(AnswerFormat::Of("{{ messages[0].content }}").think_begin, "");
  EXPECT_EQ(kQwen.think_begin, "<think>");
  EXPECT_EQ(kQwen.text_begin, "");
  EXPECT_EQ(kQwen.calls, CallSyntax::kTagged);
  EXPECT_EQ(kGemma4.think_end, "<channel|>");
  EXPECT_EQ(kGemma4.quote, "<|\"|>");
  EXPECT_EQ(kFunctionGemma.quote, "<escape>");
  EXPECT_EQ(kFunctionGemma.call_end, "<end_function_call>");
  EXPECT_EQ(kGranite3.text_begin, "<response>");
  EXPECT_EQ(kGranite3.calls, CallSyntax::kJson);
  EXPECT_EQ(kGranite3.call_end, "");
  for (const char* text : {"<|tool_call_start|>", "<|tool_list_start|>", "List of tools: ["})
    EXPECT_EQ(AnswerFormat::Of(text).call_begin, "<|tool_call_start|>");
  EXPECT_EQ(kMistral.calls, CallSyntax::kNamedJson);
  EXPECT_EQ(kMistral.think_begin, "[THINK]");
}

TEST(AnswerParserTest, TakesThoughtsOut) {
  EXPECT_EQ(ShowAnswer(kQwen, "<think>\nHm, so\nso.\n</think>\n\nYes.\n"), "(Hm, so\nso.)|Yes.\n");
  EXPECT_EQ(ShowAnswer(kQwen, "\n<think>a</think>b"), "(a)|b");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>\n\n</think>\n\nYes"), "Yes");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>a <b> </thin c</think>d"), "(a <b> </thin c)|d");
  EXPECT_EQ(ShowAnswer(kQwen, "\nHm.</think>Yes", {.in_thinking = true}), "(Hm.)|Yes");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>\nHm.</think>Yes", {.in_thinking = true}), "(Hm.)|Yes");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>Hm. <tool_call>{", {}), "(Hm. <tool_call>{)");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>Hm. </thi", {}), "(Hm. </thi)");
  EXPECT_EQ(ShowAnswer(kMistral, "[THINK]a[1][/THINK]b[1]"), "(a[1])|b[1]");
}

TEST(AnswerParserTest, MarkersOfLettersCountOnlyAtTheBeginning) {
  EXPECT_EQ(ShowAnswer(kQwen, "Write <think>x</think>."), "Write <think>x</think>.");
  EXPECT_EQ(ShowAnswer(kQwen, "<think>a</think><think>b</think>c"), "(ab)|c");
  EXPECT_EQ(ShowAnswer(kQwen, "</think>a"), "</think>a");
  EXPECT_EQ(ShowAnswer(kGemma4, "Hi.\n<|channel>thought\nhm\n<channel|>Yes"), "Hi.|(hm)|Yes");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|channel>thought\n<channel|>Yes"), "Yes");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|channel>final\nYes"), "<|channel>final\nYes");
}

TEST(AnswerParserTest, TakesTheMarkersOfTheTextOut) {
  EXPECT_EQ(ShowAnswer(kGranite3, "<think>a</think>\n<response>\nb\n</response>\n"), "(a)|b");
  EXPECT_EQ(ShowAnswer(kGranite3, "<think>a</think>b</response>"), "(a)|b</response>");
  EXPECT_EQ(ShowAnswer(kGranite3, "<response>b</response>"), "<response>b</response>");
}

TEST(AnswerParserTest, KeepsTextAsItIs) {
  for (const char* text : {"", " ", "\n\nHi  there \n", "a < b <t <tool <tool_call", "<", "<<think",
                           "<tool_cal>{}</tool_cal>", "</tool_call>", "x\xC3", "<\xFF>", "[TOOL"}) {
    EXPECT_EQ(ShowAnswer(kQwen, text), text);
    EXPECT_EQ(ShowAnswer(kMistral, text), text);
    EXPECT_EQ(ShowAnswer(AnswerFormat(), text), text);
  }
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  EXPECT_EQ(ShowAnswer(kQwen, call, {.calls = false}), call);
  EXPECT_EQ(ShowAnswer(AnswerFormat(), call), call);
}

TEST(AnswerParserTest, ReadsCallsInJson) {
  EXPECT_EQ(
      ShowAnswer(kQwen,
                 "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, {}]}}\n</tool_call>"),
      R"(f{"x": [1, {}]}.)");
  EXPECT_EQ(ShowAnswer(kQwen, R"(Wait.
<tool_call>
{"arguments":{"x":1},"name":"f"}
</tool_call>
<tool_call>{"id": 7, "name": "g\u00e9", "parameters": null, "more": [true]}</tool_call>

Done. )"),
            "Wait.|f{\"x\":1}.|gé{}.|Done. ");
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f"}</tool_call>)"), "f{}.");
  EXPECT_EQ(
      ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":"{\"a\": \"b\\n\"}"}</tool_call>)"),
      R"(f{"a": "b\n"}.)");
  // Without the marker behind it, as at the end of an answer.
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":{}})"), "f{}.");
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":{}} Well</tool_call>)"),
            "f{}.|Well</tool_call>");
  // Line breaks in texts, which JSON forbids, are escaped.
  EXPECT_EQ(
      ShowAnswer(kQwen, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"b\nc\"}}</tool_call>"),
      R"(f{"a":"b\nc"}.)");
}

TEST(AnswerParserTest, ReadsListsOfCalls) {
  const std::string list = R"([{"name": "f", "arguments": {"a": "]"}}, {"name": "g"}])";
  const std::string calls = R"(f{"a": "]"}.|g{}.)";
  EXPECT_EQ(ShowAnswer(kGranite3, "<|tool_call|>" + list), calls);
  EXPECT_EQ(ShowAnswer(kGranite3, "<|tool_call|> " + list + "\n"), calls);
  EXPECT_EQ(ShowAnswer(kNemotron2, "Yes.\n<TOOLCALL>" + list + "</TOOLCALL>"), "Yes.|" + calls);
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS]" + list), calls);
  // The first is complete.
  EXPECT_EQ(ShowAnswer(kNemotron2, R"(<TOOLCALL>[{"name": "f"}, {"name": 1}]</TOOLCALL>)"),
            R"(f{}.|, {"name": 1}]</TOOLCALL>)");
}

TEST(AnswerParserTest, ReadsMistralsNames) {
  EXPECT_EQ(
      ShowAnswer(kMistral, R"([TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{})"),
      R"(f{"x": 1}.|g{}.)");
  EXPECT_EQ(ShowAnswer(kMistral, R"(Hi [TOOL_CALLS] f {"x": 1})"), R"(Hi|f{"x": 1}.)");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS]f\n{}"), "[TOOL_CALLS]f\n{}");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS]{}"), "[TOOL_CALLS]{}");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS][CALL_ID]1[ARGS]{}"),
            "[TOOL_CALLS][CALL_ID]1[ARGS]{}");
}

TEST(AnswerParserTest, ReadsTags) {
  const AnswerParserOptions tools = WithTools(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"type": "object", "properties": {"n": {"type": "integer"},
        "s": {"type": "string"}, "l": {"type": "array"}, "b": {"type": "boolean"},
        "o": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "u": {},
        "m": {"type": ["number", "null"]}, "r": {"$ref": "#/$defs/Point"},
        "t": {"allOf": [{"$ref": "#/$defs/a~1b"}]}, "e": {"enum": [1, 2]}, "v": {"const": "1"},
        "c": {"anyOf": [{"$ref": "#/$defs/Point"}, {"items": {}}]}, "x": {"$ref": "#/$defs/x"},
        "y": {"$ref": "#/$defs/y"}},
      "$defs": {"Point": {"properties": {"x": {}}}, "a/b": {"type": "string"},
        "x": {"$ref": "#/$defs/x"}, "y": {"allOf": [{"$ref": "#/$defs/y"},
          {"$ref": "#/$defs/y"}, {"$ref": "#/$defs/y"}, {"$ref": "#/$defs/y"}]}}}}}, 3, {"function": 4}])");
  const auto one = [&](const std::string& key, const std::string& value) {
    return ShowAnswer(kQwen,
                      absl::StrCat("<tool_call>\n<function=f>\n<parameter=", key, ">\n", value,
                                   "\n</parameter>\n</function>\n</tool_call>"),
                      tools);
  };
  EXPECT_EQ(one("n", "12"), R"(f{"n": 12}.)");
  EXPECT_EQ(one("n", "twelve"), R"(f{"n": "twelve"}.)");
  EXPECT_EQ(one("s", "12"), R"(f{"s": "12"}.)");
  EXPECT_EQ(one("s", "\n a\nb\t\"\\ \n"), R"(f{"s": "\n a\nb\t\"\\ \n"}.)");
  EXPECT_EQ(one("l", "[1, \"a\"]"), R"(f{"l": [1, "a"]}.)");
  EXPECT_EQ(one("b", "True"), R"(f{"b": true}.)");
  EXPECT_EQ(one("b", "false"), R"(f{"b": false}.)");
  EXPECT_EQ(one("o", "null"), R"(f{"o": null}.)");
  EXPECT_EQ(one("o", "1"), R"(f{"o": "1"}.)");
  EXPECT_EQ(one("u", "1"), R"(f{"u": "1"}.)");
  EXPECT_EQ(one("r", R"({"x": 1})"), R"(f{"r": {"x": 1}}.)");
  EXPECT_EQ(one("t", "1"), R"(f{"t": "1"}.)");
  EXPECT_EQ(one("e", "2"), R"(f{"e": 2}.)");
  EXPECT_EQ(one("v", "1"), R"(f{"v": "1"}.)");
  EXPECT_EQ(one("c", "[1]"), R"(f{"c": [1]}.)");
  EXPECT_EQ(one("x", "1"), R"(f{"x": "1"}.)") << "refers to itself";
  EXPECT_EQ(one("y", "1"), R"(f{"y": "1"}.)") << "and does so several times";
  EXPECT_EQ(one("m", "1.5e3"), R"(f{"m": 1.5e3}.)");
  EXPECT_EQ(one("m", "None"), R"(f{"m": null}.)");
  EXPECT_EQ(one("other", "1"), R"(f{"other": "1"}.)");
  // Tags within JSON do not count; what is no JSON ends as text does.
  EXPECT_EQ(one("l", R"([["</parameter></function>"]])"),
            R"(f{"l": [["</parameter></function>"]]}.)");
  EXPECT_EQ(one("r", R"({"x": "</parameter>\n<parameter=n>"}  )"),
            R"(f{"r": {"x": "</parameter>\n<parameter=n>"}}.)");
  EXPECT_EQ(one("n", "1</parameter><parameter=b>true"), R"(f{"n": 1, "b": true}.)");
  EXPECT_EQ(one("l", R"(["</parameter><parameter=s>"] or)"), R"(f{"l": "[\"", "s": "\"] or"}.)");
  EXPECT_EQ(one("l", R"(["</parameter><parameter=s>)"), R"(f{"l": "[\"", "s": ""}.)");
  // All that can follow a parameter follows it.
  EXPECT_EQ(one("s", "</parameter></function></tool_call>"),
            "f{\"s\": \"\"}.|</parameter>\n</function>\n</tool_call>");
  EXPECT_EQ(one("s", "x</tool_call></parameter>"), R"(f{"s": "x</tool_call></parameter>"}.)");
  EXPECT_EQ(ShowAnswer(kQwen,
                       "So:\n\n<tool_call><function=g></function></tool_call>\n<tool_call>\n"
                       "<function=h><parameter=a>1</parameter><parameter=b></parameter>"
                       "</function>\n</tool_call>\n"),
            R"(So:|g{}.|h{"a": "1", "b": ""}.)");
}

// What a parameter of tags holds is JSON where its schema has no text.
TEST(AnswerParserTest, MarkersInJsonOfTagsEndNoCall) {
  const AnswerParserOptions tools = WithTools(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"properties": {"l": {"type": "array"}, "o": {"type": "object"},
                                    "s": {"type": "string"}}}}}])");
  const auto wrap = [](const std::string& key, const std::string& value) {
    return absl::StrCat("<tool_call>\n<function=f>\n<parameter=", key, ">\n", value,
                        "\n</parameter>\n</function>\n</tool_call>");
  };
  const std::string good = wrap("l", R"(["x"])"), shown = R"(f{"l": ["x"]}.)";
  for (const std::string text :
       {R"(["</function></tool_call>"])",
        R"(["</parameter></function></tool_call>", "</tool_call>"])",
        R"(["\"</function></tool_call><tool_call><function=f></function></tool_call>"])",
        R"([["</parameter>\n</function>\n</tool_call>\n</function></tool_call>"], {"a": "b"}])"}) {
    EXPECT_EQ(ShowAnswer(kQwen, wrap("l", text) + "\n" + good + "Well.", tools),
              absl::StrCat("f{\"l\": ", text, "}.|", shown, "|Well."));
    EXPECT_EQ(ShowAnswer(kQwen, wrap("l", text + "</parameter><parameter=s>a"), tools),
              absl::StrCat("f{\"l\": ", text, R"(, "s": "a"}.)"));
  }
  // So it is where the whole call is JSON.
  const std::string json = R"({"name": "f", "arguments": {"s": "</function></tool_call>"}})";
  EXPECT_EQ(ShowAnswer(kQwen, "<tool_call>" + json + "</tool_call>" + good, tools),
            R"(f{"s": "</function></tool_call>"}.|)" + shown);
  // A string that does not end is text, and takes no later call.
  EXPECT_EQ(ShowAnswer(kQwen, wrap("l", R"(["a)"), tools), R"(f{"l": "[\"a"}.)");
  EXPECT_EQ(ShowAnswer(kQwen, wrap("l", R"(["a)") + "\nWell.", tools), R"(f{"l": "[\"a"}.|Well.)");
  EXPECT_EQ(ShowAnswer(kQwen, wrap("l", R"(["a)") + good + wrap("s", "1") + good, tools),
            absl::StrCat(R"(f{"l": "[\"a"}.|)", shown, R"(|f{"s": "1"}.|)", shown));
  std::string calls, all_shown = R"(f{"l": "[\"a"}.)";
  for (int i = 0; i < 40; ++i) {
    calls += wrap("s", "b");
    all_shown += R"(|f{"s": "b"}.)";
  }
  EXPECT_EQ(ShowAnswer(kQwen, wrap("l", R"(["a)") + calls, tools), all_shown);
  // Neither does one in a call that is none.
  const std::string bad = R"(<tool_call><function=f><parameter=l>["a</function></tool_call>)";
  EXPECT_EQ(ShowAnswer(kQwen, bad + good + good, tools), absl::StrCat(bad, "|", shown, "|", shown));
  EXPECT_EQ(ShowAnswer(kQwen, bad + calls + good, tools),
            absl::StrCat(bad, all_shown.substr(all_shown.find('|')), "|", shown));
}

// Its prompts open the thoughts, or open and close them: the answer has at most the end of them.
TEST(AnswerParserTest, ReadsNemotron3) {
  const AnswerFormat format = AnswerFormat::Of(
      "<think></think><tools><function><name></name></function></tools> "
      "<tool_call>\n<function= <parameter= <tool_response>");
  AnswerParserOptions options = WithTools(R"([{"type": "function", "function": {"name": "look",
      "parameters": {"type": "object", "properties": {"at": {"type": "string"},
        "days": {"type": "array"}, "far": {"type": "boolean"}}}}}])");
  const std::string call =
      "<tool_call>\n<function=look>\n<parameter=at>\nthe sea\n</parameter>\n<parameter=days>\n"
      "[1, 2]\n</parameter>\n<parameter=far>\nTrue\n</parameter>\n</function>\n</tool_call>\n";
  const std::string shown = R"(look{"at": "the sea", "days": [1, 2], "far": true}.)";
  EXPECT_EQ(ShowAnswer(format, "Let me see.\n" + call + call, options),
            "Let me see.|" + shown + "|" + shown);
  options.in_thinking = true;
  EXPECT_EQ(ShowAnswer(format, "Hm,\nso.\n</think>\nLet me see.\n" + call, options),
            "(Hm,\nso.)|Let me see.|" + shown);
  EXPECT_EQ(ShowAnswer(format, "</think>\n" + call, options), shown);
  EXPECT_EQ(ShowAnswer(format, "Is it <tool_call>? No.</think>Yes.", options),
            "(Is it <tool_call>? No.)|Yes.");
}

TEST(AnswerParserTest, ReadsPython) {
  const auto show = [](const std::string& calls) {
    return ShowAnswer(kLfm2, absl::StrCat("<|tool_call_start|>", calls, "<|tool_call_end|>"));
  };
  EXPECT_EQ(show(R"([f(a=1, b="x"), m.g()])"), R"(f{"a": 1, "b": "x"}.|m.g{}.)");
  EXPECT_EQ(show(R"([f(a=-1.5, b=[True, None, (1,)], c={"d": 'e', 'f': {}})])"),
            R"(f{"a": -1.5, "b": [true, null, [1]], "c": {"d": "e", "f": {}}}.)");
  EXPECT_EQ(show(R"([f(a='it\'s', b='it's', c="\"\n\x41\u00e9\ud83d\ude00\q")])"),
            R"(f{"a": "it's", "b": "it's", "c": "\"\nAé😀\\q"}.)");
  // Texts that are JSON, with their quotes bare.
  EXPECT_EQ(show(R"([write(path="a.json", content="{"a": 1}")])"),
            R"(write{"path": "a.json", "content": "{\"a\": 1}"}.)");
  EXPECT_EQ(show(R"([f(a="{"b": "c", "d": [1]}", e = "x")])"),
            R"(f{"a": "{\"b\": \"c\", \"d\": [1]}", "e": "x"}.)");
  EXPECT_EQ(show(R"([f(a=["b: "c"", 'd'], e={"f": "g: "h""},)])"),
            R"(f{"a": ["b: \"c\"", "d"], "e": {"f": "g: \"h\""}}.)");
  EXPECT_EQ(show(R"([f(a={"b": 1,},)])"), R"(f{"a": {"b": 1}}.)");
  EXPECT_EQ(show("[ f ( a = 'x' ) , ]"), "<|tool_call_start|>[ f ( a = 'x' ) , ]<|tool_call_end|>");
  for (const char* bad :
       {"f()", "[f]", "[f(1)]", "[f(a=x)]", "[f(a='x)]", "[f(a={1: 2})]", "[f(a=)]",
        "[f(a='\\ud800')]", "[f(a='\\x4')]", "[f()] x", "[]", "[f(a=1 b=2)]"}) {
    EXPECT_EQ(show(bad), absl::StrCat("<|tool_call_start|>", bad, "<|tool_call_end|>"));
  }
  EXPECT_EQ(ShowAnswer(kLfm2, "<think>a</think>\n<|tool_call_start|>[f()]<|tool_call_end|>Well."),
            "(a)|f{}.|Well.");
}

// As LFM2 writes them where the system prompt asks for JSON.
TEST(AnswerParserTest, ReadsJsonBetweenPythonsMarkers) {
  const auto show = [](const std::string& calls) {
    return ShowAnswer(kLfm2, absl::StrCat("<|tool_call_start|>", calls, "<|tool_call_end|>Well."));
  };
  EXPECT_EQ(show(R"([{"name": "f", "arguments": {"x": 1}}])"), R"(f{"x": 1}.|Well.)");
  EXPECT_EQ(show(R"({"name": "f", "arguments": {"x": "<|tool_call_end|>"}})"),
            R"(f{"x": "<|tool_call_end|>"}.|Well.)");
  EXPECT_EQ(show("\n[\n  {\"name\": \"f\"}, {\"name\": \"g\"}\n]\n"), "f{}.|g{}.|Well.");
  EXPECT_EQ(show(" [ f(x={}), g()]"), R"(f{"x": {}}.|g{}.|Well.)");
  for (const char* bad : {"[", "[{", "[[{}]]", "{f()}", "[{'name': 'f'}]", "[1]"})
    EXPECT_EQ(show(bad), absl::StrCat("<|tool_call_start|>", bad, "<|tool_call_end|>Well."));
}

TEST(AnswerParserTest, MarkersInQuotesEndNoCall) {
  for (const AnswerFormat& format : {kGemma4, kFunctionGemma}) {
    const auto wrap = [&](const std::string& text) {
      return absl::StrCat(format.call_begin, "call:f{a:", format.quote, text, format.quote, "}",
                          format.call_end);
    };
    const std::string end(format.call_end);
    EXPECT_EQ(
        ShowAnswer(format, wrap("ends with " + end + ".") + wrap(end + end) + "Well."),
        absl::StrCat(R"(f{"a": "ends with )", end, R"(."}.|f{"a": ")", end, end, R"("}.|Well.)"));
  }
  const auto show = [](const std::string& calls) {
    return ShowAnswer(kLfm2, absl::StrCat("<|tool_call_start|>", calls, "<|tool_call_end|>Well."));
  };
  EXPECT_EQ(show(R"([f(a="ends with <|tool_call_end|>.", b='\'<|tool_call_end|>')])"),
            R"(f{"a": "ends with <|tool_call_end|>.", "b": "'<|tool_call_end|>"}.|Well.)");
  EXPECT_EQ(show(R"([f(a=['[g()]<|tool_call_end|>'])])"),
            R"(f{"a": ["[g()]<|tool_call_end|>"]}.|Well.)");
  EXPECT_EQ(show("[f(a='it's')]"), R"(f{"a": "it's"}.|Well.)");
  // A wrong call without an open text ends at once: the next one is read.
  EXPECT_EQ(show("[f(1)]<|tool_call_end|><|tool_call_start|>[g()]"),
            "<|tool_call_start|>[f(1)]<|tool_call_end|>|g{}.|Well.");
}

// The call is text up to the first marker in what a quote is missing of.
TEST(AnswerParserTest, AMissingQuoteTakesNoLaterCall) {
  for (const AnswerFormat& format : {kGemma4, kFunctionGemma}) {
    const auto wrap = [&](const std::string& arguments) {
      const std::string call = absl::StrReplaceAll(absl::StrCat("call:f{", arguments, "}"),
                                                   {{"'", format.quote}, {"END", format.call_end}});
      return absl::StrCat(format.call_begin, call, format.call_end);
    };
    const std::string good = wrap("a:'b'"), shown = R"(f{"a": "b"}.)";
    for (const char* bad : {"a:'b", "a:b'", "a:'b,c:'d',e:'g'", "a:'b',c:'d", "a:'b' 'c'",
                            "a:'',b:'", "a:['b,'c']", "'a:1", "a:'b'c'"}) {
      const std::string text = wrap(bad);
      EXPECT_EQ(ShowAnswer(format, text), text);
      EXPECT_EQ(ShowAnswer(format, text + good), absl::StrCat(text, "|", shown));
      EXPECT_EQ(ShowAnswer(format, text + "\n" + good + good),
                absl::StrCat(text, "|", shown, "|", shown));
      EXPECT_EQ(ShowAnswer(format, text + wrap("") + good + "\nDone"),
                absl::StrCat(text, "|f{}.|", shown, "|Done"));
      EXPECT_EQ(ShowAnswer(format, good + text + text + good),
                absl::StrCat(shown, "|", text, text, "|", shown));
    }
    // What is in a whole text is no call, even where the call around it is none.
    const std::string quoting = wrap("a:'" + wrap("END") + "',b:!");
    EXPECT_EQ(ShowAnswer(format, quoting + good), absl::StrCat(quoting, "|", shown));
    // The marker may be the last of the answer, or not whole.
    EXPECT_EQ(ShowAnswer(format, wrap("a:'b") + wrap("a:'b").substr(0, 20)),
              wrap("a:'b") + wrap("a:'b").substr(0, 20));
  }
}

TEST(AnswerParserTest, ReadsGemmasCalls) {
  for (const AnswerFormat& format : {kGemma4, kFunctionGemma}) {
    const std::string quote(format.quote);
    const auto wrap = [&](const std::string& call) {
      return absl::StrCat(format.call_begin, call, format.call_end);
    };
    const auto show = [&](const std::string& call) { return ShowAnswer(format, wrap(call)); };
    EXPECT_EQ(show("call:f{}"), "f{}.");
    EXPECT_EQ(show("call:f{a:" + quote + "x,\"}{y" + quote + ",b:1.5,c:true,d:null,e:None}"),
              R"(f{"a": "x,\"}{y", "b": 1.5, "c": true, "d": null, "e": null}.)");
    EXPECT_EQ(show("call:f{l:[1," + quote + "b" + quote + ",[]],m:{" + quote + "k" + quote +
                   ":{x:false}}}"),
              R"(f{"l": [1, "b", []], "m": {"k": {"x": false}}}.)");
    EXPECT_EQ(ShowAnswer(format, "So.\n" + wrap("call:f{}") + wrap("call:g{}") + "\nDone"),
              "So.|f{}.|g{}.|Done");
    for (const char* bad : {"f{}", "call:{}", "call:f", "call:f{a}", "call:f{a:}", "call:f{a:b}",
                            "call:f{}x", "call:f{a:1", "call:f{a:[1}", "call:f{:1}"}) {
      EXPECT_EQ(show(bad), wrap(bad));
    }
  }
}

TEST(AnswerParserTest, WhatIsNoCallIsText) {
  for (const char* text :
       {"a <tool_call>f</tool_call>", "<tool_call>", "x\n<tool_call>\n",
        "<tool_call>{}</tool_call>", "<tool_call>{\"name\": \"\"}</tool_call>",
        "<tool_call>{\"name\": 1}</tool_call>", "<tool_call>{\"arguments\": {}}</tool_call>",
        "<tool_call>[]</tool_call>", "<tool_call>{\"name\": \"f\", \"name\": \"g\"}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
        "<tool_call>{\"name\": \"f\"", "<tool_call>{\"na", "<tool_call>{\"x\": 01}",
        "<tool_call><function=>\n</function></tool_call>",
        "<tool_call><function=f><parameter=x>1</function></tool_call>",
        "<tool_call><function=f></tool_call>", "<tool_call><func"}) {
    EXPECT_EQ(ShowAnswer(kQwen, text), text);
  }
  EXPECT_EQ(ShowAnswer(kQwen, "<tool_call><tool_call>{\"name\":\"f\"}</tool_call>"),
            "<tool_call>|f{}.");
}

// Whose beginning was already passed on.
TEST(AnswerParserTest, AVoidCallIsFollowedByItsText) {
  for (const char* call : {R"(<tool_call>{"name": "f", "arguments": {"a": 1)",
                           R"(<tool_call>{"name": "f", "arguments": {"a": 1}, )",
                           R"(<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>)"}) {
    const std::string text = absl::StrCat("Hi\n", call);
    const std::string shown = ShowAnswer(kQwen, text);
    EXPECT_THAT(shown, testing::StartsWith("Hi|f{\"a\": 1"));
    EXPECT_THAT(shown, testing::EndsWith(absl::StrCat("!|\n", call)));
  }
  const auto events =
      Parse(kQwen, R"(<tool_call>{"name": "f", "arguments": {x<tool_call>{"name":"g"})");
  EXPECT_EQ(Shown(events), R"(f{!|<tool_call>{"name": "f", "arguments": {x|g{}.)");
  EXPECT_EQ(events[0].call, 0u);
  EXPECT_EQ(events.back().call, 1u);  // a number of its own
}

TEST(AnswerParserTest, PassesArgumentsOnAsTheyCome) {
  AnswerParser parser(kQwen);
  EXPECT_THAT(parser.Push("Hi <tool_call>{\"name\": \"f\", \"arguments\": "),
              testing::ElementsAre(AnswerEvent{Kind::kText, "Hi", 0}));
  EXPECT_THAT(parser.Push("{\"a\": "),
              testing::ElementsAre(AnswerEvent{Kind::kCallBegin, "f", 0},
                                   AnswerEvent{Kind::kCallArguments, "{\"a\": ", 0}));
  EXPECT_THAT(parser.Push("\"long"),
              testing::ElementsAre(AnswerEvent{Kind::kCallArguments, "\"long", 0}));
  EXPECT_THAT(parser.Push("\"}"),
              testing::ElementsAre(AnswerEvent{Kind::kCallArguments, "\"}", 0}));
  EXPECT_THAT(parser.Push("}"), testing::ElementsAre(AnswerEvent{Kind::kCallEnd, "", 0}));
  EXPECT_TRUE(parser.Push("\n</tool_call>\n").empty());
  EXPECT_TRUE(parser.Finish().empty());
}

TEST(AnswerParserTest, PassesTextOnAsItComes) {
  AnswerParser parser(kQwen);
  EXPECT_EQ(Shown(parser.Push("Hello")), "Hello");
  EXPECT_EQ(Shown(parser.Push(", <b")), ", <b");
  EXPECT_EQ(Shown(parser.Push(" \n<too")), "");
  EXPECT_EQ(Shown(parser.Push("l>.")), " \n<tool>.");
}

// A format and an answer in it.
struct Example {
  AnswerFormat format;
  std::string answer;
};

std::vector<Example> Examples() {
  return {{kQwen, R"(<tool_call>{"name": "f", "arguments": {"x": [1, "b"]}}</tool_call>)"},
          {kQwen, "<tool_call><function=f><parameter=x>1</parameter></function></tool_call>"},
          {kQwen,
           "<tool_call><function=f><parameter=x>[\"</function></tool_call>\"]</parameter>"
           "</function></tool_call>"},
          {kGemma4, R"(<|tool_call>call:f{x:1,y:<|"|>b<|"|>}<tool_call|>)"},
          {kFunctionGemma, "<start_function_call>call:f{x:<escape>b<escape>}<end_function_call>"},
          {kLfm2, "<|tool_call_start|>[f(x=1, y='b'), g()]<|tool_call_end|>"},
          {kLfm2, R"(<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>)"},
          {kLfm2, "<|tool_call_start|>[f(x='<|tool_call_end|>')]<|tool_call_end|>"},
          {kNemotron2, R"(<TOOLCALL>[{"name": "f", "arguments": {}}, {"name": "g"}]</TOOLCALL>)"},
          {kGranite3, R"(<think>a</think><response>b</response><|tool_call|>[{"name": "f"}])"},
          {kMistral, R"([THINK]a[/THINK][TOOL_CALLS]f[ARGS]{"x": -1.5e3})"}};
}

const std::vector<std::string>& Words() {
  static const auto& words = *new std::vector<std::string>(absl::StrSplit(
      "<tool_call>~</tool_call>~{~}~[~]~\"name\": \"f\"~\"arguments\": ~, ~\"~:~1~<function=f>~"
      "</function>~<parameter=x>~</parameter>~\n~ ~<think>~</think>~<~\\u00e9~\\ud800~true~"
      "<|tool_call_start|>~<|tool_call_end|>~f(~)~x=~'~call:f{~<|tool_call>~<tool_call|>~<|\"|>~"
      "[TOOL_CALLS]~[ARGS]~<|tool_call|>~<TOOLCALL>~</TOOLCALL>~é~<escape>~<end_function_call>",
      '~'));
  return words;
}

// The JSON of each complete call.
std::vector<std::string> Arguments(const std::vector<AnswerEvent>& events) {
  std::vector<std::string> all;
  std::string arguments;
  for (const AnswerEvent& event : events) {
    if (event.kind == Kind::kCallBegin) arguments.clear();
    if (event.kind == Kind::kCallArguments) arguments += event.text;
    if (event.kind == Kind::kCallEnd) all.push_back(arguments);
  }
  return all;
}

// Answers with a few words put in or taken out.
TEST(AnswerParserTest, CompleteCallsHaveArgumentsInAnyAnswer) {
  const AnswerParserOptions tools =
      WithTools(R"([{"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}])");
  std::mt19937 random(5);
  int calls = 0;
  for (int i = 0; i < Repetitions(3000); ++i) {
    for (auto [format, text] : Examples()) {
      for (size_t n = random() % 4; n > 0; --n) {
        const size_t at = random() % text.size();
        const std::string& word = Words()[random() % Words().size()];
        text.replace(at, random() % 3, random() % 3 == 0 ? "" : word);
      }
      const auto events = Parse(format, text, tools);
      if (!IsValidUtf8(text)) continue;  // and so are arguments that are JSON
      for (const std::string& arguments : Arguments(events)) {
        ++calls;
        EXPECT_TRUE(nlohmann::json::parse(arguments, nullptr, false).is_object()) << text << "\n"
                                                                                  << arguments;
      }
    }
  }
  EXPECT_GT(calls, Repetitions(5000));
}

// What takes quadratic time does not end here.
TEST(AnswerParserTest, TakesLinearTime) {
  constexpr size_t kLength = Repetitions(60'000);
  const AnswerParserOptions tools =
      WithTools(R"([{"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}])");
  for (const auto& [format, answer] : Examples()) {
    std::vector<std::string> words = Words();
    words.push_back(answer);
    words.push_back(std::string(format.call_begin) + "{\"");
    words.push_back("]" + std::string(format.call_end));
    words.push_back(
        absl::StrCat(format.call_begin, "call:f{a:", format.quote, "}", format.call_end));
    words.push_back("<tool_call><function=f><parameter=x>[\"</function></tool_call>");
    words.push_back("<tool_call><function=f><parameter=x>1</function></tool_call>");
    std::vector<std::string> firsts = {std::string(format.call_begin), answer.substr(0, 25)};
    if (format.calls == CallSyntax::kTagged)
      firsts.push_back("<tool_call><function=f><parameter=x>[\"a");
    for (const std::string& word : words) {
      for (const std::string& first : firsts) {
        std::string text = first;
        while (text.size() < kLength) text += word;
        EXPECT_FALSE(ParseInPieces(format, text, tools, [] { return 7; }).empty());
      }
    }
  }
}

}  // namespace
}  // namespace inlay

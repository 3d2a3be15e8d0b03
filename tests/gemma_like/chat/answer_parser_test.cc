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
#include "tests/gemma_like/chat/shown_answer.h"
#include "tests/must.h"
#include "tests/repetitions.h"

namespace inlay {
namespace {

using Kind = AnswerEvent::Kind;

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
  EXPECT_EQ(ShowAnswer(kGemma4, "Hi.\n<|channel>thought\nhm\n<channel|>Yes"), "Hi.|(hm)|\nYes");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|channel>thought\n<channel|>Yes"), "Yes");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|channel>final\nYes"), "<|channel>final\nYes");
}

TEST(AnswerParserTest, TextsAroundMarkersStayApart) {
  const std::string call = R"(<tool_call>{"name": "f"}</tool_call>)";
  const auto show = [&](const std::string& text) { return ShowAnswer(kQwen, text); };
  EXPECT_EQ(show("A. " + call + "\nB."), "A.|f{}.|\nB.");
  EXPECT_EQ(show("A.\n\n" + call + "B."), "A.|f{}.|\nB.");
  EXPECT_EQ(show("A. \t" + call + " B. C"), "A.|f{}.| B. C");
  EXPECT_EQ(show("A." + call + "B."), "A.|f{}.|B.");
  EXPECT_EQ(show("A. " + call + call + "B\n"), "A.|f{}.|f{}.| B\n");
  EXPECT_EQ(show("A." + call + "\n" + call + " B\n" + call + "C"), "A.|f{}.|f{}.|\nB|f{}.|\nC");
  EXPECT_EQ(show("A. " + call + " \n"), "A.|f{}.");
  EXPECT_EQ(show("\n" + call + "\n\nB"), "f{}.|B") << "no text before it";
  EXPECT_EQ(show("<think>a</think>\n\nA.\n" + call + " <tool_call> B."),
            "(a)|A.|f{}.|\n<tool_call> B.");
  EXPECT_EQ(ShowAnswer(kGemma4, "Hello <|channel>thought\nhm\n<channel|>world"),
            "Hello|(hm)| world");
  EXPECT_EQ(ShowAnswer(kGemma4, "Hello<|channel>thought\nhm\n<channel|>\nworld"),
            "Hello|(hm)|\nworld");
  EXPECT_EQ(ShowAnswer(kGemma4, "Hello<|channel>thought\nhm\n<channel|>world"), "Hello|(hm)|world");
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
            "Wait.|f{\"x\":1}.|gé{}.|\nDone. ");
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f"}</tool_call>)"), "f{}.");
  EXPECT_EQ(
      ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":"{\"a\": \"b\\n\"}"}</tool_call>)"),
      R"(f{"a": "b\n"}.)");
  // Without the marker behind it, as at the end of an answer.
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":{}})"), "f{}.");
  EXPECT_EQ(ShowAnswer(kQwen, R"(<tool_call>{"name":"f","arguments":{}} Well</tool_call>)"),
            "f{}.|Well</tool_call>");
  for (const char* none : {R"("")", "null", "{}", R"("{}")"}) {
    EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat(R"(<tool_call>{"name":"f","arguments":)", none,
                                             "}</tool_call>")),
              "f{}.");
  }
  // Line breaks in texts, which JSON forbids, are escaped.
  EXPECT_EQ(
      ShowAnswer(kQwen, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"b\nc\"}}</tool_call>"),
      R"(f{"a":"b\nc"}.)");
}

// As in patterns and in paths of Windows.
TEST(AnswerParserTest, BackslashesThatAreNoEscapesStay) {
  const std::pair<const char*, const char*> kTexts[] = {
      {R"(C:\dir\new)", R"(C:\\dir\new)"},
      {R"(C:\users\ü)", R"(C:\\users\\ü)"},
      {R"(C:\Users\d)", R"(C:\\Users\\d)"},
      {R"(^\d+\.\w$)", R"(^\\d+\\.\\w$)"},
      {R"(it\'s)", R"(it\\'s)"},
      {R"(\u12)", R"(\\u12)"},
      {R"(\u123\n)", R"(\\u123\n)"},
      {R"(\x\\y\"\/\b\u00e9)", R"(\\x\\y\"\/\b\u00e9)"},
      {"a\\\nb", R"(a\\\nb)"}};
  for (const auto& [written, json] : kTexts) {
    const std::string arguments = absl::StrCat("{\"", written, "\": [\"", written, "\"]}");
    const std::string shown = absl::StrCat("f{\"", json, "\": [\"", json, "\"]}.");
    for (const absl::string_view last : {"}</tool_call>", ", \"id\": \"\\d\"}</tool_call>"}) {
      EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat(R"(<tool_call>{"name": "f", "arguments": )",
                                               arguments, last)),
                shown);
    }
    EXPECT_EQ(ShowAnswer(kMistral, absl::StrCat("[TOOL_CALLS]f[ARGS]", arguments)), shown);
  }
  // Half a character is none.
  for (const char* bad : {R"(\ud83d)", R"(\ud83d\d)", R"(\ud83d\u12)", R"(\ude00)"}) {
    EXPECT_THAT(ShowAnswer(kQwen, absl::StrCat(R"(<tool_call>{"name": "f", "arguments": {"a": ")",
                                               bad, R"("}}</tool_call>)")),
                testing::HasSubstr("!|<tool_call>"));
  }
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

TEST(AnswerParserTest, ReadsSeveralObjectsBetweenMarkers) {
  const std::string f = R"({"name": "f", "arguments": {"a": "}"}})", g = R"({"name": "g"})";
  const std::string shown = R"(f{"a": "}"}.)", both = shown + "|g{}.";
  const auto show = [](absl::string_view text) {
    return ShowAnswer(kQwen, absl::StrCat("<tool_call>\n", text, "\n</tool_call>\nWell."));
  };
  for (const char* separator : {"\n", "", ", ", " ,\n"})
    EXPECT_EQ(show(f + separator + g), both + "|Well.");
  EXPECT_EQ(ShowAnswer(kNemotron2, absl::StrCat("<TOOLCALL>", f, ", ", g, "</TOOLCALL>")), both);
  EXPECT_EQ(ShowAnswer(kLfm2, absl::StrCat("<|tool_call_start|>", f, g, "<|tool_call_end|>")),
            both);
  // Without the marker behind them.
  EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>\n", f, "\n", g, "\n")), both);
  EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", f, "\n<tool_call>", g)), both);
  EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", f, ", well")), shown + "|, well");
  // A bracket too few.
  for (const std::string& object :
       {f, std::string(R"({"arguments": {"a": "}"}, "name": "f"})"),
        std::string(R"({"name": "f", "arguments": "{\"a\": \"}\"}", "id": "x"})")}) {
    const std::string open = object.substr(0, object.size() - 1);
    for (const char* more : {"", "\n", "</tool_call>\n"})
      EXPECT_EQ(show(open + more), shown + "|Well.");
    EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", open)), shown);
    EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", g, open, "\n")), "g{}.|" + shown);
    EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<think><tool_call>", open, "</tool_call>")), shown);
    EXPECT_EQ(ShowAnswer(kNemotron2, absl::StrCat("<TOOLCALL>[", g, ", ", open, "</TOOLCALL>")),
              "g{}.|" + shown);
    EXPECT_EQ(ShowAnswer(kGranite3, absl::StrCat("<|tool_call|>", open)), shown);
  }
  for (const std::string none : {R"({"name": "f")", R"({"arguments": {})", R"({"a": {})"})
    EXPECT_EQ(show(none), absl::StrCat("<tool_call>\n", none, "\n</tool_call>\nWell."));
  // What follows is no call.
  EXPECT_EQ(show(f + ",, " + g), shown + "|,, {\"name\": \"g\"}\n</tool_call>\nWell.");
  EXPECT_EQ(show(f + " {1}"), shown + "|{1}\n</tool_call>\nWell.");
  // A bracket too many, and a marker too many.
  for (const char* more : {"}", "\n}\n", "\n</tool_call>", "}</tool_call>\n"})
    EXPECT_EQ(show(f + more), shown + "|Well.");
  EXPECT_EQ(show(f + "}}"), shown + "|}}\n</tool_call>\nWell.");
  EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", f, "}")), shown);
  EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<tool_call>", f, "}</tool_")), shown + "|}</tool_");
}

TEST(AnswerParserTest, ReadsMistralsNames) {
  EXPECT_EQ(
      ShowAnswer(kMistral, R"([TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{})"),
      R"(f{"x": 1}.|g{}.)");
  EXPECT_EQ(ShowAnswer(kMistral, R"(Hi [TOOL_CALLS] f {"x": 1})"), R"(Hi|f{"x": 1}.)");
  EXPECT_EQ(ShowAnswer(kMistral, R"([TOOL_CALLS]f[ARGS] {"x": 1}[TOOL_CALLS] g [ARGS] {})"),
            R"(f{"x": 1}.|g{}.)");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS]f\n{}"), "[TOOL_CALLS]f\n{}");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS]{}"), "[TOOL_CALLS]{}");
  EXPECT_EQ(ShowAnswer(kMistral, "[TOOL_CALLS][CALL_ID]1[ARGS]{}"),
            "[TOOL_CALLS][CALL_ID]1[ARGS]{}");
}

TEST(AnswerParserTest, OfParametersOfOneNameTheLastCounts) {
  EXPECT_EQ(ShowAnswer(kQwen,
                       "<tool_call><function=f><parameter=a>1</parameter><parameter=b>2"
                       "</parameter><parameter=a>3</parameter></function></tool_call>"),
            R"(f{"a": "3", "b": "2"}.)");
  EXPECT_EQ(ShowAnswer(kLfm2, R"(<|tool_call_start|>[f(a=1, b={"c": 2, "d": 3, "c": 4}, a="x"),)"
                              R"( f(a=5)]<|tool_call_end|>)"),
            R"(f{"a": "x", "b": {"c": 4, "d": 3}}.|f{"a": 5}.)");
  EXPECT_EQ(
      ShowAnswer(kGemma4, R"(<|tool_call>call:f{a:{c:1,c:[2]},b:1,<|"|>a<|"|>:2}<tool_call|>)"),
      R"(f{"a": 2, "b": 1}.)");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|tool_call>call:f{a:{c:1,c:[2]}}<tool_call|>"),
            R"(f{"a": {"c": [2]}}.)");
}

// As at the end of an answer that a token ends which is not shown.
TEST(AnswerParserTest, TheLastCallNeedsNoMarkerBehindIt) {
  EXPECT_EQ(ShowAnswer(kLfm2, "a<|tool_call_start|>[f(s=\"a\")]"), R"(a|f{"s": "a"}.)");
  EXPECT_EQ(ShowAnswer(kLfm2, "<|tool_call_start|>[f(), g()]\n"), "f{}.|g{}.");
  EXPECT_EQ(ShowAnswer(kGemma4, "<|tool_call>call:f{n:1}"), R"(f{"n": 1}.)");
  EXPECT_EQ(ShowAnswer(kFunctionGemma, "<start_function_call>call:f{n:<escape>b<escape>}"),
            R"(f{"n": "b"}.)");
  EXPECT_EQ(ShowAnswer(kQwen, "<tool_call>\n<function=f>\n</function>\n"), "f{}.");
  EXPECT_EQ(ShowAnswer(kQwen, "<tool_call><function=f></function><function=g></function>"),
            "f{}.|g{}.");
  const AnswerParserOptions list =
      WithTools(R"([{"name": "f", "parameters": {"properties": {"l": {"type": "array"},
                                                               "m": {"type": "array"}}}}])");
  EXPECT_EQ(
      ShowAnswer(kQwen,
                 R"(<tool_call><function=f><parameter=l>["</function></tool_call>"]</parameter>)"
                 R"(<parameter=m>["a</parameter></function>)",
                 list),
      R"(f{"l": ["</function></tool_call>"], "m": "[\"a"}.)");
  const std::string open = "<tool_call><function=f><parameter=l>[\"a</parameter></function>";
  EXPECT_EQ(ShowAnswer(kQwen, open, list), R"(f{"l": "[\"a"}.)");
  EXPECT_EQ(ShowAnswer(kQwen, open + "</tool_call>" + open, list),
            R"(f{"l": "[\"a"}.|f{"l": "[\"a"}.)");
  for (const char* text : {"<|tool_call_start|>[f(s=\"a\")", "<|tool_call_start|>[f()] x",
                           "<|tool_call_start|>[f()]<|tool_call_en"}) {
    EXPECT_EQ(ShowAnswer(kLfm2, text), text);
  }
  EXPECT_EQ(ShowAnswer(kGemma4, "<|tool_call>call:f{n:1"), "<|tool_call>call:f{n:1");
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
       {"f()", "[f]", "[f(1)]", "[f(a=x)]", "[f(a='x)]", "[f(a=)]", "[f(a='\\ud800')]",
        "[f(a='\\x4')]", "[f()] x", "[]", "[f(a=1 b=2)]", "[f(a=1__0)]", "[f(a=.)]",
        "[f(a={x: 1})]", "[f(a={1 2})]", "[f(a=fx'b')]", "[f(a='''b')]"}) {
    EXPECT_EQ(show(bad), absl::StrCat("<|tool_call_start|>", bad, "<|tool_call_end|>"));
  }
  EXPECT_EQ(ShowAnswer(kLfm2, "<think>a</think>\n<|tool_call_start|>[f()]<|tool_call_end|>Well."),
            "(a)|f{}.|Well.");
}

TEST(AnswerParserTest, ReadsPythonsLiterals) {
  const std::pair<const char*, const char*> kLiterals[] = {
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"5.", "5.0"},
      {"1.e3", "1.0e3"},
      {"+3", "3"},
      {"1_000", "1000"},
      {"-1_0.2_5", "-10.25"},
      {"{1: 2, .5: 3, True: {None: 'x'}}", R"({"1": 2, "0.5": 3, "true": {"null": "x"}})"},
      {R"(f"q{x}")", R"("q{x}")"},
      {"{u'k': b'v'}", R"({"k": "v"})"},
      {R"(r'\d\'')", R"("\\d\\'")"},
      {R"(Rb"a\n")", R"("a\\n")"},
      {R"("""a""")", R"("a")"},
      {"'''a\n'b', \"c\"'''", R"("a\n'b', \"c\"")"},
      {R"('''it's\n''')", R"("it's\n")"},
      {R"py("""say "so"""")py", R"("say \"so\"")"},
      {R"(['', "", ''''''])", R"(["", "", ""])"},
      {"f'''<|tool_call_end|>'''", R"("<|tool_call_end|>")"},
      {R"('''it's <|tool_call_end|>, "''')", R"("it's <|tool_call_end|>, \"")"}};
  for (const auto& [value, json] : kLiterals) {
    EXPECT_EQ(
        ShowAnswer(kLfm2, absl::StrCat("<|tool_call_start|>[f(a=", value, ")]<|tool_call_end|>")),
        absl::StrCat("f{\"a\": ", json, "}."));
  }
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
                absl::StrCat(text, "|f{}.|", shown, "|\nDone"));
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
    EXPECT_EQ(show("call:f{a:.5,b:-.5,c:+3,d:1_000,e:5.}"),
              R"(f{"a": 0.5, "b": -0.5, "c": 3, "d": 1000, "e": 5.0}.)");
    EXPECT_EQ(ShowAnswer(format, "So.\n" + wrap("call:f{}") + wrap("call:g{}") + "\nDone"),
              "So.|f{}.|g{}.|\nDone");
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
                           R"(<tool_call>{"name": "f", "arguments": {"a": 1}, </tool_call>)",
                           R"(<tool_call>{"name": "f", "arguments": {"a": 1} Well.)",
                           R"(<tool_call>{"name": "f", "arguments": {"a": 1}</tool>)"}) {
    const std::string text = absl::StrCat("Hi\n", call);
    const std::string shown = ShowAnswer(kQwen, text);
    EXPECT_THAT(shown, testing::StartsWith("Hi|f{\"a\": 1"));
    EXPECT_THAT(shown, testing::EndsWith(absl::StrCat("!|\n", call)));
  }
  const auto events =
      ParseAllWays(kQwen, R"(<tool_call>{"name": "f", "arguments": {x<tool_call>{"name":"g"})");
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

}  // namespace
}  // namespace inlay

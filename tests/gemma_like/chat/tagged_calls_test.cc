// Calls whose parameters are between tags.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gemma_like/chat/answer_parser.h"
#include "tests/gemma_like/chat/shown_answer.h"

namespace inlay {
namespace {

TEST(TaggedCallsTest, ReadsTags) {
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
TEST(TaggedCallsTest, MarkersInJsonOfTagsEndNoCall) {
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

// As in a text about calls.
TEST(TaggedCallsTest, TextInTagsMayQuoteCalls) {
  const AnswerParserOptions tools = WithTools(R"([{"name": "f", "parameters": {"properties":
      {"s": {"type": "string"}, "n": {"type": "integer"}}}}, {"name": "g"}])");
  const auto show = [&](const std::string& text) { return ShowAnswer(kQwen, text, tools); };
  const auto f = [](const std::string& value) {
    return absl::StrCat("<tool_call>\n<function=f>\n<parameter=s>\n", value,
                        "\n</parameter>\n</function>\n</tool_call>");
  };
  const std::string g = "<tool_call>\n<function=g>\n</function>\n</tool_call>";
  for (const std::string& text :
       {"A call:\n" + g + "\nend", g, g + g,
        std::string("Ends with </function>\n</tool_call>, so."),
        std::string("<function=g>\n</function>\n</tool_call>\n</function> </tool_call>"),
        std::string("<tool_call><function=g><parameter=x>1</function></tool_call>")}) {
    const std::string shown =
        absl::StrCat("f{\"s\": \"", absl::StrReplaceAll(text, {{"\n", "\\n"}}), "\"}.");
    EXPECT_EQ(show(f(text)), shown);
    EXPECT_EQ(show(f(text) + "\n" + f("b") + g + "\nWell."), shown + R"(|f{"s": "b"}.|g{}.|Well.)");
    EXPECT_EQ(show(f("</parameter>\n<parameter=n>\n1\n</parameter>\n<parameter=s>\n" + text)),
              absl::StrReplaceAll(shown, {{"}.", ", \"n\": 1}."}}));
    // Without the marker before it, and at the end.
    const std::string bare = absl::StrReplaceAll(f("<function=g>\n</function>"),
                                                 {{"<tool_call>\n", ""}, {"\n</tool_call>", ""}});
    EXPECT_EQ(show(bare), R"(f{"s": "<function=g>\n</function>"}.)");
  }
  // An end is missing: no later call is a part of the text.
  for (const std::string bad :
       {"<tool_call>\n<function=f>\n<parameter=s>\nfoo\n</function>\n</tool_call>",
        "<tool_call><function=f><parameter=s><function=g></function></function></tool_call>",
        "<tool_call><function=f><parameter=n>1</function></tool_call>"}) {
    EXPECT_EQ(show(bad), bad);
    EXPECT_EQ(show(bad + "\nWell.\n" + f("b") + g),
              absl::StrCat(bad, "\nWell.|", R"(f{"s": "b"}.|g{}.)"));
    EXPECT_EQ(show(bad + bad + f("b")), absl::StrCat(bad, bad, R"(|f{"s": "b"}.)"));
    EXPECT_EQ(show(bad + R"(<tool_call>{"name": "g"}</tool_call>)"), bad + "|g{}.");
    std::string calls, shown;
    for (int i = 0; i < 40; ++i) {
      calls += f("b");
      shown += R"(|f{"s": "b"}.)";
    }
    EXPECT_EQ(show(bad + calls), bad + shown);
  }
}

// Its prompts open the thoughts, or open and close them: the answer has at most the end of them.
TEST(TaggedCallsTest, ReadsNemotron3) {
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

// As Qwen3-Coder writes them now and then.
TEST(TaggedCallsTest, ReadsTagsWithoutTheMarkerBeforeThem) {
  const AnswerParserOptions tools = WithTools(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"properties": {"s": {"type": "string"}, "l": {"type": "array"}}}}},
      {"type": "function", "function": {"name": "fg"}}])");
  const auto show = [&](const std::string& text) { return ShowAnswer(kQwen, text, tools); };
  const std::string f = "<function=f>\n<parameter=s>\nq\n</parameter>\n</function>";
  const std::string shown = R"(f{"s": "q"}.)";
  const std::string marked = absl::StrCat("<tool_call>\n", f, "\n</tool_call>");
  EXPECT_EQ(show("I will.\n\n" + f + "\n</tool_call>"), "I will.|" + shown);
  EXPECT_EQ(show(f), shown);
  EXPECT_EQ(show(f + "\nWell."), shown + "|Well.");
  EXPECT_EQ(show(f + "\n" + f + "\n</tool_call>\n" + marked + "<function=fg></function>"),
            absl::StrCat(shown, "|", shown, "|", shown, "|fg{}."));
  EXPECT_EQ(show("<think>a</think>" + f), "(a)|" + shown);
  // The JSON of a parameter may hold the ends of tags, as with the marker.
  const std::string list = R"(["</parameter></function>", "</function>"])";
  EXPECT_EQ(show("<function=f><parameter=l>" + list + "</parameter></function>"),
            "f{\"l\": " + list + "}.");
  EXPECT_EQ(show("<function=f><parameter=l>[\"a</parameter></function>\nWell."),
            R"(f{"l": "[\"a"}.|Well.)");
  // No call: another name, no tag behind the name, one that does not end.
  for (const std::string text :
       {"<function=g>\n</function>", "<function=f x", "Write <function=f> and </function>.",
        "<function=f><parameter=s>1</function>", "<function=f><parameter=s>1</parameter>"}) {
    EXPECT_EQ(show(text), text);
    EXPECT_EQ(show(text + marked), absl::StrCat(text, "|", shown));
  }
  EXPECT_EQ(show("<function=f<function=fg></function>"), "<function=f|fg{}.");
  EXPECT_EQ(ShowAnswer(kQwen, f), f) << "no tools";
  EXPECT_EQ(ShowAnswer(kNemotron2, f, tools), f) << "another format";
  AnswerParserOptions no_calls = tools;
  no_calls.calls = false;
  EXPECT_EQ(ShowAnswer(kQwen, f, no_calls), f);
}

TEST(TaggedCallsTest, TextBehindTheNameOfAFunctionIsNotKeptBack) {
  AnswerParser parser(kQwen, WithTools(R"([{"name": "f"}])"));
  EXPECT_EQ(Shown(parser.Push("Write <function=f> an")), "Write <function=f> an");
  EXPECT_EQ(Shown(parser.Push(" <tool_call><function=f> and <tool_")),
            " <tool_call><function=f> and");
}

}  // namespace
}  // namespace inlay

// Answers that must be calls: what families write is accepted, and whatever a model with random
// weights writes is read as calls with valid arguments.
#include "gemma_like/grammar/call_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/call_shape.h"
#include "gemma_like/chat/call_writer.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/json_schema.h"
#include "io/template/json_input.h"
#include "tests/gemma_like/chat/answer_text.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/gemma_like/grammar/grammar_text.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using Otherwise = CallRules::Otherwise;

struct Family {
  const char* name;
  const char* source;                 // the texts by which its template is known
  std::vector<const char*> controls;  // the markers that are control tokens
  std::vector<const char*> calls;     // two calls as its models write them, and one
};

const char* const kTwoCalls =
    R"([{"name": "look", "arguments": {"at": "a \"b\"", "n": 2}}, {"name": "stop", "arguments": {}}])";

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      {"Hermes",
       "<tool_call>",
       {"<tool_call>", "</tool_call>"},
       {"<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\", \"n\": "
        "2}}\n</tool_call>\n"
        "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>{\"name\":\"stop\",\"arguments\":{}}</tool_call>"}},
      {"Qwen 3.5",
       "<tool_call><think></think>",
       {},
       {"<tool_call>\n<function=look>\n<parameter=at>\na <b>\n\n</c>\n</parameter>\n<parameter=n>\n"
        "2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=stop>\n</function>\n"
        "</tool_call>",
        "<think>\nI call </tool_call> or <tool_call>.\n</think>\n\n<tool_call>\n<function=stop>\n"
        "</function>\n</tool_call>"}},
      {"Nemotron Nano 2", "<TOOLCALL>", {}, {"<TOOLCALL>[{0}]</TOOLCALL>"}},
      {"Granite 3", "<|tool_call|>", {"<|tool_call|>"}, {"<|tool_call|>[{0}]"}},
      {"Ministral 3",
       "[TOOL_CALLS][THINK][/THINK]",
       {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"},
       {"[TOOL_CALLS]look[ARGS]{\"at\": \"x\", \"n\": 2}[TOOL_CALLS]stop[ARGS]{}",
        "[TOOL_CALLS]stop[CALL_ID]abcDEF123[ARGS]{}",
        "[THINK]So it is.[/THINK][TOOL_CALLS]stop[ARGS]{}"}},
      {"Mistral 7B", "[TOOL_CALLS]", {"[TOOL_CALLS]"}, {"[TOOL_CALLS] [{0}]"}},
  };
  return families;
}

std::string WithCalls(std::string text) {
  const size_t at = text.find("[{0}]");
  return at == std::string::npos ? text : text.replace(at, 5, kTwoCalls);
}

Json Tools() {
  return Json::parse(R"([
    {"name": "look", "parameters": {"type": "object", "properties": {
       "at": {"type": "string"}, "n": {"type": "integer", "minimum": 1, "maximum": 30},
       "how": {"type": "string", "enum": ["fast", "slow\nly", ""]},
       "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
       "of": {"type": "array", "items": {"$ref": "#/$defs/of/1"}}},
     "required": ["at", "n"], "additionalProperties": false, "$defs": {"of": [0, {"type": "boolean"}]}}},
    {"name": "stop", "parameters": {"properties": {}, "additionalProperties": false}},
    {"name": "wait", "parameters": {"type": "object", "required": ["until"], "additionalProperties": false,
     "properties": {"until": {"type": "string", "minLength": 2, "maxLength": 4}}}}])");
}

// The tools as templates get them.
jinja::Value TemplateTools(const Json& tools) {
  Json definitions = Json::array();
  for (const Json& tool : tools) definitions.push_back({{"type", "function"}, {"function", tool}});
  return Must(jinja::ParseJson(DumpJson(definitions)));
}

CallRules RulesOf(const Family& family, const Json& tools) {
  auto rules = CallRulesOf(AnswerFormat::Of(family.source));
  EXPECT_TRUE(rules.has_value());
  for (const Json& tool : tools)
    rules->tools.push_back({.name = tool["name"], .parameters = JsonDocument(tool["parameters"])});
  return *rules;
}

std::unique_ptr<Tokenizer> TokenizerOf(const Family& family) {
  TestVocabulary vocabulary = SpmBase();
  for (const char* text : family.controls) vocabulary.Add(text, kControl);
  vocabulary.flags = {{"add_bos_token", true}, {"add_space_prefix", false}};
  return MustLoad(vocabulary);
}

std::shared_ptr<const AnswerGrammar> GrammarOf(const Tokenizer& tokenizer, const CallRules& rules) {
  AnswerGrammars grammars(tokenizer);
  return Must(grammars.Get({.kind = AnswerShape::Kind::kCalls, .source = CallRulesJson(rules)}));
}

// What the text, in which the texts of control tokens are these, is to the grammar.
Reads ReadText(const Tokenizer& tokenizer, const AnswerGrammar& grammar, absl::string_view text) {
  GrammarMatcher matcher(grammar.compiled);
  for (const int32_t token :
       Must(tokenizer.Encode(text, {.add_bos = false, .parse_special = true}))) {
    if (!Must(matcher.Accept(token))) return Reads::kNot;
  }
  return Must(matcher.CanEnd()) ? Reads::kWhole : Reads::kAsBeginning;
}

TEST(CallGrammarTest, AcceptsWhatFamiliesWrite) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    const auto tokenizer = TokenizerOf(family);
    CallRules rules = RulesOf(family, Tools());
    const auto grammar = GrammarOf(*tokenizer, rules);
    for (const char* pattern : family.calls) {
      const std::string calls = WithCalls(pattern);
      EXPECT_EQ(ReadText(*tokenizer, *grammar, calls), Reads::kWhole) << calls;
      EXPECT_EQ(ReadText(*tokenizer, *grammar, "Hm. " + calls), Reads::kNot) << calls;
    }
    EXPECT_EQ(ReadText(*tokenizer, *grammar, ""), Reads::kAsBeginning);
    const std::string two = WithCalls(family.calls[0]);
    rules.one_call = true;
    EXPECT_NE(ReadText(*tokenizer, *GrammarOf(*tokenizer, rules), two), Reads::kWhole);

    rules.one_call = false;
    rules.otherwise = Otherwise::kSchema;
    *rules.schema = {{"type", "boolean"}};
    const auto or_schema = GrammarOf(*tokenizer, rules);
    EXPECT_EQ(ReadText(*tokenizer, *or_schema, two), Reads::kWhole);
    EXPECT_EQ(ReadText(*tokenizer, *or_schema, "true"), Reads::kWhole);
    EXPECT_EQ(ReadText(*tokenizer, *or_schema, "Yes"), Reads::kNot);
  }
}

TEST(CallGrammarTest, AmongTextOnlyCallsFollowTheMarker) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    const auto tokenizer = TokenizerOf(family);
    CallRules rules = RulesOf(family, Tools());
    rules.otherwise = Otherwise::kText;
    const auto grammar = GrammarOf(*tokenizer, rules);
    const std::string calls = WithCalls(family.calls[0]);
    for (const std::string& text :
         {std::string(), std::string("Let me <see> the [TOOL <tool <<tool_ <TOOL <|tool é."), calls,
          "So: " + calls, calls + "\nDone."})
      EXPECT_EQ(ReadText(*tokenizer, *grammar, text), Reads::kWhole) << text;
    for (const absl::string_view bad : {" No.", "{\"name\": \"nothing\"", "[]", "\n\n\n"}) {
      const std::string text = absl::StrCat("So: ", rules.begin, bad);
      EXPECT_EQ(ReadText(*tokenizer, *grammar, text), Reads::kNot) << text;
    }
    // A function is read as a call also without the marker, so that it is no text.
    if (rules.syntax == CallRules::Syntax::kTagged) {
      EXPECT_EQ(ReadText(*tokenizer, *grammar, "So: <function=look>"), Reads::kNot);
      EXPECT_EQ(ReadText(*tokenizer, *grammar, "So: <function>"), Reads::kWhole);
    }
    // Nor can letters be what a control token is.
    GrammarMatcher letters(grammar->compiled);
    EXPECT_EQ(Must(letters.AcceptBytes(rules.begin)), family.controls.empty());
  }
}

TEST(CallGrammarTest, AcceptsWhatTheCallWriterWrites) {
  const Json message = Json::parse(R"([
      {"function": {"name": "look", "arguments": {"n": 7, "at": "\"\\\n\u00e9<", "of": [true]}}},
      {"function": {"name": "wait", "arguments": {"until": "noon"}}}])");
  const jinja::Value calls = Must(jinja::ParseJson(message.dump()));
  for (const Family& family : Families()) {
    const AnswerFormat format = AnswerFormat::Of(family.source);
    if (!CanWriteCalls(format.calls)) continue;
    const auto tokenizer = TokenizerOf(family);
    const std::string text(Must(WriteCalls(format, calls)).bytes());
    EXPECT_EQ(ReadText(*tokenizer, *GrammarOf(*tokenizer, RulesOf(family, Tools())), text),
              Reads::kWhole)
        << text;
  }
}

// A whole answer, in which every token that may come does so at random, those that close something
// more often. "" where it becomes too long.
std::string RandomAnswer(const Tokenizer& tokenizer, const AnswerGrammar& grammar,
                         std::mt19937& random) {
  GrammarMatcher matcher(grammar.compiled);
  std::string text;
  for (int step = 0; step < 2000; ++step) {
    // Letter by letter it would take long to find the end of a parameter.
    constexpr absl::string_view kEnd = "\n</parameter>\n";
    if (GrammarMatcher ahead = matcher; random() % 4 == 0 && Must(ahead.AcceptBytes(kEnd))) {
      matcher = ahead;
      absl::StrAppend(&text, kEnd);
      continue;
    }
    const auto allowed = Must(matcher.Allowed());
    std::vector<int32_t> tokens, closing;
    for (int32_t token = 0; static_cast<size_t>(token) < tokenizer.size(); ++token) {
      if ((allowed[token / 64] >> token % 64 & 1) == 0) continue;
      const absl::string_view piece = tokenizer.Piece(token);
      const bool closes = tokenizer.IsEndOfGeneration(token) || piece == "\"" || piece == "}" ||
                          piece == "]" || piece == "<" || piece == "/";
      (closes ? closing : tokens).push_back(token);
    }
    EXPECT_FALSE(tokens.empty() && closing.empty()) << text;
    const bool close = !closing.empty() && (tokens.empty() || random() % 2 == 0);
    const std::vector<int32_t>& from = close ? closing : tokens;
    const int32_t token = from[random() % from.size()];
    EXPECT_TRUE(Must(matcher.Accept(token)));
    if (tokenizer.IsEndOfGeneration(token)) return text;
    const absl::string_view piece = tokenizer.Piece(token);
    text += std::string(piece.empty() ? tokenizer.TokenText(token) : piece);
  }
  return "";
}

TEST(CallGrammarTest, RandomAnswersAreReadAsValidCalls) {
  const Json tools = Tools();
  std::map<std::string, std::shared_ptr<CompiledGrammar>> valid;
  for (const Json& tool : tools)
    valid[tool["name"]] = Must(CompiledGrammar::Create(Must(CompileJsonSchema(
        DumpJson(tool["parameters"]), {.in_order = false, .space = JsonSpace::kAny}))));
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    std::mt19937 random(7);
    const auto tokenizer = TokenizerOf(family);
    const auto grammar = GrammarOf(*tokenizer, RulesOf(family, tools));
    const AnswerParserOptions options{.tools = TemplateTools(tools)};
    int whole = 0, with_arguments = 0;
    for (int round = 0; round < 200; ++round) {
      const std::string text = RandomAnswer(*tokenizer, *grammar, random);
      if (text.empty()) continue;
      ++whole;
      const auto events = ParseInPieces(AnswerFormat::Of(family.source), text, options,
                                        [&] { return text.size(); });
      std::string name;
      int calls = 0;
      for (const AnswerEvent& event : events) {
        EXPECT_NE(event.kind, AnswerEvent::Kind::kText) << text << "\n--\n" << event.text;
        if (event.kind == AnswerEvent::Kind::kCallBegin) name = event.text;
        if (event.kind == AnswerEvent::Kind::kCallEnd) ++calls;
        if (event.kind != AnswerEvent::Kind::kCallArguments) continue;
        ASSERT_TRUE(valid.contains(name)) << text;
        EXPECT_EQ(Read(valid[name], event.text), Reads::kWhole) << text << "\n--\n" << event.text;
        with_arguments += event.text.size() > 2 ? 1 : 0;
      }
      EXPECT_GT(calls, 0) << text;
    }
    EXPECT_GT(whole, 30);
    EXPECT_GT(with_arguments, 8);
  }
}

TEST(CallGrammarTest, ToolsThatNeedNotBeValidTakeAnyObject) {
  const auto tokenizer = TokenizerOf(Families()[0]);
  CallRules rules = RulesOf(Families()[0], Json::array());
  rules.tools = {{.name = "f"}};
  const auto grammar = GrammarOf(*tokenizer, rules);
  for (const char* body : {"{\"name\": \"f\", \"arguments\": {\"any\": [{}]}}",
                           "<function=f>\n<parameter=any>\nthing\n</parameter>\n</function>"}) {
    const std::string text = absl::StrCat("<tool_call>\n", body, "\n</tool_call>");
    EXPECT_EQ(ReadText(*tokenizer, *grammar, text), Reads::kWhole) << text;
  }
}

TEST(CallGrammarTest, RefusesToolsByName) {
  const auto tokenizer = TokenizerOf(Families()[0]);
  const auto error = [&](const char* parameters) {
    const Json tools = Json::array({{{"name", "f"}, {"parameters", Json::parse(parameters)}}});
    const auto grammar = CompileCalls(RulesOf(Families()[0], tools), *tokenizer);
    return std::string(grammar.status().message());
  };
  EXPECT_EQ(error("{\"type\": \"string\"}"),
            "the tool 'f': its parameters must be of type object, not \"string\"");
  EXPECT_EQ(error("[]"), "the tool 'f': its parameters must be a JSON schema of an object");
  EXPECT_THAT(error("{\"properties\": {\"a\": {\"uniqueItems\": true}}}"),
              HasSubstr("the tool 'f': the JSON schema's keyword 'uniqueItems' at #/properties/a"));
  EXPECT_EQ(error("{\"type\": [\"object\", \"null\"], \"nullable\": true}"), "");
}

// Many schemas together take no more than one may.
TEST(CallGrammarTest, ToolsShareABudget) {
  const auto tokenizer = TokenizerOf(Families()[0]);
  // Null in 2^12 ways, which are many steps and few states.
  Json x = {{"type", "null"}};
  for (int i = 0; i < 12; ++i)
    x["allOf"].push_back(Json::parse(R"({"anyOf": [{"minLength": 1}, {"maxLength": 1}]})"));
  Json tools = Json::array();
  const auto add = [&] {
    tools.push_back(
        {{"name", absl::StrCat("f", tools.size())}, {"parameters", {{"properties", {{"x", x}}}}}});
  };
  add();
  EXPECT_TRUE(CompileCalls(RulesOf(Families()[0], tools), *tokenizer).ok());
  for (int i = 0; i < 30; ++i) add();
  const auto grammar = CompileCalls(RulesOf(Families()[0], tools), *tokenizer);
  EXPECT_TRUE(absl::IsResourceExhausted(grammar.status()));
  EXPECT_THAT(std::string(grammar.status().message()), HasSubstr("too many combinations"));
}

// Each of them may have any other members, whose values are made once.
TEST(CallGrammarTest, ManyOrdinaryToolsFit) {
  const auto tokenizer = TokenizerOf(Families()[0]);
  Json tools = Json::array();
  for (int i = 0; i < 200; ++i)
    tools.push_back({{"name", absl::StrCat("f", i)},
                     {"parameters", Json::parse(R"({"type": "object", "properties":
                         {"x": {"type": "string"}, "n": {"type": "number"}}})")}});
  const auto grammar = GrammarOf(*tokenizer, RulesOf(Families()[0], tools));
  for (const char* arguments : {R"({"x": "a"})", R"({"n": 1.5, "other": [{}, 1e5]})"}) {
    const std::string call =
        absl::StrCat(R"(<tool_call>{"name": "f199", "arguments": )", arguments, "}</tool_call>");
    EXPECT_EQ(ReadText(*tokenizer, *grammar, call), Reads::kWhole) << call;
  }
  GrammarMatcher matcher(grammar->compiled);
  EXPECT_TRUE(matcher.Allowed().ok());
}

// Null is no arguments, but "#" means all that the schema allows.
TEST(CallGrammarTest, OnlyTheArgumentsThemselvesMustBeAnObject) {
  const auto tokenizer = TokenizerOf(Families()[0]);
  const Json tools = Json::parse(R"([{"name": "f", "parameters": {"type": ["object", "null"],
      "properties": {"next": {"$ref": "#"}}, "required": ["next"]}}])");
  const auto grammar = GrammarOf(*tokenizer, RulesOf(Families()[0], tools));
  const auto reads = [&](absl::string_view arguments) {
    const std::string call =
        absl::StrCat(R"(<tool_call>{"name": "f", "arguments": )", arguments, "}</tool_call>");
    return ReadText(*tokenizer, *grammar, call);
  };
  EXPECT_EQ(reads(R"({"next": null})"), Reads::kWhole);
  EXPECT_EQ(reads(R"({"next": {"next": null}})"), Reads::kWhole);
  EXPECT_EQ(reads("null"), Reads::kNot);
  EXPECT_EQ(reads("{}"), Reads::kNot);
}

// As a JSON text may.
TEST(CallGrammarTest, JsonParametersMayHoldTags) {
  const Family& family = Families()[1];
  const auto tokenizer = TokenizerOf(family);
  const Json tools = Json::parse(R"([{"name": "f", "parameters": {"type": "object", "properties":
      {"xs": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false}}])");
  const auto grammar = GrammarOf(*tokenizer, RulesOf(family, tools));
  const std::string xs = R"(["</parameter><parameter=other>x", "</parameter></function>"])";
  const std::string text = absl::StrCat("<tool_call>\n<function=f>\n<parameter=xs>\n", xs,
                                        "\n</parameter>\n</function>\n</tool_call>");
  EXPECT_EQ(ReadText(*tokenizer, *grammar, text), Reads::kWhole);
  for (const size_t size : {text.size(), size_t{1}}) {
    const auto events = ParseInPieces(AnswerFormat::Of(family.source), text,
                                      {.tools = TemplateTools(tools)}, [&] { return size; });
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[1].text, absl::StrCat("{\"xs\": ", xs, "}"));
  }
}

TEST(CallGrammarTest, RulesGoThroughJson) {
  CallRules rules = RulesOf(Families()[4], Tools());
  rules.tools.push_back({.name = "any", .in_order = true});
  rules.one_call = true;
  rules.otherwise = Otherwise::kSchema;
  *rules.schema = {{"type", "null"}};
  rules.schema_in_order = true;
  const std::string text = CallRulesJson(rules);
  EXPECT_EQ(CallRulesJson(Must(ParseCallRules(text))), text);
  EXPECT_THAT(text, HasSubstr("\"syntax\":\"named_json\""));
  for (const char* bad : {"", "[]", "{}", "{\"syntax\":\"x\"}"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseCallRules(bad).status())) << bad;
}

}  // namespace
}  // namespace inlay

#include "gemma_like/grammar/gbnf_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

void ExpectTexts(const char* grammar, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& refused) {
  const auto compiled = Must(CompiledGrammar::Create(Must(ParseGbnf(grammar))));
  for (const std::string& text : accepted) EXPECT_EQ(Read(compiled, text), Reads::kWhole) << text;
  for (const std::string& text : refused) EXPECT_NE(Read(compiled, text), Reads::kWhole) << text;
}

TEST(Gbnf, Arithmetic) {
  ExpectTexts(R"gbnf(# sums, one a line
root ::= (sum "=" " "? term "\n")+
sum  ::= term ([-+*/] ws term)*
term ::= name | num | "(" ws sum ")" ws
name ::= [a-z] [a-z0-9_]* ws
num  ::= [0-9]+ ws
ws   ::= [ \t\n]*
)gbnf",
              {"1=2\n", "a + b*(c - 12) = x9\n", "1=1\n2=2\n", "((x)) = 3\n"},
              {"", "1=2", "1=\n", "1+=2\n", "(1=2\n", "9a=1\n"});
}

TEST(Gbnf, Json) {
  ExpectTexts(R"gbnf(root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf",
              {"{}", R"({"a": [1, -2.5e3, "x\u00e9\n", {"b":null}], "ü": true})", "{\n  \"a\":1}"},
              {"[]", "{", "{\"a\":01}", "{\"a\" 1}", "{\"a\":\"\\x\"}", "{\"a\":1,}"});
}

TEST(Gbnf, ChessAndLists) {
  ExpectTexts(R"gbnf(root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")*
move ::= (pawn | piece | castle) [+#]?   # check, mate
piece ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
)gbnf",
              {"1. e4 e5\n", "1. e4 e5\n2. Nf3 Nc6\n10. O-O exd8=Q#\n"},
              {"1. e4\n", "1. e9 e5\n", "2. e4 e5\n"});
  ExpectTexts("root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\u2028]+ \"\\n\"\n",
              {"- one\n", "- one\n- zwölf\n"}, {"", "one\n", "- one", "- \n"});
}

TEST(Gbnf, CodeLikeC) {
  ExpectTexts(R"gbnf(root ::= (function)*
function ::= type " " name "(" (type " " name ("," " "? type " " name)*)? ")" " "? "{" (
    "\n" "  "
    statement
  )* "\n}\n"
type ::= "int" | "float" |
    "char"
name ::= [a-zA-Z_] [a-zA-Z_0-9]*
statement ::= ( type " " name " = " expression ";" ) |
  ( "return " expression ";" )
expression ::= term (" " [-+*/<] " " term)*
term ::= name | [0-9]+ | "(" expression ")"
)gbnf",
              {"", "int f() {\n  return 1 + (x * 2);\n}\n",
               "int f(int a, char b){\n  float c = a;\n  return c;\n}\n"},
              {"int f()", "int f() {\n  return ;\n}\n", "void f() {\n}\n"});
}

TEST(Gbnf, JapaneseAndAnyCharacter) {
  ExpectTexts(
      "root ::= jp+ ([ \\t\\n] jp+)*\njp ::= [ぁ-ゟ] | [ァ-ヿ] | [、-〾] | [一-鿿] | "
      "\"😀\"\n",
      {"こんにちは", "カタカナ 漢字。", "😀"}, {"", "abc", "こ  に", "\xE3\x81"});
  ExpectTexts("root ::= . .\n", {"ab", "é😀", "\n\n"}, {"a", "abc", "\xFF\xFF", "\xED\xA0\x80z"});
  ExpectTexts("root ::= \"\\x41\\u00E9\\U0001F600\\\"\\\\\"", {"Aé😀\"\\"}, {"A"});
  ExpectTexts("root ::= [^\\]-]", {"a", "^"}, {"]", "-"});
}

TEST(Gbnf, Repetitions) {
  ExpectTexts("root ::= \"ab\"{2} \"c\"{1,} \"d\"{0,2} \"e\"{,1} ( \"f\" )?",
              {"ababc", "ababcccddef"}, {"abc", "abab", "ababcddd", "ababcee"});
  ExpectTexts("root ::= \"x\"?*", {"", "xxx"}, {"y"});
}

TEST(Gbnf, AByteOrderMarkIsSkipped) {
  ExpectTexts("\xEF\xBB\xBFroot ::= \"a\"", {"a"},
              {"\xEF\xBB\xBF"
               "a"});
}

std::string GbnfError(const std::string& grammar) {
  const auto parsed = ParseGbnf(grammar);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(Gbnf, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> table[] = {
      {"", "has no rule 'root'"},
      {"other ::= \"a\"", "has no rule 'root'"},
      {"\xEF\xBB\xBFroot = \"a\"", "in line 1, column 6"},
      {"root = \"a\"", "no '::=' after the name of a rule in line 1, column 6"},
      {"root ::= \"a", "a text without its closing quote in line 1, column 10"},
      {"root ::= \"a\nb\"", "a text without its closing quote in line 1, column 10"},
      {"root ::= [a", "a '[' without its ']' in line 1, column 10"},
      {"root ::= [a-", "a '[' without its ']' in line 1, column 10"},
      {"root ::= [z-a]", "a range whose bounds are in the wrong order in line 1, column 11"},
      {"root ::= (\"a\"", "a '(' without its ')' in line 1, column 10"},
      {"root ::= \"a\")", "something that does not belong to a rule in line 1, column 13"},
      {"root ::= a\n\na ::= b", "the rule 'b', which is not defined, in line 3, column 7"},
      {"root ::= \"a\"\nroot ::= \"b\"", "a second rule 'root' in line 2, column 1"},
      {"root ::= \"a\"{2,1}",
       "repetitions whose bounds are in the wrong order in line 1, column 13"},
      {"root ::= \"a\"{}", "a '{' that begins no repetition in line 1, column 13"},
      {"root ::= \"a\"{9999999}", "more than 1000000 repetitions in line 1, column 13"},
      {"root ::= \"\\q\"", "an unknown escape in line 1, column 11"},
      {"root ::= \"\\x4\"", "an escape with too few digits in line 1, column 11"},
      {"root ::= \"\\uD800\"", "a surrogate, which UTF-8 does not have, in line 1, column 11"},
      {"root ::= \"\\UFFFFFFFF\"", "an unknown escape in line 1, column 11"},
      {"root ::= \"a\" <think> \"b\"",
       "the token '<think>', which is not supported, in line 1, column 14"},
      {"root ::= !<[7]>", "the token '!<[7]>', which is not supported, in line 1, column 10"},
      {"root ::= \"a\" ; \"b\"", "a character that begins no symbol in line 1, column 14"},
      {"root ::= \"\xFF\"", "bytes that are not UTF-8 in line 1, column 11"},
      {"::= \"a\"", "something that is not the name of a rule in line 1, column 1"},
      {"root ::= root \"a\" | \"b\"", "root"},
      {"root ::= a\na ::= \" \"? b\nb ::= a \"x\" | \"y\"", "left-recursive"},
      {"root ::= \"a\" root", "no text"},
  };
  for (const auto& [grammar, message] : table)
    EXPECT_THAT(GbnfError(grammar), HasSubstr(message)) << grammar;
}

TEST(Gbnf, HostileGrammarsAreRefusedQuickly) {
  const std::clock_t start = std::clock();  // of this program: others may run beside it
  std::string nested(100000, '(');
  EXPECT_THAT(GbnfError("root ::= " + nested), HasSubstr("groups inside each other beyond 60"));
  EXPECT_THAT(GbnfError("root ::= \"a\"" + std::string(1000, '*')),
              HasSubstr("too many repetitions"));
  EXPECT_THAT(GbnfError("root ::= ((\"a\"{1000}){1000}){1000}"), HasSubstr("states"));
  EXPECT_THAT(GbnfError(std::string((size_t{1} << 20) + 1, ' ')), HasSubstr("at most 1048576"));
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 50; ++i)
    absl::StrAppend(&doubling, "r", i, " ::= r", i + 1, " r", i + 1, "\n");
  EXPECT_EQ(GbnfError(doubling + "r50 ::= \"a\"\n"), "");
  EXPECT_THAT(GbnfError("root ::= " + std::string(1000000, '.')), HasSubstr("states"));
  std::string beginnings = "root ::= r0\n";
  for (int i = 0; i < 900; ++i)
    absl::StrAppend(&beginnings, "r", i, " ::= r", i + 1, " \"x\" | \"a\" \"A\"\n");
  EXPECT_THAT(GbnfError(beginnings + "r900 ::= \"a\"\n"),
              HasSubstr("begins with more than 100 rules"));
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace inlay

#include "io/template/lexer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/template/limits.h"

namespace inlay::jinja {
namespace {

using testing::HasSubstr;

// The tokens with their lines: "1:d[text] 1:{{ 1:a 2:}}".
std::string Lex(const std::string& source) {
  const auto tokens = Tokenize(source);
  if (!tokens.ok()) return std::string(tokens.status().message());
  std::string out;
  for (const Token& t : *tokens) {
    constexpr absl::string_view kKinds[] = {"d", "{{", "}}", "{%", "%}", "n",
                                            "s", "i",  "f",  "",   "end"};
    const absl::string_view kind = kKinds[static_cast<size_t>(t.kind)];
    absl::StrAppend(&out, out.empty() ? "" : " ", t.line, ":", kind,
                    t.text.empty() ? "" : absl::StrCat("[", t.text, "]"));
  }
  return out;
}

TEST(LexerTest, SplitsTags) {
  EXPECT_EQ(Lex("a{{ b.c }}d"), "1:d[a] 1:{{ 1:n[b] 1:[.] 1:n[c] 1:}} 1:d[d] 1:end");
  EXPECT_EQ(Lex("{%if 1%}"), "1:{% 1:n[if] 1:i[1] 1:%} 1:end");
  EXPECT_EQ(Lex("{{ 'a\\'' ~ \"b\" }}"), "1:{{ 1:s[a'] 1:[~] 1:s[b] 1:}} 1:end");
  EXPECT_EQ(Lex("{{ {'}}': [1]} }}"),
            "1:{{ 1:[{] 1:s[}}] 1:[:] 1:[[] 1:i[1] 1:[]] 1:[}] 1:}} 1:end");
  EXPECT_EQ(Lex("{{1.5e3 1_0 0x_f a.1.2 x**y//z}}"),
            "1:{{ 1:f[1.5e3] 1:i[10] 1:i[0xf] 1:n[a] 1:[.] 1:i[1] 1:[.] 1:i[2] 1:n[x] 1:[**] "
            "1:n[y] 1:[//] 1:n[z] 1:}} 1:end");
  EXPECT_EQ(Lex(""), "1:end");
  EXPECT_EQ(Lex("{ {x} { {"), "1:d[{ {x} { {] 1:end");
}

TEST(LexerTest, CountsLines) {
  EXPECT_EQ(Lex("a\r\nb\r{{ x\n }}\n{# \n #}{{ y }}"),
            "1:d[a\nb\n] 3:{{ 3:n[x] 4:}} 4:d[\n] 6:{{ 6:n[y] 6:}} 6:end");
}

TEST(LexerTest, TakesWhiteSpaceAroundTags) {
  EXPECT_EQ(Lex("a \n  {%- x -%} \n b"), "1:d[a] 2:{% 2:n[x] 2:%} 3:d[b] 3:end");
  EXPECT_EQ(Lex("a\n  {% x %}\n b"), "1:d[a\n] 2:{% 2:n[x] 2:%} 3:d[ b] 3:end");
  EXPECT_EQ(Lex("a\n  {%+ x +%}\n b"), "1:d[a\n  ] 2:{% 2:n[x] 2:%} 2:d[\n b] 3:end");
  EXPECT_EQ(Lex("  {{ x }}\n"), "1:d[  ] 1:{{ 1:n[x] 1:}} 1:end");
  EXPECT_EQ(Lex("  {{- x -}} \n\ny"), "1:{{ 1:n[x] 1:}} 3:d[y] 3:end");
  EXPECT_EQ(Lex("a {# c #}\n  {# d #} b"), "1:d[a ] 2:d[ b] 2:end");
  EXPECT_EQ(Lex("a\n\n"), "1:d[a\n] 2:end");
  EXPECT_EQ(Lex("\xC2\xA0{%- x %}"), "1:{% 1:n[x] 1:%} 1:end");
}

TEST(LexerTest, LeavesRawBlocksAlone) {
  EXPECT_EQ(Lex("{% raw %}\n {{ x }} {% y %}\n {% endraw %}\nz"),
            "1:d[\n {{ x }} {% y %}\n] 4:d[z] 4:end");
  EXPECT_EQ(Lex("{%- raw -%} a {%- endraw -%} b"), "1:d[a] 1:d[b] 1:end");
  EXPECT_THAT(Lex("{% raw %} {% endra %}"), HasSubstr("line 1 of the template: this raw block"));
}

TEST(LexerTest, RefusesWithTheLine) {
  EXPECT_THAT(Lex("\n{{ a $ }}"), HasSubstr("line 2 of the template: a tag cannot hold"));
  EXPECT_THAT(Lex("{{ (] }}"), HasSubstr("closes none"));
  EXPECT_THAT(Lex("{{ ) }}"), HasSubstr("closes none"));
  EXPECT_THAT(Lex("\n\n{{ 'a"), HasSubstr("line 3"));
  EXPECT_THAT(Lex("{{ a"), HasSubstr("ends within a tag"));
  EXPECT_THAT(Lex("{# a"), HasSubstr("comment"));
  EXPECT_THAT(Lex("{{ 99999999999999999999 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(Lex("{{ \xC3\xA9 }}"), HasSubstr("other letters"));
  EXPECT_THAT(Lex("\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(Lex(std::string(kMaxTemplateBytes + 1, 'a')), HasSubstr("bytes"));
}

}  // namespace
}  // namespace inlay::jinja

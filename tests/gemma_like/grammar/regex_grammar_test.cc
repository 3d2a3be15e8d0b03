#include "gemma_like/grammar/regex_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/grammar/compile_regex.h"
#include "gemma_like/grammar/text_automaton.h"
#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<CompiledGrammar> RegexTexts(const std::string& pattern,
                                            CharacterSpelling spelling) {
  const Regex regex = Must(ParseRegex(pattern));
  return Compiled([&](GrammarBuilder& builder) {
    CharacterSpeller speller(builder, spelling);
    const auto texts = AddRegex(builder, speller, regex);
    return builder.Choice({texts, builder.ControlToken(1)});  // some pattern may match nothing
  });
}

bool Matches(const std::string& pattern, const std::string& text) {
  return Read(RegexTexts(pattern, CharacterSpelling::kPlain), text) == Reads::kWhole;
}

TEST(Regex, Syntax) {
  struct Row {
    const char* pattern;
    std::vector<std::string> matched, others;
  };
  const Row table[] = {
      {"^abc$", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"b", {"b", "abc", "\n b"}, {"", "a"}},
      {"^a|b$", {"a", "axx", "b", "xxb"}, {"xa", "bx"}},
      {"^(a|b)$", {"a", "b"}, {"ab", ""}},
      {"^(?:a|b|)c$", {"ac", "bc", "c"}, {"abc"}},
      {"^(?<name>a)+?$", {"a", "aaa"}, {"", "b"}},
      {"^a*?b??c{2}?$", {"cc", "aabcc"}, {"c", "bbcc"}},
      {"^a{2,}$", {"aa", "aaaa"}, {"a"}},
      {"^a{0}b{1,2}$", {"b", "bb"}, {"a", "bbb"}},
      {"^[a-c-]+$", {"a-c", "-"}, {"d", ""}},
      {"^[^a-c]$", {"d", "ü", "\n", "😀"}, {"a", "dd"}},
      {"^[\\w.\\]\\\\]$", {"a", "_", ".", "]", "\\"}, {"-", "ä"}},
      {"^[\\w-.]$", {"a", "-", "."}, {"+"}},
      {"^[]$", {}, {"", "a"}},
      {"^[^]$", {"a", "\n"}, {""}},
      {"^\\d\\D\\w\\W\\s\\S$", {"1ab- x"}, {"xab- x", "1ab-xx"}},
      {"^\\s$", {" ", "\t", "\v", "\u00a0", "\u2028", "\ufeff"}, {"\u200b"}},
      {"^.$", {"a", "ü", "😀", "\u0085"}, {"\n", "\r", "\u2028", "", "ab"}},
      {"^\\t\\n\\v\\f\\r\\x41\\u0042\\u{1F600}\\cJ$", {"\t\n\v\f\rAB😀\n"}, {"AB"}},
      {"^\\uD83D\\uDE00$", {"😀"}, {}},
      {"^\\.\\/\\-\\^\\$\\{\\}$", {"./-^${}"}, {}},
      {"^]}$", {"]}"}, {}},
      {"^$", {""}, {"a"}},
      {"", {"", "a"}, {}},
      {"$^", {""}, {"a"}},
      {"a^b", {}, {"ab", "b"}},
      {"a*^b", {"b", "bc"}, {"ab"}},
      {"(^|x)y", {"y", "xy", "axyb", "yz"}, {"ay"}},
      {"y($|x)", {"y", "ayx", "ay"}, {"ya"}},
      {"(^a)?b", {"ab", "b", "xb"}, {"a"}},
      {"^(a$|b)c?$", {"a", "b", "bc"}, {"ac"}},
      {"^[\\d-x]+$", {"1-x"}, {"y"}},
      {"^é+$", {"éé"}, {"e"}},
  };
  for (const Row& row : table) {
    for (const std::string& text : row.matched)
      EXPECT_TRUE(Matches(row.pattern, text)) << row.pattern << " " << text;
    for (const std::string& text : row.others)
      EXPECT_FALSE(Matches(row.pattern, text)) << row.pattern << " " << text;
  }
}

TEST(Regex, MatchesWholeAnswers) {
  for (const char* pattern : {"yes|no", "^yes|no$", "^(yes|no)$"}) {
    const auto grammar = Must(CompiledGrammar::Create(Must(CompileRegex(pattern))));
    EXPECT_EQ(Read(grammar, "yes"), Reads::kWhole) << pattern;
    EXPECT_EQ(Read(grammar, "no"), Reads::kWhole) << pattern;
    EXPECT_EQ(Read(grammar, "yes!"), Reads::kNot) << pattern;
    EXPECT_EQ(Read(grammar, "ye"), Reads::kAsBeginning) << pattern;
  }
}

TEST(Regex, Errors) {
  const std::pair<const char*, const char*> table[] = {
      {"(a", "a '(' without its ')' at byte 2"},
      {"a)", "a ')' without a '(' at byte 1"},
      {"[a", "a '[' without its ']' at byte 2"},
      {"*a", "a quantifier after nothing at byte 0"},
      {"a**", "a quantifier after a quantifier at byte 2"},
      {"^*", "a quantifier after an anchor"},
      {"a{2,1}", "a quantifier whose bounds are in the wrong order"},
      {"a{,2}", "a '{' that begins no quantifier (it is written \\{) at byte 1"},
      {"{", "a '{' that begins no quantifier"},
      {"a{1000001}", "more than 1000000 repetitions"},
      {"[z-a]", "a range whose bounds are in the wrong order"},
      {"(?=a)", "'(?=' elsewhere than after a '^' at its start, at byte 0"},
      {"^(?!b)a|c", "a '|' outside of groups beside look-ahead at byte 7"},
      {"^(?!b", "a '(' without its ')'"},
      {"b(?!a)", "'(?!' elsewhere than after a '^' at its start, at byte 1"},
      {"(?<=a)", "'(?<=', which no grammar expresses,"},
      {"(?<!a)", "'(?<!', which no grammar expresses,"},
      {"b(?i)a", "flags in a group, which are not supported (write [Yy]es for (?i)yes), at byte 1"},
      {"(?i-s:a)", "flags in a group, which are not supported"},
      {"(?P<x>a)", "Python's spelling of a named group, which is written (?<name>...), at byte 0"},
      {"(?P=x)", "an unknown kind of group at byte 0"},
      {"(?>a)", "an unknown kind of group"},
      {"(?<xa)", "a group's name without end"},
      {"(a)\\1", "the back reference '\\1', which no grammar expresses,"},
      {"\\k<a>", "the back reference '\\k', which no grammar expresses,"},
      {"\\d\\bword\\b",
       "the regular expression '\\d\\bword\\b' has '\\b', which is not supported, at byte 2"},
      {"(\\d^)*", "the regular expression '(\\d^)*' has '^' or"},
      {"\\bword", "'\\b', which is not supported, at byte 0"},
      {"\\p{L}", "'\\p', which is not supported,"},
      {"\\", "a '\\' at its end"},
      {"\\x4", "an incomplete '\\x'"},
      {"\\u{110000}", "an incomplete '\\u'"},
      {"\\c1", "a '\\c' without a letter"},
      {"\xC3", "bytes that are not UTF-8 at byte 0"},
      {"(^a)*", "'^' or '$' inside of a repetition"},
  };
  for (const auto& [pattern, message] : table) {
    const auto regex = ParseRegex(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_THAT(std::string(regex.status().message()), HasSubstr(message));
  }
}

TEST(Regex, HostilePatternsAreRefusedQuickly) {
  EXPECT_THAT(ParseRegex(std::string(70, '(')).status().message(), HasSubstr("inside each other"));
  EXPECT_THAT(ParseRegex(std::string(70000, 'a')).status().message(), HasSubstr("at most 65536"));
  for (const char* pattern : {"((a{1000}){1000}){1000}", "(a{1000}){1000}b{1000000}"})
    EXPECT_THAT(CompileRegex(pattern).status().message(), HasSubstr("states")) << pattern;
  // The automaton of texts with bounds has 2^20 states for this.
  const Regex exponential = Must(ParseRegex("(a|b)*a(a|b){20}$"));
  const Regex* regexes[] = {&exponential};
  GrammarBuilder builder;
  CharacterSpeller speller(builder, CharacterSpelling::kPlain);
  TextBudget budget;
  EXPECT_THAT(AddText(builder, speller, {regexes, 0, 5000}, budget).status().message(),
              HasSubstr("more than 50000 states"));
}

// Patterns in what ECMA-262 and std::regex have in common, and texts over few letters.
class RandomPatterns {
 public:
  std::string Pattern(int depth) {
    std::string pattern;
    for (int i = Integer(0, 3); i >= 0; --i) absl::StrAppend(&pattern, Term(depth));
    if (Integer(0, 3) == 0) absl::StrAppend(&pattern, "|", Term(depth));
    return pattern;
  }
  std::string Text() {
    std::string text;
    for (int i = Integer(0, 7); i > 0; --i) text += "abc/\"\\\n "[Integer(0, 7)];
    return text;
  }
  int Integer(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

 private:
  std::string Term(int depth) {
    static constexpr const char* kAtoms[] = {"a",   "b", "c",  "[ab]", "[^a]", "\\w",       "\\W",
                                             "\\s", ".", "\"", "\\\\", "\\/",  "[\"\\\\c]", "\\n"};
    std::string atom = depth > 0 && Integer(0, 3) == 0 ? absl::StrCat("(", Pattern(depth - 1), ")")
                                                       : kAtoms[Integer(0, 13)];
    static constexpr const char* kQuantifiers[] = {"*",     "+",     "?",    "{2}",
                                                   "{1,3}", "{0,1}", "{2,}", "*?"};
    if (Integer(0, 2) == 0) atom += kQuantifiers[Integer(0, 7)];
    return atom;
  }

  std::mt19937 random_{11};
};

// The text as a JSON string, with any of the escapes that each character has.
std::string Escaped(const std::string& text, RandomPatterns& random) {
  std::string escaped;
  for (const char c : text) {
    static constexpr absl::string_view kMeant = "\"\\/\n", kNames = "\"\\/n";
    const size_t named = kMeant.find(c);
    char unicode[8];
    std::snprintf(unicode, sizeof(unicode), random.Integer(0, 1) ? "\\u%04x" : "\\u%04X", c);
    const bool must = c == '"' || c == '\\' || c == '\n';
    if (random.Integer(0, 3) == 0)
      escaped += unicode;
    else if (named != absl::string_view::npos && (must || random.Integer(0, 1)))
      escaped += {'\\', kNames[named]};
    else
      escaped += c;
  }
  return escaped;
}

TEST(Regex, RandomPatternsMatchWhatStdRegexMatches) {
  RandomPatterns random;
  int matched = 0;
  for (int i = 0; i < 1500; ++i) {
    const bool from_start = random.Integer(0, 1) == 0, to_end = random.Integer(0, 1) == 0;
    const std::string core = random.Pattern(2);
    const std::string pattern =
        absl::StrCat(from_start ? "^" : "", "(", core, ")", to_end ? "$" : "");
    const std::regex std_regex(pattern);
    const auto plain = RegexTexts(pattern, CharacterSpelling::kPlain);
    const auto whole = RegexTexts(absl::StrCat("^(?:", pattern, ")$"), CharacterSpelling::kPlain);
    const auto json = RegexTexts(pattern, CharacterSpelling::kJsonString);
    const Regex regex = Must(ParseRegex(pattern));
    const Regex* regexes[] = {&regex};
    TextBudget budget;
    for (int j = 0; j < 12; ++j) {
      const std::string text = random.Text();
      const bool expected = std::regex_search(text, std_regex);
      matched += expected ? 1 : 0;
      EXPECT_EQ(Read(plain, text) == Reads::kWhole, expected) << pattern << " in " << text;
      EXPECT_EQ(Read(whole, text) == Reads::kWhole, std::regex_match(text, std_regex))
          << pattern << " in " << text;
      EXPECT_EQ(Read(json, Escaped(text, random)) == Reads::kWhole, expected)
          << pattern << " in " << text;
      EXPECT_EQ(Must(Satisfies({regexes, 0, std::nullopt}, text, budget)), expected)
          << pattern << " in " << text;
    }
  }
  EXPECT_GT(matched, 3000);
}

std::shared_ptr<CompiledGrammar> ConstrainedTexts(const TextConstraints& constraints) {
  return Compiled([&](GrammarBuilder& builder) {
    TextBudget budget;
    CharacterSpeller speller(builder, CharacterSpelling::kPlain);
    return builder.Choice(
        {Must(AddText(builder, speller, constraints, budget)), builder.ControlToken(1)});
  });
}

TEST(Regex, LengthsAndOtherPatternsHoldToo) {
  RandomPatterns random;
  for (int i = 0; i < 400; ++i) {
    const std::string patterns[] = {absl::StrCat("^(", random.Pattern(1), ")$"), random.Pattern(1)};
    const Regex first = Must(ParseRegex(patterns[0])), second = Must(ParseRegex(patterns[1]));
    const Regex* regexes[] = {&first, &second};
    const size_t least = static_cast<size_t>(random.Integer(0, 3));
    const TextConstraints constraints = {
        absl::MakeSpan(regexes).subspan(0, static_cast<size_t>(random.Integer(0, 2))), least,
        random.Integer(0, 1) ? std::optional<size_t>(least + 2) : std::nullopt};
    TextBudget budget;
    const auto grammar = ConstrainedTexts(constraints);
    for (int j = 0; j < 30; ++j) {
      const std::string text = random.Text();
      bool expected =
          text.size() >= least && (!constraints.most || text.size() <= *constraints.most);
      for (size_t k = 0; k < constraints.regexes.size(); ++k)
        expected = expected && std::regex_search(text, std::regex(patterns[k]));
      EXPECT_EQ(Read(grammar, text) == Reads::kWhole, expected)
          << patterns[0] << " " << patterns[1] << " in " << text;
      EXPECT_EQ(Must(Satisfies(constraints, text, budget)), expected);
    }
  }
}

TEST(Regex, LooksAheadWhereTheTextStarts) {
  RandomPatterns random;
  int matched = 0;
  for (int i = 0; i < 400; ++i) {
    const auto look = [&] {
      return absl::StrCat(random.Integer(0, 2) == 0 ? "(?=" : "(?!", random.Pattern(1),
                          random.Integer(0, 1) == 0 ? "$)" : ")");
    };
    const std::string pattern = absl::StrCat("^", look(), random.Integer(0, 1) == 0 ? look() : "",
                                             "(", random.Pattern(1), ")");
    const Regex regex = Must(ParseRegex(pattern));
    ASSERT_TRUE(regex.looks_ahead()) << pattern;
    const Regex* const regexes[] = {&regex};
    const TextConstraints constraints = {regexes, 0, std::nullopt};
    const auto grammar = ConstrainedTexts(constraints);
    TextBudget budget;
    for (int j = 0; j < 30; ++j) {
      const std::string text = random.Text();
      const bool expected = std::regex_search(text, std::regex(pattern));
      matched += expected ? 1 : 0;
      EXPECT_EQ(Read(grammar, text) == Reads::kWhole, expected) << pattern << " in " << text;
      EXPECT_EQ(Must(Satisfies(constraints, text, budget)), expected) << pattern << " in " << text;
    }
  }
  EXPECT_GT(matched, 1000);
}

// As Zod 4 writes e-mail addresses and Pydantic 2.12 decimal numbers.
TEST(Regex, LooksAheadInPatternsOfLibraries) {
  struct Row {
    const char* pattern;
    std::vector<std::string> matched, others;
  };
  const Row table[] = {
      {"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+"
       "[A-Za-z]{2,}$",
       {"a@b.cd", "first.last+tag@mail.example.org"},
       {".a@b.cd", "a..b@c.de", "a@b..cd", "a.@b.cd", "a@b", ""}},
      {"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$",
       {"0", "-1.5", "+.5", "007."},
       {"", "-", "+.", ".", "1e5", "--1"}},
  };
  for (const Row& row : table) {
    const auto grammar = Must(CompiledGrammar::Create(Must(CompileRegex(row.pattern))));
    for (const std::string& text : row.matched)
      EXPECT_EQ(Read(grammar, text), Reads::kWhole) << row.pattern << " " << text;
    for (const std::string& text : row.others)
      EXPECT_NE(Read(grammar, text), Reads::kWhole) << row.pattern << " " << text;
  }
}

TEST(Regex, JsonStringsHaveEscapesForEachCharacter) {
  const auto json = [](const char* pattern, const char* text) {
    const std::string whole = absl::StrCat("^(?:", pattern, ")$");
    return Read(RegexTexts(whole, CharacterSpelling::kJsonString), text) == Reads::kWhole;
  };
  EXPECT_TRUE(json("é", "é"));
  EXPECT_TRUE(json("é", "\\u00e9"));
  EXPECT_TRUE(json("é", "\\u00E9"));
  EXPECT_FALSE(json("é", "\\u00ea"));
  EXPECT_TRUE(json("😀", "😀"));
  EXPECT_TRUE(json("😀", "\\ud83d\\uDE00"));
  EXPECT_FALSE(json("😀", "\\ud83d"));
  EXPECT_FALSE(json("😀", "\\ud83d\\ude01"));
  EXPECT_TRUE(json("[\\u{1F600}-\\u{1FFFF}]", "\\ud83f\\udfff"));
  EXPECT_FALSE(json("[\\u{1F600}-\\u{1FFFF}]", "\\ud83d\\udbff"));
  EXPECT_TRUE(json("\\n", "\\n"));
  EXPECT_TRUE(json("\\n", "\\u000a"));
  EXPECT_FALSE(json("\\n", "\n"));
  EXPECT_TRUE(json("\"", "\\\""));
  EXPECT_FALSE(json("\"", "\""));
  EXPECT_TRUE(json("/", "\\/"));
  EXPECT_TRUE(json("\\x7f", "\x7f"));
  EXPECT_FALSE(json(".", "\\ud800"));
  EXPECT_FALSE(json(".", "\\n"));
}

TEST(Regex, EscapesAreThoseOfTheMembersOfASet) {
  std::mt19937 random(3);
  const uint32_t edges[] = {0x20,    0x7F,    0x80,     0x7FF,   0x800,   0xD7FF,
                            0xE000,  0xFFFF,  0x10000,  0x103FF, 0x10400, 0x1F3FF,
                            0x1F400, 0x1F64F, 0x10FC00, 0x10FFFF};
  const auto any = [&] {
    const uint32_t edge = edges[random() % std::size(edges)] + random() % 5;
    return std::min(random() % 3 ? edge : static_cast<uint32_t>(random() % 0x110000),
                    kLastCodePoint);
  };
  for (int i = 0; i < 300; ++i) {
    const uint32_t a = any(), b = any();
    const CodePointSet set({{std::min(a, b), std::max(a, b)}});
    const auto grammar = Compiled([&](GrammarBuilder& builder) {
      CharacterSpeller speller(builder, CharacterSpelling::kJsonString);
      return builder.Choice({speller.One(set), builder.ControlToken(1)});
    });
    for (const uint32_t near : {a, b}) {
      for (uint32_t c = std::max(near, 2u) - 2; c <= std::min(near + 2, kLastCodePoint); ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        char text[16];
        if (c < 0x10000)
          std::snprintf(text, sizeof(text), "\\u%04x", c);
        else
          std::snprintf(text, sizeof(text), "\\u%04x\\u%04X", 0xD7C0 + (c >> 10),
                        0xDC00 + (c & 0x3FF));
        EXPECT_EQ(Read(grammar, text) == Reads::kWhole, set.Contains(c))
            << text << " in " << a << " to " << b;
      }
    }
  }
}

// Each of the 900 alternatives would take the whole beginning.
TEST(Regex, AnchorsDoNotMultiplyLongPatterns) {
  const std::string choice = "(" + std::string(900, '|') + "$)";
  EXPECT_TRUE(ParseRegex(std::string(100, 'a') + choice).ok());
  EXPECT_THAT(std::string(ParseRegex(std::string(2000, 'a') + choice).status().message()),
              HasSubstr("in too many combinations"));
}

}  // namespace
}  // namespace inlay

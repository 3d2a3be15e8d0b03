#include "gemma_like/grammar/object_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "gemma_like/grammar/automaton.h"
#include "gemma_like/grammar/json_spelling.h"
#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

const std::vector<std::string> kListed = {"a", "ab", "\"\\", "\xC3\xA9"};
const std::vector<std::string> kOthers = {"", "x", "\n\x1F"};

// What an object of these names, in this order, is to `object`, whose names are of kListed.
bool IsWhole(const GrammarObject& object, const std::vector<std::string>& names) {
  if (names.size() < object.least || names.size() > object.most) return false;
  size_t next = 0;
  std::vector<bool> seen(object.members.size());
  for (const std::string& name : names) {
    size_t i = 0;
    while (i < object.members.size() && object.members[i].name != name) ++i;
    if (i == object.members.size()) {
      if (!object.other.has_value()) return false;
      next = i;
      continue;
    }
    if (seen[i] || (object.in_order && i < next)) return false;
    seen[i] = true;
    next = i + 1;
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (object.members[i].required && !seen[i]) return false;
  }
  return true;
}

// Whether more names make it whole.
bool IsBeginning(const GrammarObject& object, std::vector<std::string>* names) {
  if (IsWhole(object, *names)) return true;
  if (names->size() >= 6) return false;
  std::vector<std::string> more = {"?"};
  for (const GrammarMember& member : object.members) more.push_back(member.name);
  for (const std::string& name : more) {
    // A name twice never gets better.
    if (name != "?" && std::find(names->begin(), names->end(), name) != names->end()) continue;
    names->push_back(name);
    const bool found = IsBeginning(object, names);
    names->pop_back();
    if (found) return true;
  }
  return false;
}

std::string Text(const std::vector<std::string>& names) {
  std::string text = "{";
  for (const std::string& name : names) {
    text += (text.size() > 1 ? "," : "") + JsonSpelling(name) + ":1";
  }
  return text;
}

// All sequences of up to `more` further names.
void Check(const GrammarObject& object, const std::shared_ptr<CompiledGrammar>& grammar,
           std::vector<std::string>* names, size_t more, size_t* whole) {
  const std::string text = Text(*names);
  const bool beginning = IsBeginning(object, names);
  ASSERT_EQ(Read(grammar, text) != Reads::kNot, beginning) << text;
  ASSERT_EQ(Read(grammar, text + "}") == Reads::kWhole, IsWhole(object, *names)) << text;
  *whole += IsWhole(object, *names);
  if (!beginning || more == 0) return;
  bool any = false;  // another name is possible
  for (const auto& list : {kListed, kOthers}) {
    for (const std::string& name : list) {
      names->push_back(name);
      any = any || IsBeginning(object, names);
      Check(object, grammar, names, more - 1, whole);
      names->pop_back();
    }
  }
  ASSERT_EQ(Read(grammar, text + (names->empty() ? "\"" : ",")) != Reads::kNot, any) << text;
}

TEST(ObjectRuleTest, AcceptsTheSequencesOfNamesThatAreAllowed) {
  size_t built = 0, whole = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    GrammarBuilder b;
    const auto value = b.Declare("value"), root = b.Declare("root");
    b.Define(value, b.Text("1"));
    GrammarObject object;
    for (const std::string& name : kListed) {
      if (random() % 3 > 0) object.members.push_back({name, value, random() % 3 == 0});
    }
    if (random() % 2 == 0) object.other = value;
    object.least = random() % 3;
    if (random() % 2 == 0) object.most = random() % 4;
    object.in_order = random() % 2 == 0;
    b.Define(root, b.AnyObject(object));
    const auto grammar = std::move(b).Build(root);
    std::vector<std::string> names;
    ASSERT_EQ(grammar.ok(), IsBeginning(object, &names)) << grammar.status();
    if (!grammar.ok()) continue;
    ++built;
    Check(object, Must(CompiledGrammar::Create(*grammar)), &names, 3, &whole);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(built, 150u);
  EXPECT_GT(whole, 1000u);
}

std::shared_ptr<CompiledGrammar> Spaced(JsonSpace space) {
  GrammarBuilder b;
  const auto value = b.Declare("value"), root = b.Declare("root");
  b.Define(value, b.Text("1"));
  GrammarObject object{.members = {{"a", value, true}, {"b", value}}};
  object.space = space;
  b.Define(root, b.AnyObject(object));
  return Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
}

TEST(ObjectRuleTest, SpaceStandsWhereSerializersWriteIt) {
  const auto serialized = Spaced(JsonSpace::kSerialized), any = Spaced(JsonSpace::kAny);
  for (const char* text :
       {"{\"a\":1}", "{ \"a\": 1 }", "{\n\t\"a\": 1,\n\t\"b\":1\n}", "{\n\"a\":1, \"b\": 1}"}) {
    EXPECT_EQ(Read(serialized, text), Reads::kWhole) << text;
    EXPECT_EQ(Read(any, text), Reads::kWhole) << text;
  }
  for (const char* text : {"{\"a\" :1}", "{\"a\":1 ,\"b\":1}", "{\"a\":\n1}", "{\"a\":  1}",
                           "{\t\"a\":1}", "{\r\n\"a\":1}", "{  \"a\":1}", "{ \n\"a\":1}",
                           "{\n\n\"a\":1}", "{\n \t\"a\":1}", "{\n\t \"a\":1}", "{\"a\":1\n\n}"}) {
    EXPECT_EQ(Read(serialized, text), Reads::kNot) << text;
    EXPECT_EQ(Read(any, text), Reads::kWhole) << text;
  }
  for (const auto& grammar : {serialized, any}) EXPECT_EQ(Read(grammar, " {"), Reads::kNot);
}

TEST(ObjectRuleTest, SpaceHasABound) {
  const auto serialized = Spaced(JsonSpace::kSerialized), any = Spaced(JsonSpace::kAny);
  const std::string spaces = "\n" + std::string(kMostIndent, ' ');
  const std::string tabs = "\n" + std::string(kMostIndentTabs, '\t');
  for (const std::string& most : {spaces, tabs}) {
    const std::string text = "{" + most + "\"a\":1," + most + "\"b\":1" + most;
    EXPECT_EQ(Read(serialized, text + "}"), Reads::kWhole);
    EXPECT_EQ(Read(serialized, text + most.back()), Reads::kNot);
    EXPECT_EQ(Read(serialized, text + "\n"), Reads::kNot);
  }
  const std::string most(kMostJsonSpace, ' ');
  EXPECT_EQ(Read(any, "{" + most + "\"a\"" + most + ":" + most + "1" + most + "}"), Reads::kWhole);
  EXPECT_EQ(Read(any, "{" + most + " "), Reads::kNot);
}

TEST(ObjectRuleTest, SerializersWriteNoSpaceBeforeWhatCannotCome) {
  const auto closed = [](std::vector<GrammarMember> members, JsonSpace space) {
    GrammarBuilder b;
    const auto value = b.Declare("value"), root = b.Declare("root");
    b.Define(value, b.Text("1"));
    GrammarObject object{.members = std::move(members)};
    object.space = space;
    b.Define(root, b.AnyObject(object));
    return Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
  };
  const auto optional = closed({{"a", 0}}, JsonSpace::kSerialized);
  EXPECT_EQ(Read(optional, "{}"), Reads::kWhole);
  EXPECT_EQ(Read(optional, "{ }"), Reads::kNot);
  EXPECT_EQ(Read(optional, "{\n}"), Reads::kNot);
  EXPECT_EQ(Read(optional, "{ \"a\":1 }"), Reads::kWhole);
  const auto empty = closed({}, JsonSpace::kSerialized);
  EXPECT_EQ(Read(empty, "{}"), Reads::kWhole);
  EXPECT_EQ(Read(empty, "{ "), Reads::kNot);
  EXPECT_EQ(Read(closed({}, JsonSpace::kAny), "{ \r}"), Reads::kWhole);
  const auto both = closed({{"a", 0, true}, {"b", 0, true}}, JsonSpace::kSerialized);
  EXPECT_EQ(Read(both, "{\"a\":1 "), Reads::kNot);
  EXPECT_EQ(Read(both, "{\"a\":1,\n\"b\":1 "), Reads::kAsBeginning);
}

TEST(ObjectRuleTest, NamesHaveOneSpelling) {
  GrammarBuilder b;
  const auto value = b.Declare("value"), root = b.Declare("root");
  b.Define(value, b.Text("1"));
  GrammarObject object{.members = {{"a\"\n", value}}};
  object.other = value;
  b.Define(root, b.AnyObject(object));
  const auto grammar = Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
  const auto twice = [](const std::string& name) {
    return "{\"" + name + "\":1,\"" + name + "\":1}";
  };
  EXPECT_EQ(Read(grammar, twice(R"(a\"\n)")), Reads::kNot);     // it is listed
  EXPECT_EQ(Read(grammar, twice(R"(a\"\n!)")), Reads::kWhole);  // it is not
  EXPECT_EQ(Read(grammar, twice(R"(a\")")), Reads::kWhole);
  for (const char* other : {R"({"\u0061)", R"({"\/)", R"({"\u000a)", R"({"\u001F)", "{\"\n",
                            "{\"\xFF", "{\"\xC3!", "{\"\xED\xA0"}) {
    EXPECT_EQ(Read(grammar, other), Reads::kNot) << other;
  }
  for (const char* other : {R"({"\u001f)", R"({"\\\b)", R"({"\u0000)", "{\"\x7F\xF4\x8F"}) {
    EXPECT_EQ(Read(grammar, other), Reads::kAsBeginning) << other;
  }
}

TEST(ObjectRuleTest, NamesWithoutValuesAreLeftOut) {
  GrammarBuilder b;
  const auto none = b.Declare("none"), value = b.Declare("value"), root = b.Declare("root");
  b.Define(none, b.Nothing());
  b.Define(value, b.Text("1"));
  GrammarObject object{.members = {{"a", none}, {"b", value}}};
  object.other = value;
  b.Define(root, b.AnyObject(object));
  const auto grammar = Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
  EXPECT_EQ(Read(grammar, R"({"a")"), Reads::kNot);
  EXPECT_EQ(Read(grammar, R"({"b":1,"aa":1})"), Reads::kWhole);
}

// A state of such an object is long, which counts as work; a step does not look at all names.
TEST(ObjectRuleTest, ManyNamesCostWhatTheirStatesTake) {
  GrammarBuilder b;
  const auto value = b.Declare("value"), root = b.Declare("root");
  b.Define(value, b.Text("1"));
  GrammarObject object;
  object.other = value;
  for (int i = 0; i < 46656; ++i) object.members.push_back({std::to_string(100000 + i), value});
  b.Define(root, b.AnyObject(std::move(object)));
  const auto grammar = Must(std::move(b).Build(root));
  Automaton automaton(*grammar);
  const auto after = automaton.Step(automaton.Start(), grammar->class_of['{']);
  EXPECT_GT(automaton.StatesOf(after), 46656u / 32 / 128);

  const auto compiled = Must(CompiledGrammar::Create(grammar));
  std::string text = "{";
  for (int i = 0; i < 300; ++i) text += "\"" + std::to_string(100000 + 7 * i) + "\":1,";
  const std::clock_t start = std::clock();  // of this program: others may run beside it
  EXPECT_EQ(Read(compiled, text + "\"100007"), Reads::kAsBeginning);
  EXPECT_EQ(Read(compiled, text + "\"100007\""), Reads::kNot);  // it came
  EXPECT_EQ(Read(compiled, text + "\"x\":1}"), Reads::kWhole);
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

TEST(ObjectRuleTest, RefusesNamesThatAreListedTwice) {
  const auto twice = ObjectRule::Create({.members = {{"a", 0}, {"b", 0}, {"a", 0}}});
  EXPECT_EQ(twice.status().message(), "the name 'a' is listed twice");
  EXPECT_FALSE(ObjectRule::Create({.members = {{"\xFF", 0}}}).ok());
}

}  // namespace
}  // namespace inlay

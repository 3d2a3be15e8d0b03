// Calls in thoughts: drafts, or the calls of a model that forgot to end its thoughts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gemma_like/chat/answer_parser.h"
#include "tests/gemma_like/chat/shown_answer.h"

namespace inlay {
namespace {

const std::string kTags =
    "<tool_call>\n<function=f>\n<parameter=s>\nq\n</parameter>\n</function>\n</tool_call>";
const std::string kTagsShown = R"(f{"s": "q"}.)";
const std::string kJson = R"(<tool_call>{"name": "g", "arguments": {"x": 1}}</tool_call>)";
const std::string kJsonShown = R"(g{"x": 1}.)";

std::string Show(const std::string& text) {
  return ShowAnswer(kQwen, text, WithTools(R"([{"name": "f"}, {"name": "g"}])"));
}

TEST(CallsInThoughtsTest, AreCallsWhereTheyEndTheAnswer) {
  EXPECT_EQ(Show("<think>I will look.\n" + kTags), "(I will look.)|" + kTagsShown);
  EXPECT_EQ(Show("<think>I will look.\n" + kTags + "\n" + kJson + "\n"),
            absl::StrCat("(I will look.)|", kTagsShown, "|", kJsonShown));
  EXPECT_EQ(Show("<think>" + kJson), kJsonShown);
  // Without the marker behind the call, or before it.
  for (const char* missing : {"\n</tool_call>", "<tool_call>\n"})
    EXPECT_EQ(Show("<think>Hm. " + absl::StrReplaceAll(kTags, {{missing, ""}})),
              "(Hm.)|" + kTagsShown);
  EXPECT_EQ(ShowAnswer(kQwen, "Hm. " + kTags, {.in_thinking = true}), "(Hm.)|" + kTagsShown);
  EXPECT_EQ(ShowAnswer(kGemma4, "<|channel>thought\nHm.<|tool_call>call:f{n:1}<tool_call|>"),
            R"((Hm.)|f{"n": 1}.)");
  EXPECT_EQ(ShowAnswer(kMistral, "[THINK]Hm.[TOOL_CALLS]f[ARGS]{}"), "(Hm.)|f{}.");
  EXPECT_EQ(
      ShowAnswer(kNemotron2, R"(<think>Hm.<TOOLCALL>[{"name": "f"}, {"name": "g"}]</TOOLCALL>)"),
      "(Hm.)|f{}.|g{}.");
}

TEST(CallsInThoughtsTest, AreThoughtsWhereSomethingFollows) {
  for (const std::string& draft :
       {kTags, kJson, kTags + "\n" + kJson, kJson + kTags, kTags + "\n</tool_call>",
        std::string(R"(<tool_call>{"name": "f", "arguments": {)"),
        std::string(R"(<tool_call>{"name": "f"}, {"name": "g", "arguments": {)")}) {
    EXPECT_EQ(Show("<think>Hm.\n" + draft + "\n</think>\nYes."),
              absl::StrCat("(Hm.\n", draft, ")|Yes."));
    EXPECT_EQ(Show("<think>Hm.\n" + draft + "</think>" + kJson),
              absl::StrCat("(Hm.\n", draft, ")|", kJsonShown));
    EXPECT_EQ(Show("<think>Hm.\n" + draft + "\n Well.\n"),
              absl::StrCat("(Hm.\n", draft, "\n Well.\n)"));
    EXPECT_EQ(Show("<think>" + draft + " Well. " + kTags),
              absl::StrCat("(", draft, " Well.)|", kTagsShown));
    EXPECT_EQ(Show("<think>" + draft + "\n<tool_call>"),
              absl::StrCat("(", draft, "\n<tool_call>)"));
  }
  // The end of the thoughts counts within a call, too.
  EXPECT_EQ(Show("<think>" + absl::StrReplaceAll(kJson, {{"1", "\"</think>\""}})),
            R"((<tool_call>{"name": "g", "arguments": {"x": ")|"}}</tool_call>)");
  // Numbers of drafts are free again.
  const auto events = ParseAllWays(kQwen, absl::StrCat("<think>", kJson, ".</think>", kJson));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].call, 0u);
  EXPECT_EQ(ShowAnswer(kQwen, "<think>Hm. " + kTags, {.calls = false}), "(Hm. " + kTags + ")");
}

// As at the most tokens: the thoughts might have gone on.
TEST(CallsInThoughtsTest, AreThoughtsWhereTheAnswerWasCut) {
  for (const std::string& draft :
       {kTags, kJson + "\n", kTags + "\n" + kJson + "\n", kJson + kTags + "\n</tool_call>\n",
        absl::StrReplaceAll(kTags, {{"\n</tool_call>", ""}}),
        std::string(R"(<tool_call>{"name": "f"}})")}) {
    const std::string text = "<think>Hm.\n" + draft;
    for (const size_t piece : {size_t{1}, size_t{9}, text.size()}) {
      AnswerParser parser(kQwen, WithTools(R"([{"name": "f"}])"));
      std::vector<AnswerEvent> events;
      for (size_t at = 0; at < text.size(); at += piece)
        AddEvents(parser.Push(text.substr(at, piece)), events);
      AddEvents(parser.Finish(/*ended=*/false), events);
      EXPECT_EQ(Shown(events), absl::StrCat("(Hm.\n", draft, ")"));
    }
  }
  // Calls that are no drafts stay calls.
  AnswerParser parser(kQwen);
  EXPECT_EQ(Shown(parser.Push("<think>Hm.</think>" + kJson)), "(Hm.)|" + kJsonShown);
  EXPECT_TRUE(parser.Finish(/*ended=*/false).empty());
}

TEST(CallsInThoughtsTest, KeepBackNoOtherThoughts) {
  AnswerParser parser(kQwen);
  EXPECT_EQ(Shown(parser.Push("<think>Is it <tool_call>? No.")), "(Is it <tool_call>? No.)");
  EXPECT_EQ(Shown(parser.Push(" So " + kJson + "\n")), "( So)");
  EXPECT_EQ(Shown(parser.Push("or")), absl::StrCat("( ", kJson, "\nor)"));
  // Nor do they grow without a bound.
  EXPECT_EQ(Shown(parser.Push(R"(<tool_call>{"name": "f", "arguments": {"a": ")")), "");
  size_t shown = 0;
  for (int i = 0; i < 100; ++i) shown += Shown(parser.Push(std::string(1000, 'a'))).size();
  EXPECT_GT(shown, 99'000u);
  EXPECT_EQ(Shown(parser.Push("</think>")), "");
  EXPECT_EQ(Shown(parser.Push(kJson)), kJsonShown);
  // Markers are found where it is reached within them.
  for (size_t size = 65'536 - 10; size < 65'536; ++size) {
    std::string thoughts = R"(<tool_call>{"name": ")";
    thoughts.resize(size, 'a');
    EXPECT_EQ(ShowAnswer(kQwen, absl::StrCat("<think>", thoughts, "</think>Yes.")),
              absl::StrCat("(", thoughts, ")|Yes."));
  }
}

}  // namespace
}  // namespace inlay

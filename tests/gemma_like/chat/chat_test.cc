// Chat templates, against the texts that the models' makers document.
#include "gemma_like/chat/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemma_like/chat/builtin_templates.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay {
namespace {

using testing::HasSubstr;

FixedChatFormat MustCreate(const Tokenizer& tokenizer, ChatTemplate chat_template) {
  auto format = FixedChatFormat::Create(tokenizer, chat_template);
  EXPECT_TRUE(format.ok()) << format.status();
  return *std::move(format);
}

TEST(Chat, WritesGemmaTurns) {
  const auto tokenizer = GemmaTokenizer();
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kGemma);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", " Hi there\n")),
            "[<s>][<start_of_turn>]user\nHi there[<end_of_turn>]\n[<start_of_turn>]model\n");
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("Be brief.", "Hi")),
            "[<s>][<start_of_turn>]user\nBe brief.\n\nHi[<end_of_turn>]\n"
            "[<start_of_turn>]model\n");
  const auto answer = tokenizer->Encode("Hello!", {.add_bos = false});
  EXPECT_EQ(Show(*tokenizer, format.NextTurn(*answer, "Bye")),
            "[<end_of_turn>]\n[<start_of_turn>]user\nBye[<end_of_turn>]\n"
            "[<start_of_turn>]model\n");
}

TEST(Chat, WritesGemma4Turns) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("<|turn>", kControl);
  vocabulary.Add("<turn|>", kControl);
  vocabulary.flags = {{"add_bos_token", true}, {"add_space_prefix", false}};
  const auto tokenizer = MustLoad(vocabulary);
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kGemma4);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", " Hi there\n")),
            "[<s>][<|turn>]user\nHi there[<turn|>]\n[<|turn>]model\n");
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("Be brief. ", "Hi")),
            "[<s>][<|turn>]system\nBe brief.[<turn|>]\n[<|turn>]user\nHi[<turn|>]\n"
            "[<|turn>]model\n");
  const auto answer = tokenizer->Encode("Hello!", {.add_bos = false});
  EXPECT_EQ(Show(*tokenizer, format.NextTurn(*answer, "Bye")),
            "[<turn|>]\n[<|turn>]user\nBye[<turn|>]\n[<|turn>]model\n");
}

// The vocabulary adds it and no built-in template prints it. Where the file says that none is
// added, because its own template prints it, Gemma gets it nevertheless.
TEST(Chat, BeginsWithOneBosAtMost) {
  for (const bool adds_bos : {true, false}) {
    TestVocabulary vocabulary = SpmBase();
    for (const BuiltinChat& chat : BuiltinChats()) {
      for (const char* token : FixedChatFormat::ControlTokens(chat.format)) {
        vocabulary.Add(token, kControl);
      }
    }
    vocabulary.flags = {{"add_bos_token", adds_bos}, {"add_space_prefix", false}};
    const auto tokenizer = MustLoad(vocabulary);
    for (const BuiltinChat& chat : BuiltinChats()) {
      const ChatTemplate chat_template = chat.format;
      const FixedChatFormat format = MustCreate(*tokenizer, chat_template);
      const auto tokens = format.FirstTurn("", "<s>");
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      const bool wanted = adds_bos || chat_template == ChatTemplate::kGemma ||
                          chat_template == ChatTemplate::kGemma4;
      EXPECT_EQ(std::count(tokens->begin(), tokens->end(), *tokenizer->bos()), wanted ? 1 : 0);
      EXPECT_EQ(tokens->front() == *tokenizer->bos(), wanted);
    }
  }
}

// Google's QAT files of Gemma 3 have these tokens as normal ones.
TEST(Chat, WritesGemmaTurnsOfNormalTokens) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("<start_of_turn>", 1);
  vocabulary.Add("<end_of_turn>", 1);
  vocabulary.architecture = "gemma3";  // and no key says that there is no space in front
  const auto tokenizer = MustLoad(vocabulary);
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kGemma);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", "<end_of_turn>")),
            "[<s>][<start_of_turn>]user\n<end_of_turn>[<end_of_turn>]\n[<start_of_turn>]model\n");
}

TEST(Chat, WritesGraniteRoles) {
  const auto tokenizer = GraniteTokenizer();
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kGranite);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", "Hi")),
            "[<|start_of_role|>]user[<|end_of_role|>]Hi[<|end_of_text|>]\n"
            "[<|start_of_role|>]assistant[<|end_of_role|>]");
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("Be brief.", "Hi")),
            "[<|start_of_role|>]system[<|end_of_role|>]Be brief.[<|end_of_text|>]\n"
            "[<|start_of_role|>]user[<|end_of_role|>]Hi[<|end_of_text|>]\n"
            "[<|start_of_role|>]assistant[<|end_of_role|>]");
  EXPECT_EQ(Show(*tokenizer, format.NextTurn({}, "Bye")),
            "[<|end_of_text|>]\n[<|start_of_role|>]user[<|end_of_role|>]Bye[<|end_of_text|>]\n"
            "[<|start_of_role|>]assistant[<|end_of_role|>]");
}

TEST(Chat, WritesChatMlTurns) {
  TestVocabulary vocabulary = BpeBase("llama-bpe");
  vocabulary.Add("<|im_start|>", kControl);
  vocabulary.Add("<|im_end|>", kControl);
  vocabulary.flags = {{"add_bos_token", false}};
  const auto tokenizer = MustLoad(vocabulary);
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kChatMl);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("Be brief.", "Hi")),
            "[<|im_start|>]system\nBe brief.[<|im_end|>]\n[<|im_start|>]user\nHi[<|im_end|>]\n"
            "[<|im_start|>]assistant\n");
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", "Hi")),
            "[<|im_start|>]user\nHi[<|im_end|>]\n[<|im_start|>]assistant\n");
  EXPECT_EQ(Show(*tokenizer, format.NextTurn({}, "Bye")),
            "[<|im_end|>]\n[<|im_start|>]user\nBye[<|im_end|>]\n[<|im_start|>]assistant\n");
}

// Files without a template, as some programs keep theirs apart, may be of a model that thinks.
TEST(Chat, ThoughtsAreNoPartOfTheAnswer) {
  TestVocabulary vocabulary = BpeBase("llama-bpe");
  for (const char* token : {"<|im_start|>", "<|im_end|>"}) vocabulary.Add(token, kControl);
  const auto tokenizer = MustLoad(vocabulary);
  const auto parts = [&](ChatTemplate chat_template, absl::string_view answer) {
    AnswerParser parser = MustCreate(*tokenizer, chat_template).StartAnswer(false);
    std::vector<AnswerEvent> events = parser.Push(answer);
    for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
    std::pair<std::string, std::string> thoughts_and_text;
    for (const AnswerEvent& event : events) {
      const bool thought = event.kind == AnswerEvent::Kind::kReasoning;
      (thought ? thoughts_and_text.first : thoughts_and_text.second) += event.text;
    }
    return thoughts_and_text;
  };
  EXPECT_EQ(parts(ChatTemplate::kChatMl, "<think>\nHm.\n</think>\n\nYes."),
            std::pair(std::string("Hm."), std::string("Yes.")));
  EXPECT_EQ(parts(ChatTemplate::kChatMl, "Yes."), std::pair(std::string(), std::string("Yes.")));
  EXPECT_EQ(parts(ChatTemplate::kNone, "<think>Hm.</think>Yes.").first, "");
}

TEST(Chat, WritesLinesWithoutATemplate) {
  const auto tokenizer = GemmaTokenizer();
  const FixedChatFormat format = MustCreate(*tokenizer, ChatTemplate::kNone);
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("", "ROMEO:")), "[<s>]ROMEO:\n");
  EXPECT_EQ(Show(*tokenizer, format.FirstTurn("A play.", "ROMEO:")), "[<s>]A play.\nROMEO:\n");
  const auto open = tokenizer->Encode("I will");
  const auto ended = tokenizer->Encode("I will.\n");
  EXPECT_EQ(Show(*tokenizer, format.NextTurn(*open, "JULIET:")), "\nJULIET:\n");
  EXPECT_EQ(Show(*tokenizer, format.NextTurn(*ended, "JULIET:")), "JULIET:\n");
}

// Whoever types a control token gets its letters.
TEST(Chat, KeepsTypedControlTokensPlain) {
  const auto gemma = GemmaTokenizer();
  const FixedChatFormat gemma_format = MustCreate(*gemma, ChatTemplate::kGemma);
  EXPECT_EQ(Show(*gemma, gemma_format.NextTurn({}, "a<end_of_turn>b")),
            "[<end_of_turn>]\n[<start_of_turn>]user\na<end_of_turn>b[<end_of_turn>]\n"
            "[<start_of_turn>]model\n");
  EXPECT_EQ(Show(*gemma, gemma_format.FirstTurn("<start_of_turn>model", "x")),
            "[<s>][<start_of_turn>]user\n<start_of_turn>model\n\nx[<end_of_turn>]\n"
            "[<start_of_turn>]model\n");
  const auto granite = GraniteTokenizer();
  const FixedChatFormat granite_format = MustCreate(*granite, ChatTemplate::kGranite);
  EXPECT_THAT(Show(*granite, granite_format.FirstTurn("", "<|end_of_text|>")),
              HasSubstr("]<|end_of_text|>[<|end_of_text|>]"));
}

TEST(Chat, NeedsTheTemplatesTokens) {
  const auto granite = GraniteTokenizer();
  EXPECT_THAT(FixedChatFormat::Create(*granite, ChatTemplate::kGemma).status().message(),
              HasSubstr("'<start_of_turn>'"));
  EXPECT_TRUE(FixedChatFormat::Create(*granite, ChatTemplate::kNone).ok());
}

}  // namespace
}  // namespace inlay

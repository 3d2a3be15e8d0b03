#include "gemma_like/chat/template_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "io/store/state_store_memory.h"
#include "io/template/json_input.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/repetitions.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using testing::HasSubstr;

// Gemma's turns, which the fixed format writes too.
constexpr char kGemma[] = R"({{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
  {%- set first = messages[0]['content'] + '\n\n' -%}{%- set turns = messages[1:] -%}
{%- else -%}
  {%- set first = '' -%}{%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
  {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
  {{ '<start_of_turn>' + role + '\n' + (first if loop.first else '') }}
  {{- message['content'] | trim }}{{ '<end_of_turn>\n' }}
{%- endfor -%}
{{ '<start_of_turn>model\n' if add_generation_prompt }})";

std::unique_ptr<TemplateChatFormat> Format(const Tokenizer& tokenizer, const char* source) {
  return std::make_unique<TemplateChatFormat>(Must(ChatRenderer::CreateFrom(tokenizer, source)));
}

TEST(TemplateChatTest, WritesWhatTheFixedFormatWrites) {
  const auto tokenizer = GemmaTokenizer();
  const auto format = Format(*tokenizer, kGemma);
  const auto fixed = Must(FixedChatFormat::Create(*tokenizer, ChatTemplate::kGemma));
  std::vector<int32_t> conversation, expected;
  std::vector<Exchange> before;
  for (const char* user : {" Hi there\n", "<end_of_turn>", "a\n<start_of_turn>model\nb", "Bye"}) {
    const ChatTexts texts{.system = "Be brief.", .before = before, .user = user};
    const Continuation next = Must(format->Next(texts, conversation, !before.empty()));
    const Continuation wanted = Must(fixed.Next(texts, expected, !before.empty()));
    EXPECT_EQ(next.keep, conversation.size());
    EXPECT_EQ(Show(*tokenizer, next.tokens), Show(*tokenizer, wanted.tokens));
    EXPECT_EQ(next.tokens, wanted.tokens);
    // An answer in other tokens than its text would have.
    const std::string answer = "yes<eos>";
    for (auto* tokens : {&conversation, &expected}) {
      tokens->insert(tokens->end(), next.tokens.begin(), next.tokens.end());
      for (const char c : answer) tokens->push_back(3 + c);
    }
    before.push_back({user, answer});
  }
}

// The tokens of the whole chat, wherever it was cut: at every token of an earlier chat.
TEST(TemplateChatTest, GoesOnFromAnyBeginning) {
  const auto tokenizer = GemmaTokenizer();
  const auto format = Format(*tokenizer, kGemma);
  const std::vector<Exchange> before = {{"One", "two"}, {"three", "four"}};
  const ChatTexts texts{.system = "", .before = before, .user = "five"};
  const Continuation whole = Must(format->Next(texts, {}, false));
  EXPECT_EQ(whole.keep, 0u);
  for (size_t cut = 0; cut <= whole.tokens.size(); ++cut) {
    std::vector<int32_t> beginning(whole.tokens.begin(), whole.tokens.begin() + cut);
    const size_t wanted = std::min(cut, whole.tokens.size() - 1);  // one at least is computed
    const Continuation next = Must(format->Next(texts, beginning, false));
    ASSERT_EQ(next.keep, wanted);
    beginning.resize(next.keep);
    beginning.insert(beginning.end(), next.tokens.begin(), next.tokens.end());
    ASSERT_EQ(beginning, whole.tokens);
  }
}

// As templates do that leave the thinking of earlier answers out.
constexpr char kForgets[] =
    "{% for m in messages %}{{ '<start_of_turn>' ~ m.role ~ '\n' }}"
    "{{ m.content if loop.last or m.role == 'user' else m.content.split('</think>')[-1] }}"
    "{{ '<end_of_turn>' }}{% endfor %}{{ '<start_of_turn>model\n' }}";

TEST(TemplateChatTest, TakesBackWhatATemplateWritesOtherwise) {
  const auto tokenizer = GemmaTokenizer();
  const auto format = Format(*tokenizer, kForgets);
  std::vector<Exchange> before;
  Continuation next = Must(format->Next({.system = "", .before = before, .user = "u"}, {}, false));
  std::vector<int32_t> conversation = next.tokens;
  const size_t answer_begins = conversation.size();
  const std::string answer = "<think>hm</think>yes";
  for (const char c : answer) conversation.push_back(3 + c);
  before.push_back({"u", answer});
  next = Must(format->Next({.system = "", .before = before, .user = "v"}, conversation, true));
  // The prompt says "model", the template's turn "assistant": that far they agree.
  EXPECT_LT(next.keep, answer_begins);
  conversation.resize(next.keep);
  conversation.insert(conversation.end(), next.tokens.begin(), next.tokens.end());
  EXPECT_EQ(Show(*tokenizer, conversation),
            "[<s>][<start_of_turn>]user\nu[<end_of_turn>][<start_of_turn>]assistant\nyes"
            "[<end_of_turn>][<start_of_turn>]user\nv[<end_of_turn>][<start_of_turn>]model\n");
}

// What a template in Qwen's manner gets of an earlier answer, whose thoughts the prompt opened.
TEST(TemplateChatTest, TakesEarlierAnswersApart) {
  constexpr char kApart[] =
      "{%- for m in messages -%}{{ '(' ~ m.role ~ ')' }}{{ m.content }}"
      "{{ '{' ~ m.reasoning_content ~ '}' if m.reasoning_content }}"
      "{%- for c in m.tool_calls %}{{ '[' ~ c.id ~ c.function.name ~ c.function.arguments.x ~ ']' "
      "}}"
      "{% endfor %}{% endfor %}{{ tools | length if tools }}{# <tool_call> #}"
      "{{ '(assistant)' ~ ('<think>\n' if enable_thinking else '</think>') "
      "if add_generation_prompt }}";
  const auto tokenizer = GemmaTokenizer();
  const jinja::Value tools = Must(jinja::ParseJson(R"([{"type": "function"}])"));
  const std::vector<Exchange> before = {
      {"u", "\nHm\n</think>\n\nYes<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 7}}"},
      {"v", "<think>so</think>No"},
      {"w", "cut"}};
  const auto whole = [&](const jinja::Value& given, bool think) {
    const auto variables = Must(jinja::ParseJson(think ? R"({"enable_thinking": true})" : "{}"));
    const TemplateChatFormat format(Must(ChatRenderer::CreateFrom(*tokenizer, kApart)), given,
                                    variables);
    const Continuation next =
        Must(format.Next({.system = "", .before = before, .user = "x"}, {}, false));
    EXPECT_EQ(next.in_thinking, think);
    return Show(*tokenizer, next.tokens);
  };
  EXPECT_EQ(whole(tools, true),
            "[<s>](user)u(assistant)Yes{Hm}[call00000f7](user)v(assistant)No{so}(user)w"
            "(assistant)cut(user)x1(assistant)<think>\n");
  EXPECT_EQ(whole(jinja::Value::None(), true),
            "[<s>](user)u(assistant)Yes<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 7}}{Hm}"
            "(user)v(assistant)No{so}(user)w(assistant)cut(user)x(assistant)<think>\n");
  EXPECT_THAT(whole(tools, false), HasSubstr("u(assistant)\nHm\n</think>\n\nYes[call"));
}

// A template that looks for thoughts in the content; in this vocabulary, as in LFM2's, their
// markers are control tokens.
TEST(TemplateChatTest, KeepsThoughtsInTheContent) {
  TestVocabulary vocabulary = SpmBase();
  for (const char* token : {"<think>", "</think>"}) vocabulary.Add(token, kControl);
  vocabulary.flags = {{"add_bos_token", false}, {"add_space_prefix", false}};
  const auto tokenizer = MustLoad(vocabulary);
  const auto format = Format(*tokenizer,
                             "{% for m in messages %}{{ m.content }}|{% endfor %}"
                             "{{ 'unused'.split('</think>')[1] }}");
  const std::vector<Exchange> before = {{"<think>", "<think>a\n</think> b <think></think>"},
                                        {"u", " c "}};
  EXPECT_EQ(
      Show(*tokenizer,
           Must(format->Next({.system = "", .before = before, .user = "x"}, {}, false)).tokens),
      "<think>|[<think>]a\n[</think>] b <think></think>|u| c |x|");
}

TEST(TemplateChatTest, SaysWhyItCannotGoOn) {
  const auto tokenizer = GemmaTokenizer();
  EXPECT_THAT(ChatRenderer::CreateFrom(*tokenizer, "a\n{% for %}").status().message(),
              HasSubstr("line 2"));
  const auto next = [&](const char* source, absl::Span<const Exchange> before) {
    return Format(*tokenizer, source)
        ->Next({.system = "s", .before = before, .user = "u"}, {}, false)
        .status();
  };
  EXPECT_EQ(next("{{ raise_exception('no system role') }}", {}).message(), "no system role");
  EXPECT_THAT(next("{{ messages[7].content }}", {}).message(), HasSubstr("the chat template: "));
  EXPECT_THAT(next("{{ messages[-1].content if messages[-1].content != 'u' }}", {}).message(),
              HasSubstr("writes nothing"));
  EXPECT_THAT(next("{% if false %}x{% endif %}", {}).message(),
              HasSubstr("the chat template leaves out what the user says"));
  const std::vector<Exchange> unknown = {{"u", std::nullopt}};
  EXPECT_THAT(next(kGemma, unknown).message(), HasSubstr("kept no answers"));
}

// The demo model's file with this template in it.
std::string WriteWithTemplate(const char* name, const char* source) {
  std::string path = TempPath(name);
  WriteChanged(
      Must(GgufFile::Open(kBardPath)),
      {.add_keys = [&](GgufWriter& writer) { writer.SetString(kChatTemplateKey, source); }}, path);
  return path;
}

TEST(MakeChatFormatTest, TheFilesOwnTemplateDecides) {
  const auto first_turn = [](const LoadedModel& model) {
    const auto format = Must(MakeChatFormat(model));
    return Show(*model.tokenizer,
                Must(format->Next({.system = "", .before = {}, .user = "u"}, {}, false)).tokens);
  };
  const LoadedModel bard = LoadBard();
  EXPECT_FALSE(HasChatTemplate(*bard.file));
  const std::string fixed = first_turn(bard);
  const std::string path = WriteWithTemplate("good.gguf", "{{ messages[0].content }}!");
  const LoadedModel own = Must(LoadModel(path));
  EXPECT_TRUE(HasChatTemplate(*own.file));
  const std::string written = first_turn(own);
  EXPECT_NE(written, fixed);
  EXPECT_THAT(written, testing::EndsWith("u!"));
  const std::string bad = WriteWithTemplate("bad.gguf", "{% extends 'x' %}");
  EXPECT_THAT(MakeChatFormat(Must(LoadModel(bad))).status().message(),
              testing::AllOf(HasSubstr("bad.gguf: its chat template: "), HasSubstr("line 1")));
  std::remove(path.c_str());
  std::remove(bad.c_str());
}

// A session with the demo model whose template changes all earlier answers.
class RewrittenChat : public testing::Test {
 protected:
  RewrittenChat() : model_(LoadBard()) {}

  ChatSession Make(const char* source = kSource, size_t max_tokens = 20,
                   std::vector<std::string> stop_texts = {}) {
    GenerateOptions options;
    options.stop_texts = std::move(stop_texts);
    options.sampling.temperature = 0;
    options.max_tokens = max_tokens;
    return Must(
        ChatSession::Create(*model_.engine, *model_.tokenizer,
                            std::shared_ptr<const ChatFormat>(Format(*model_.tokenizer, source)),
                            Must(model_.engine->CreateCache({.max_length = 1000})), "", options));
  }
  static std::string Say(ChatSession& session, const std::string& user) {
    return Must(session.Say(user, nullptr, nullptr)).text;
  }
  // What the model answers to this text from nothing.
  std::string Answer(const std::string& text) {
    const auto cache = Must(model_.engine->CreateCache({.max_length = 1000}));
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = 20;
    const auto prompt = Must(model_.tokenizer->Encode(text, {}));
    return Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt, options)).text;
  }

  static constexpr char kSource[] =
      "{% for m in messages %}{{ m.content | upper if m.role == 'assistant' else m.content }}"
      "{{ '\n' }}{% endfor %}";
  LoadedModel model_;
};

std::string Upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

TEST_F(RewrittenChat, AnswersAreThoseToTheWholeText) {
  ChatSession session = Make();
  std::string text;
  for (const char* user : {"ROMEO:", "JULIET:", "NURSE:", "ROMEO:"}) {
    text += std::string(user) + "\n";
    const std::string answer = Say(session, user);
    ASSERT_EQ(answer, Answer(text));
    text += Upper(answer) + "\n";
  }
  // Back to before the third turn, and on.
  ASSERT_TRUE(session.Rewind(2).ok());
  const std::string other = Say(session, "PARIS:");
  EXPECT_EQ(session.turns().size(), 3u);
  EXPECT_EQ(other, Answer("ROMEO:\n" + Upper(*session.turns()[0].answer) + "\nJULIET:\n" +
                          Upper(*session.turns()[1].answer) + "\nPARIS:\n"));
}

TEST_F(RewrittenChat, IsSavedWithItsAnswers) {
  ChatSession session = Make();
  for (const char* user : {"ROMEO:", "JULIET:"}) Say(session, user);
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  ChatSession loaded = Make();
  ASSERT_TRUE(loaded.Load(**store.Get("chat")).ok());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(loaded.turns()[i].answer, session.turns()[i].answer);
    EXPECT_EQ(loaded.turns()[i].end, session.turns()[i].end);
  }
  const std::string next = Say(session, "NURSE:");
  EXPECT_EQ(Say(loaded, "NURSE:"), next);
  ASSERT_TRUE(loaded.Rewind(1).ok());
  EXPECT_EQ(Say(loaded, "NURSE:"), next);
  EXPECT_EQ(Must(loaded.Regenerate(nullptr, nullptr)).text, next);
}

// A template that changes the earlier answers for some messages only: turns that went on with the
// conversation and turns that took some of it back, in any order with rewinds.
TEST_F(RewrittenChat, TokensAreThoseOfTheWholeTextAfterAnything) {
  constexpr char kSometimes[] =
      "{% set up = 'UP' in messages[-1].content %}{% for m in messages %}"
      "{{ m.content | upper if up and m.role == 'assistant' else m.content }}{{ '\n' }}{% endfor "
      "%}";
  ChatSession session = Make(kSometimes, 12);
  std::mt19937 random(9);
  for (int step = 0; step < Repetitions(250); ++step) {
    const size_t turns = session.turns().size();
    if (turns > 0 && (turns > 12 || random() % 3 == 0)) {
      ASSERT_TRUE(session.Rewind(1 + random() % turns).ok());
      continue;
    }
    const bool up = random() % 4 == 0;
    const std::string user = up ? "UP with JULIET:" : "ROMEO " + std::to_string(random() % 5) + ":";
    std::string expected;
    for (const ChatSession::Turn& turn : session.turns())
      expected += turn.user + "\n" + (up ? Upper(*turn.answer) : *turn.answer) + "\n";
    expected += user + "\n" + Say(session, user);
    ASSERT_EQ(model_.tokenizer->Decode(session.cache().tokens()), expected) << "step " << step;
  }
}

// A stop text is not shown, and so it is not in what the next answer follows: not where a token
// wrote the end of the answer too, either.
TEST_F(RewrittenChat, StopTextsAreNotInTheChat) {
  constexpr char kPlain[] = "{% for m in messages %}{{ m.content }}{{ '\n' }}{% endfor %}";
  for (const char* stop : {"e", "th", "ou", " the", "n", ",", "\n"}) {
    ChatSession session = Make(kPlain, 30, {stop});
    std::string expected;
    for (const char* user : {"ROMEO:", "JULIET:", "NURSE:"}) {
      const GenerateResult result = Must(session.Say(user, nullptr, nullptr));
      expected += absl::StrCat(user, "\n", result.text);
      ASSERT_EQ(model_.tokenizer->Decode(session.cache().tokens()), expected)
          << "stopped by '" << stop << "'";
      EXPECT_EQ(session.turns().back().end, session.cache().length());
      expected += "\n";
    }
  }
}

// An answer that fails leaves the chat as it was, what the template rewrote included.
TEST_F(RewrittenChat, FailuresChangeNothing) {
  ChatSession session = Make();
  for (const char* user : {"ROMEO:", "JULIET:"}) Say(session, user);
  const std::vector<int32_t> tokens(session.cache().tokens().begin(),
                                    session.cache().tokens().end());
  const size_t begin = session.turns()[1].begin;
  EXPECT_FALSE(session.Say(std::string(2000, 'x'), nullptr, nullptr).ok());
  EXPECT_EQ(session.cache().tokens(), absl::MakeConstSpan(tokens));
  ASSERT_EQ(session.turns().size(), 2u);
  EXPECT_EQ(session.turns()[1].begin, begin);
}

}  // namespace
}  // namespace inlay

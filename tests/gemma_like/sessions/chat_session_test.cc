// Chats with a model whose answers are known. (What the demo model does in them is tested in
// tests/tools/chat_session_test.cc.)
#include "gemma_like/sessions/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/chat/template_chat.h"
#include "gemma_like/load_model.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "io/store/state_store_memory.h"
#include "tests/gemma_like/scripted_model.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// A model that answers everything with these pieces, each of which is one token.
std::string WriteAnswering(std::vector<std::string> pieces) {
  const ModelScript script = {
      .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}<|go|>",
      .control_tokens = {"<|go|>"},
      .answers = {{.start = "<|go|>", .pieces = std::move(pieces)}}};
  std::string path = TempPath("answering.gguf");
  const absl::Status status = WriteScriptedModel(script, path);
  EXPECT_TRUE(status.ok()) << status;
  return path;
}

absl::StatusOr<ChatSession> Create(const LoadedModel& model,
                                   std::vector<std::string> stop_texts = {}, size_t snapshots = 1) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.stop_texts = std::move(stop_texts);
  return ChatSession::Create(*model.engine, *model.tokenizer, Must(MakeChatFormat(model)),
                             Must(model.engine->CreateCache({.max_length = 200})), "", options,
                             snapshots);
}

// The chat keeps the tokens that the model drew, but for the stop text. Bytes that are no UTF-8 are
// another text in the answer than in its tokens.
TEST(ChatSessionTest, AStopTextTakesNoOtherTokenWithIt) {
  const struct {
    std::vector<std::string> pieces;
    std::string stop, text, bytes;
    size_t drawn;  // tokens that stay
  } kCases[] = {
      {{"Hm", " yes", " st", "op", "x"}, " stop", "Hm yes", "Hm yes", 2},
      {{"Hm", "\xC3", "\xFF", " yes", " sto", "p x"},
       " stop",
       "Hm\uFFFD\uFFFD yes",
       "Hm\xC3\xFF yes",
       4},
      // A character of two tokens.
      {{"a", "\xC3", "\xA9 stop"}, " stop", "a\u00E9", "a\xC3\xA9", 2},
      // One that stays incomplete: before a stop text, in a token with one, and in one.
      {{"a", "\xE2\x82", "stop"}, "stop", "a\uFFFD", "a\xE2\x82", 2},
      {{"a", "\xE2\x82z sto", "p"}, " stop", "a\uFFFDz", "a\xE2\x82z", 1},
      {{"a", "\xE2\x82", "stop"}, "\uFFFDstop", "a", "a", 1},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.bytes);
    const LoadedModel model = Must(LoadModel(WriteAnswering(c.pieces)));
    ChatSession whole = Must(Create(model));
    ASSERT_TRUE(whole.Say("Q", nullptr, nullptr).ok());
    ChatSession session = Must(Create(model, {c.stop}));
    EXPECT_EQ(Must(session.Say("Q", nullptr, nullptr)).text, c.text);
    const absl::Span<const int32_t> tokens = session.cache().tokens();
    EXPECT_EQ(model.tokenizer->Decode(tokens), "Q" + c.bytes);
    const size_t drawn = session.turns()[0].answer_begin + c.drawn;
    ASSERT_GE(tokens.size(), drawn);
    EXPECT_EQ(tokens.first(drawn), whole.cache().tokens().first(drawn));
    EXPECT_EQ(session.turns()[0].encoded, tokens.size() - drawn);
    EXPECT_EQ(Must(session.LastChances(0, nullptr)).size(), c.drawn);
  }
}

// Vocabularies that put a space in front of a text put none into the middle of a word.
TEST(ChatSessionTest, APartOfATokenIsEncodedAsThePartOfAWord) {
  const std::string path = WriteAnswering({"a", "bc stop"}), spaced = TempPath("spaced.gguf");
  constexpr char kKey[] = "tokenizer.ggml.add_space_prefix";
  WriteChanged(Must(GgufFile::Open(path)),
               {.without_keys = {kKey}, .add_keys = [&](GgufWriter& w) { w.SetBool(kKey, true); }},
               spaced);
  const LoadedModel model = Must(LoadModel(spaced));
  ChatSession session = Must(Create(model, {"c st"}));
  EXPECT_EQ(Must(session.Say("Q", nullptr, nullptr)).text, "ab");
  EXPECT_EQ(model.tokenizer->Decode(session.cache().tokens()), "Qab");
}

TEST(ChatSessionTest, NeedsASnapshot) {
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  const absl::Status status = Create(model, {}, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("0 snapshots, not at least 1"));
}

// A chat that is saved can be loaded, and one that could not be loaded is not saved.
TEST(ChatSessionTest, SavesNoMoreTextThanItLoads) {
  constexpr size_t kMost = size_t{64} << 20;
  constexpr size_t kOther = 10 + 4 * 8 + 8;  // magic, four numbers, checksum
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  ChatSession session = Must(Create(model));
  MemoryStore store;
  ASSERT_TRUE(session.SetSystem(std::string(kMost - kOther, 's')).ok());
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  ChatSession loaded = Must(Create(model));
  const absl::Status status = loaded.Load(**store.Get("chat"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(loaded.system().size(), kMost - kOther);
  ASSERT_TRUE(session.SetSystem(std::string(kMost - kOther + 1, 's')).ok());
  const absl::Status refused = session.Save(**store.Put("larger"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(),
              HasSubstr(absl::StrCat("take ", kMost + 1, " bytes, more than the ", kMost)));
}

// Turns without texts, with these first positions and ends.
absl::Status LoadTurns(ChatSession& session,
                       const std::vector<std::pair<uint64_t, uint64_t>>& turns) {
  std::vector<uint8_t> bytes;
  const std::string magic = "inlaychat3";
  bytes.assign(magic.begin(), magic.end());
  const auto add = [&](uint64_t number) {
    const auto* const data = reinterpret_cast<const uint8_t*>(&number);
    bytes.insert(bytes.end(), data, data + sizeof(number));
  };
  for (const uint64_t number : {uint64_t{turns.size()}, uint64_t{0}, uint64_t{0}}) add(number);
  for (const auto& [begin, end] : turns) {
    for (const uint64_t number : {begin, end, uint64_t{0}, uint64_t{0}}) add(number);
  }
  MemorySource source(bytes);
  return session.Load(source);
}

TEST(ChatSessionTest, TellsWhichTurnOfASavedChatIsDamaged) {
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  ChatSession session = Must(Create(model));
  EXPECT_THAT(LoadTurns(session, {{0, 9}, {9, 20}, {8, 30}}).message(),
              HasSubstr("turn 3 begins at position 8, not at 9 or later"));
  EXPECT_THAT(LoadTurns(session, {{0, 9}, {9, 9}}).message(),
              HasSubstr("turn 2 begins at position 9 and ends at 9, not later"));
}

std::shared_ptr<const ChatFormat> Format(const LoadedModel& model, const std::string& source) {
  return std::make_shared<const TemplateChatFormat>(
      Must(ChatRenderer::CreateFrom(*model.tokenizer, source)));
}

TEST(ChatSessionTest, OfAnotherFormatIsWrittenAnew) {
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  const auto create = [&](const std::string& source) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    return Must(ChatSession::Create(*model.engine, *model.tokenizer, Format(model, source),
                                    Must(model.engine->CreateCache({.max_length = 200})), "",
                                    options));
  };
  const std::string plain = "{% for m in messages %}{{ m.content }}{% endfor %}<|go|>";
  const std::string marked = "{% for m in messages %}({{ m.content }}){% endfor %}<|go|>";
  ChatSession session = create(plain);
  ASSERT_EQ(Must(session.Say("Q", nullptr, nullptr)).text, "a");
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  ChatSession same = create(plain);
  ASSERT_TRUE(same.Load(**store.Get("chat"), {.exact = true}).ok());
  EXPECT_EQ(same.cache().tokens(), session.cache().tokens());

  ChatSession other = create(marked);
  const absl::Status refused = other.Load(**store.Get("chat"), {.exact = true});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  std::string why;
  size_t computed = 0;
  const LoadOptions options{.on_recompute = [&](absl::string_view reason, size_t tokens) {
    why = std::string(reason);
    computed = tokens;
  }};
  ASSERT_TRUE(other.Load(**store.Get("chat"), options).ok());
  EXPECT_THAT(why, HasSubstr("another chat template"));
  EXPECT_EQ(computed, session.cache().length());
  EXPECT_EQ(other.cache().length(), 0u);
  ASSERT_EQ(Must(other.Say("R", nullptr, nullptr)).text, "a");
  EXPECT_EQ(model.tokenizer->Decode(other.cache().tokens()), "(Q)(a)(R)a");
  ASSERT_TRUE(other.Rewind(1).ok());
  EXPECT_EQ(other.turns().size(), 1u);
}

TEST(ChatSessionTest, FormatsDifferInWhatTheyWriteAndNotInTheTime) {
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  const std::string source =
      "{{ strftime_now('%f') }}{{ tools[0] if tools }}{{ think }}{{ messages[-1].content }}<|go|>";
  const auto with = [&](const char* tools, const char* variables) {
    const ChatInput input = Must(ChatInput::Parse("[]", tools, variables));
    return TemplateChatFormat(Must(ChatRenderer::CreateFrom(*model.tokenizer, source)), input.tools,
                              input.variables)
        .fingerprint();
  };
  const uint64_t plain = with("", "");
  EXPECT_EQ(with("", ""), plain) << "made at another time";
  EXPECT_NE(with("[1]", ""), plain);
  EXPECT_NE(with("", "{\"think\": true}"), plain);
  EXPECT_NE(Format(model, source + " ")->fingerprint(), plain);
}

// A list of chats needs no more than their texts.
TEST(ChatSessionTest, TurnsAreReadAlone) {
  const LoadedModel model = Must(LoadModel(WriteAnswering({"a"})));
  ChatSession session = Must(Create(model));
  for (const char* user : {"Q", "R"}) ASSERT_TRUE(session.Say(user, nullptr, nullptr).ok());
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  const std::vector<ChatSession::Turn> turns = Must(ChatSession::ReadTurns(**store.Get("chat")));
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].user, "Q");
  EXPECT_EQ(turns[1].answer, "a");
}

}  // namespace
}  // namespace inlay

// Chats with the demo model in this process: what inlay chat does with them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache/block_pool.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/store/state_store_memory.h"
#include "tests/must.h"
#include "tests/tools/program.h"
#include "tests/tools/session_fixture.h"

namespace inlay {
namespace {

// What is left of a token that a stop text begins in may have more tokens than that one, and so no
// place at the end of the context.
TEST_F(Session, AStopTextAtTheEndOfTheContextLosesNoAnswer) {
  ChatSession roomy = Make(2048, nullptr, {"w"});
  const std::string answer = Say(roomy, "ROMEO: speak");
  ASSERT_EQ(answer, "To-morro");
  const size_t drawn = Must(roomy.LastChances(0, nullptr)).size();
  const size_t length = roomy.cache().length();
  EXPECT_EQ(roomy.cache().tokens().size() - drawn, 7u);
  bool was_short = false;
  for (size_t context = length; context + 3 > length; --context) {
    ChatSession session = Make(context, nullptr, {"w"});
    const auto result = session.Say("ROMEO: speak", nullptr, nullptr);
    ASSERT_TRUE(result.ok()) << context << ": " << result.status();
    if (result->stop_reason != StopReason::kStopText) continue;
    EXPECT_EQ(result->text, answer);
    EXPECT_EQ(session.turns().size(), 1u);
    was_short |= session.cache().length() < length;
  }
  EXPECT_TRUE(was_short);
}

// Twelve turns of 60 tokens: the first rewind is short enough for the cache itself, the second goes
// by a snapshot, and for the third there is none so near any more.
TEST_F(Session, GoesBackExactly) {
  ChatSession session = Make();
  std::vector<std::string> answers;
  std::vector<size_t> begins;
  const auto name = [](size_t turn) { return std::string(1, static_cast<char>('A' + turn)) + ":"; };
  for (size_t i = 0; i < 12; ++i) {
    begins.push_back(session.cache().length());
    answers.push_back(Say(session, name(i)));
  }
  for (size_t count : {1, 4, 9}) {
    const size_t from = session.turns().size() - count;
    ASSERT_TRUE(session.Rewind(count).ok());
    ASSERT_EQ(session.turns().size(), from);
    EXPECT_EQ(session.cache().length(), begins[from]);
    for (size_t i = from; i < 12; ++i) EXPECT_EQ(Say(session, name(i)), answers[i]) << i;
  }
  EXPECT_FALSE(session.Rewind(session.turns().size() + 1).ok());
  ASSERT_TRUE(session.Clear().ok());
  EXPECT_EQ(session.cache().length(), 0u);
  EXPECT_EQ(Say(session, name(0)), answers[0]);
}

// Where a rewind is computed, it tells how far it is and can be ended.
TEST_F(Session, StaysAsItWasWhereARewindIsCancelled) {
  ChatSession session = Make();
  std::vector<size_t> begins;
  for (size_t i = 0; i < 12; ++i) {
    begins.push_back(session.cache().length());
    Say(session, "A:");
  }
  const std::vector<int32_t> tokens(session.cache().tokens().begin(),
                                    session.cache().tokens().end());
  const absl::Status status = session.Rewind(9, [] { return true; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(session.turns().size(), 12u);
  EXPECT_EQ(session.cache().tokens(), absl::MakeConstSpan(tokens));
  uint64_t most = 0;
  ASSERT_TRUE(session
                  .Rewind(9, nullptr,
                          [&](uint64_t done, uint64_t total) {
                            EXPECT_LE(done, total);
                            most = total;
                          })
                  .ok());
  EXPECT_EQ(most, begins[3]);
  EXPECT_EQ(session.turns().size(), 3u);
}

// What is kept of earlier turns and forks takes less than a conversation each.
TEST_F(Session, KeepsWhatGoingBackNeeds) {
  const auto pool = std::make_shared<BlockPool>();
  ChatSession session = Make(2048, pool);
  Say(session, "A:");
  constexpr size_t kMore = 4;
  const size_t one = session.cache().allocated_bytes(), used = pool->used_bytes();
  for (size_t i = 0; i < kMore; ++i) Say(session, "B:");
  const size_t turns = pool->used_bytes() - used;
  EXPECT_LT(turns, kMore * one / 2);
  ASSERT_TRUE(session.Fork().ok());
  Say(session, "C:");
  EXPECT_LT(pool->used_bytes() - used - turns, one);
}

TEST_F(Session, ForksGoTheirOwnWays) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  ASSERT_EQ(Must(session.Fork()), 1u);
  const std::string juliet = Say(session, "JULIET:");
  ASSERT_EQ(Must(session.Fork()), 2u);
  EXPECT_EQ(Must(session.SwitchTo(1)), std::nullopt) << "fork 2 has what is left";
  const std::string nurse = Say(session, "Go, ships of Venice! The sea");
  EXPECT_NE(nurse, juliet);
  EXPECT_EQ(Must(session.SwitchTo(1)), 3u) << "which keeps what no fork had";
  EXPECT_EQ(session.turns().size(), 1u);
  EXPECT_EQ(Say(session, "JULIET:"), juliet);
  EXPECT_EQ(Must(session.SwitchTo(2)), std::nullopt);
  ASSERT_TRUE(session.Rewind(1).ok());
  EXPECT_EQ(Say(session, "Go, ships of Venice! The sea"), nurse);
  EXPECT_EQ(Must(session.SwitchTo(3)), std::nullopt) << "the same as fork 3";
  EXPECT_EQ(session.turns().back().answer, nurse);
  ASSERT_TRUE(session.Clear().ok());
  EXPECT_EQ(Must(session.SwitchTo(1)), std::nullopt) << "nothing is left behind";
  EXPECT_FALSE(session.SwitchTo(0).ok());
  EXPECT_FALSE(session.SwitchTo(4).ok());
}

TEST_F(Session, SavesAndLoads) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  Say(session, "JULIET:\xff with a byte that is no text");
  MemoryStore store;
  const auto save = [&](const ChatSession& from) {
    auto writer = store.Put("chat");
    ASSERT_TRUE(from.Save(**writer).ok());
  };
  const auto load = [&](ChatSession& into) {
    auto reader = store.Get("chat");
    return into.Load(**reader);
  };
  save(session);
  ChatSession other = Make();
  Say(other, "Something else");
  ASSERT_TRUE(load(other).ok());
  ASSERT_EQ(other.turns().size(), 2u);
  EXPECT_EQ(other.turns()[1].user, session.turns()[1].user);
  EXPECT_EQ(other.cache().tokens(), session.cache().tokens());
  const std::string next = Say(session, "NURSE:");
  EXPECT_EQ(Say(other, "NURSE:"), next);
  // What was loaded can be taken back like what was said.
  ASSERT_TRUE(other.Rewind(2).ok());
  EXPECT_EQ(other.turns().size(), 1u);
  ChatSession again = Make();
  save(again);
  ASSERT_TRUE(load(other).ok());
  EXPECT_EQ(other.turns().size(), 0u);
  EXPECT_EQ(other.cache().length(), 0u);
}

// The tokens alone: loading computes the rest again.
TEST_F(Session, SavesTokensAlone) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("all")).ok());
  ASSERT_TRUE(session.Save(**store.Put("tokens"), SavedPart::kTokens).ok());
  EXPECT_LT((*store.Get("tokens"))->remaining(), 2000u);
  EXPECT_GT((*store.Get("all"))->remaining(), 20000u);
  ChatSession other = Make();
  std::string why;
  uint64_t told = 0;
  const LoadOptions options{
      .on_recompute = [&](absl::string_view reason, size_t) { why = std::string(reason); },
      .progress =
          [&](uint64_t done, uint64_t total) {
            EXPECT_LE(done, total);
            told = total;
          }};
  ASSERT_TRUE(other.Load(**store.Get("tokens"), options).ok());
  EXPECT_EQ(told, session.cache().length());
  EXPECT_EQ(why, "only its tokens were saved");
  EXPECT_EQ(other.cache().tokens(), session.cache().tokens());
  EXPECT_EQ(Say(other, "JULIET:"), Say(session, "JULIET:"));
  EXPECT_FALSE(other.Load(**store.Get("tokens"), {.exact = true}).ok());
}

TEST_F(Session, ForgetsForks) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  ASSERT_EQ(Must(session.Fork()), 1u);
  ASSERT_EQ(Must(session.Fork()), 2u);
  ASSERT_TRUE(session.DropFork(1).ok());
  EXPECT_FALSE(session.DropFork(1).ok());
  EXPECT_FALSE(session.SwitchTo(1).ok());
  ASSERT_EQ(session.forks().size(), 1u);
  EXPECT_EQ(session.forks()[0].number, 2u);
  EXPECT_EQ(session.forks()[0].turns, 1u);
  EXPECT_EQ(session.forks()[0].tokens, session.cache().length());
  EXPECT_TRUE(session.SwitchTo(2).ok());
  EXPECT_EQ(Must(session.Fork()), 3u) << "a number comes once";
}

// What a session that begins with these turns' texts, and nothing before them, computes.
TEST_F(Session, TrimsExactly) {
  ChatSession session = Make(400);
  std::vector<std::pair<size_t, size_t>> trims;
  session.DropOldTurnsWhenFull([&](size_t dropped, size_t tokens) {
    trims.push_back({dropped, tokens});
  });
  const auto name = [](size_t turn) { return std::string(1, static_cast<char>('A' + turn)) + ":"; };
  std::string last;
  size_t said = 0;
  for (; trims.empty() && said < 20; ++said) last = Say(session, name(said));
  ASSERT_EQ(trims.size(), 1u);
  const auto [dropped, tokens] = trims[0];
  EXPECT_EQ(session.turns().size(), said - dropped);
  EXPECT_EQ(session.turns().front().user, name(dropped));
  EXPECT_LE(tokens, 200u);
  EXPECT_GT(tokens, 100u) << "more than needed was dropped";

  // By hand: the same texts as one prompt.
  std::string text;
  for (size_t i = 0; i + 1 < session.turns().size(); ++i) {
    const ChatSession::Turn& turn = session.turns()[i];
    text += turn.user + "\n" + *turn.answer + (turn.answer->back() == '\n' ? "" : "\n");
  }
  const auto cache = Must(model_.engine->CreateCache({.max_length = 400}));
  const absl::Span<const int32_t> prompt = session.cache().tokens().first(tokens);
  EXPECT_EQ(model_.tokenizer->Decode(prompt), text + name(said - 1) + "\n");
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 60;
  EXPECT_EQ(Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt, options)).text, last);

  // It goes on, and what is left can be saved, taken back and said again.
  const std::string next = Say(session, "NURSE:");
  ASSERT_TRUE(session.Rewind(1).ok());
  EXPECT_EQ(Say(session, "NURSE:"), next);
  ASSERT_TRUE(session.Rewind(session.turns().size() - 1).ok());
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("rewound")).ok());
  ChatSession other = Make(400);
  ASSERT_TRUE(other.Load(**store.Get("rewound")).ok());
  EXPECT_EQ(Say(other, "NURSE:"), Say(session, "NURSE:"));
}

TEST_F(Session, StaysAsItWasWhereATrimFails) {
  ChatSession session = Make(200);
  session.DropOldTurnsWhenFull([](size_t, size_t) {});
  Say(session, "ROMEO:");
  Say(session, "JULIET:");
  const std::vector<int32_t> tokens(session.cache().tokens().begin(),
                                    session.cache().tokens().end());
  EXPECT_FALSE(session.Say("NURSE:", nullptr, [] { return true; }).ok());
  EXPECT_FALSE(session.Say(std::string(1000, 'x'), nullptr, nullptr).ok());
  EXPECT_EQ(session.turns().size(), 2u);
  EXPECT_EQ(session.cache().tokens(), absl::MakeConstSpan(tokens));
}

TEST_F(Session, ChangesItsSystemPrompt) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  ASSERT_TRUE(session.SetSystem("A tragedy.").ok());
  const std::string answer = Say(session, "JULIET:");
  EXPECT_EQ(session.turns().size(), 2u);
  EXPECT_EQ(model_.tokenizer->Decode(session.cache().tokens()).rfind("A tragedy.\nROMEO:\n", 0),
            0u);
  // It is saved with the chat.
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  ChatSession other = Make();
  ASSERT_TRUE(other.Load(**store.Get("chat")).ok());
  EXPECT_EQ(other.system(), "A tragedy.");
  ASSERT_TRUE(other.Rewind(1).ok());
  EXPECT_EQ(Say(other, "JULIET:"), answer);
}

TEST_F(Session, ForksKeepTheirSystemPrompts) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  ASSERT_EQ(Must(session.Fork()), 1u);
  const std::string answer = Say(session, "JULIET:");
  ASSERT_TRUE(session.SetSystem("A tragedy.").ok());
  ASSERT_EQ(Must(session.Fork()), 2u);
  ASSERT_TRUE(session.SwitchTo(1).ok());
  EXPECT_EQ(session.system(), "");
  EXPECT_EQ(Say(session, "JULIET:"), answer);
  ASSERT_TRUE(session.SwitchTo(2).ok());
  EXPECT_EQ(session.system(), "A tragedy.");
}

TEST_F(Session, TellsTheProbabilitiesOfItsAnswer) {
  ChatSession session = Make();
  EXPECT_FALSE(session.LastChances(1, nullptr).ok());
  Say(session, "ROMEO:");
  Say(session, "JULIET:");
  const size_t length = session.cache().length();
  const std::vector<ChosenToken> chances = Must(session.LastChances(2, nullptr));
  ASSERT_EQ(chances.size(), 60u);
  std::vector<int32_t> tokens;
  for (const ChosenToken& chance : chances) {
    tokens.push_back(chance.token);
    ASSERT_EQ(chance.top.size(), 2u);
    EXPECT_EQ(chance.top[0].token, chance.token) << "the likeliest is chosen at temperature 0";
    EXPECT_EQ(chance.top[0].logprob, chance.logprob);
    EXPECT_LE(chance.logprob, 0);
  }
  EXPECT_EQ(absl::MakeConstSpan(tokens), session.cache().tokens().last(60));
  EXPECT_EQ(session.cache().length(), length);
  // The same bits as while the answer was generated.
  const auto cache = Must(model_.engine->CreateCache({.max_length = 2048}));
  GenerateOptions options;
  options.max_tokens = 60;
  options.top_chances = 2;
  options.sampling.temperature = 0;
  const GenerateResult again = Must(Generate(*model_.engine, *model_.tokenizer, *cache,
                                             session.cache().tokens().first(length - 60), options));
  ASSERT_EQ(again.chosen.size(), 60u);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(again.chosen[i].token, chances[i].token);
    EXPECT_EQ(again.chosen[i].logprob, chances[i].logprob);
    EXPECT_EQ(again.chosen[i].top[1].token, chances[i].top[1].token);
  }
}

TEST_F(Session, RefusesDamagedChats) {
  ChatSession session = Make();
  Say(session, "ROMEO:");
  MemoryStore store;
  ASSERT_TRUE(session.Save(**store.Put("chat")).ok());
  auto reader = store.Get("chat");
  std::vector<uint8_t> bytes((*reader)->remaining());
  ASSERT_TRUE((*reader)->Read(absl::MakeSpan(bytes)).ok());

  ChatSession other = Make();
  const std::string said = Say(other, "JULIET:");
  const std::vector<int32_t> tokens(other.cache().tokens().begin(), other.cache().tokens().end());
  const auto refused = [&](absl::Span<const uint8_t> wrong) {
    auto writer = store.Put("wrong");
    ASSERT_TRUE((*writer)->Append(wrong).ok());
    ASSERT_TRUE((*writer)->Commit().ok());
    ASSERT_FALSE(other.Load(**store.Get("wrong")).ok());
    ASSERT_EQ(other.turns().size(), 1u);
    ASSERT_TRUE(other.cache().tokens() == absl::MakeConstSpan(tokens));
  };
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
    refused(absl::MakeConstSpan(bytes).first(size));
  }
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 1 + bit / 50) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    refused(bytes);
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
  bytes.push_back(0);
  refused(bytes);
}

// A store may claim any size: what is allocated is not for it to say.
TEST_F(Session, RefusesChatsThatClaimTheImpossible) {
  class Claims final : public ByteSource {
   public:
    absl::Status Read(absl::Span<uint8_t> into) override {
      // One turn, no answers, from position 0, of 2^39 bytes.
      static const std::string head = [] {
        std::string text = "inlaychat\n";
        for (uint64_t n : {uint64_t{1}, uint64_t{0}, uint64_t{0}, uint64_t{1} << 39})
          text.append(reinterpret_cast<const char*>(&n), sizeof(n));
        return text;
      }();
      for (uint8_t& byte : into) byte = at_ < head.size() ? static_cast<uint8_t>(head[at_++]) : 0;
      return absl::OkStatus();
    }
    uint64_t remaining() const override { return uint64_t{1} << 40; }

   private:
    size_t at_ = 0;
  };
  ChatSession session = Make();
  Claims claims;
  EXPECT_EQ(session.Load(claims).code(), absl::StatusCode::kDataLoss);
}

TEST_F(Session, GivesAnotherAnswer) {
  ChatSession session = Make();
  EXPECT_FALSE(session.Regenerate(nullptr, nullptr).ok());
  const std::string greedy = Say(session, "ROMEO:");
  const size_t length = session.cache().length();
  auto again = session.Regenerate(nullptr, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->text, greedy);  // at temperature 0 there is one
  EXPECT_EQ(session.cache().length(), length);
  EXPECT_EQ(session.turns().size(), 1u);
}

// Memory that ends in the middle of an answer, at whatever token.
TEST_F(Session, ForgetsAnAnswerThatFails) {
  size_t begun = 0;
  ChatSession plenty = Make();
  const std::string whole = Say(plenty, "ROMEO:");
  for (size_t limit = size_t{1} << 20;; limit += size_t{1} << 17) {
    const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = limit});
    ChatSession session = Make(2048, pool);
    bool shown = false;
    const auto result = session.Say(
        "ROMEO:", [&](absl::string_view) { shown = true; }, nullptr);
    if (result.ok()) {
      EXPECT_EQ(result->text, whole);
      break;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
    EXPECT_EQ(session.cache().length(), 0u);
    EXPECT_TRUE(session.turns().empty());
    begun += shown;
  }
  EXPECT_GT(begun, 0u) << "no limit was just too small";
}

TEST_F(Session, StaysAsItWasOnErrors) {
  ChatSession session = Make(150);
  Say(session, "ROMEO:");
  const size_t length = session.cache().length();
  EXPECT_FALSE(session.Say(std::string(1000, 'x'), nullptr, nullptr).ok());
  EXPECT_FALSE(session.Say("JULIET:", nullptr, [] { return true; }).ok());
  EXPECT_FALSE(session.Regenerate(nullptr, [] { return true; }).ok());
  EXPECT_EQ(session.cache().length(), length);
  EXPECT_EQ(session.turns().size(), 1u);
  ChatSession other = Make(150);
  Say(other, "ROMEO:");
  EXPECT_EQ(Say(session, "JULIET:"), Say(other, "JULIET:"));
}

}  // namespace
}  // namespace inlay

// One answer without a scheduler: its pauses.
#include "serve/scheduler/answer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gemma_like/generation/speculate.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/scheduler/known_answers.h"

namespace inlay::serve {
namespace {

// Drafts nothing.
class IdleDrafter final : public Drafter {
 public:
  std::vector<int32_t> Draft(absl::Span<const int32_t>, size_t) override { return {}; }
  void Pause() override { ++pauses; }

  int pauses = 0;
};

class AnswerTest : public ::testing::Test {
 protected:
  AnswerTest() {
    AnswerRequest request;
    request.prompt = Must(model_.tokenizer->Encode("To be, or not to be"));
    request.options.max_tokens = 8;
    request.options.ignore_eos = true;
    known_ = Compute(*model_.engine, *model_.tokenizer, KvType::kF32, kContext, request);
    ticket_->request = request;
    ticket_->listener = listener_;
  }

  absl::Status Begin() {
    return answer_.Begin(*empty_, *model_.tokenizer, {}, /*draft=*/2, drafter_, kMostScoredRows);
  }
  // One step of at most this many tokens.
  void Step(size_t most) {
    const Generation::Step step = Must(answer_.Next(most));
    const size_t vocab = model_.engine->info().vocab_size;
    std::vector<float> logits(step.logit_rows * vocab);
    const SequenceStep one{
        .cache = &answer_.cache(), .tokens = step.tokens, .logit_rows = step.logit_rows};
    ASSERT_TRUE(
        model_.engine->Forward({&one, 1}, FloatRows(logits.data(), step.logit_rows, vocab)).ok());
    ASSERT_TRUE(answer_.Accept(ConstFloatRows(logits.data(), step.logit_rows, vocab)).ok());
    answer_.Tell();
  }
  void Finish() {
    while (!answer_.done()) Step(100);
    answer_.TellEnd(absl::OkStatus());
    ExpectSame(listener_->told(), known_.alone[0]);
  }

  static constexpr size_t kContext = 64;
  const LoadedModel model_ = LoadBard();
  Known known_;
  const std::unique_ptr<KVCache> empty_ =
      Must(model_.engine->CreateCache({.max_length = kContext}, KvType::kF32));
  const std::shared_ptr<IdleDrafter> drafter_ = std::make_shared<IdleDrafter>();
  const std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(1);
  const std::shared_ptr<Ticket> ticket_ = std::make_shared<Ticket>();
  Answer answer_{ticket_, /*choice=*/0, /*order=*/0};
};

TEST_F(AnswerTest, APausedAnswerIsResumedWithItsDrafter) {
  ASSERT_TRUE(Begin().ok());
  for (int i = 0; i < 4; ++i) Step(100);
  for (int pauses = 1; pauses <= 2; ++pauses) {
    ASSERT_TRUE(answer_.Pause(*empty_).ok());
    EXPECT_EQ(answer_.cache().length(), 0u);
    EXPECT_EQ(drafter_->pauses, pauses);
    ASSERT_TRUE(answer_.has_begun());
    ASSERT_TRUE(answer_.Resume({}).ok());
    Step(3);  // the second pause is within what is computed again
  }
  Finish();
}

TEST_F(AnswerTest, AnAnswerThatIsPausedWithinItsPromptBeginsAnew) {
  ASSERT_TRUE(Begin().ok());
  Step(2);
  ASSERT_TRUE(answer_.in_prompt());
  ASSERT_TRUE(answer_.Pause(*empty_).ok());
  EXPECT_FALSE(answer_.has_begun());
  EXPECT_EQ(drafter_.use_count(), 1) << "another one is made for it";
  ASSERT_TRUE(Begin().ok());
  Finish();
}

}  // namespace
}  // namespace inlay::serve

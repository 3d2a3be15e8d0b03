// Embeddings under load: --queue, --timeout and --drain hold for them as for answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cache/cache_bytes.h"
#include "cache/model_identity.h"
#include "gemma_like/load_model.h"
#include "nlohmann/json.hpp"
#include "serve/service/service.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Computes nothing before it is released, unless it is cancelled.
class HeldEngine final : public Engine {
 public:
  explicit HeldEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::atomic<size_t> begun = 0;  // calls of Embed
  std::atomic<bool> released = false;

  const EngineInfo& info() const override { return engine_->info(); }
  absl::StatusOr<ModelIdentity> Identity() override { return engine_->Identity(); }
  absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const CacheOptions& options,
                                                       KvType type) const override {
    return engine_->CreateCache(options, type);
  }
  CacheBytes PlanCache(KvType type) const override { return engine_->PlanCache(type); }
  size_t CacheBytesRead(size_t length, KvType type) const override {
    return engine_->CacheBytesRead(length, type);
  }
  absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                       const CancelCheck& cancel, absl::Span<absl::Status> outcomes) override {
    return engine_->Forward(steps, logits, cancel, outcomes);
  }
  absl::Status Embed(absl::Span<const absl::Span<const int32_t>> texts, FloatRows embeddings,
                     const CancelCheck& cancel) override {
    ++begun;
    while (!released) {
      if (cancel()) return absl::CancelledError("cancelled");
      absl::SleepFor(absl::Milliseconds(1));
    }
    return engine_->Embed(texts, embeddings, cancel);
  }

 private:
  const std::unique_ptr<Engine> engine_;
};

class EmbeddingsTest : public ::testing::Test {
 protected:
  EmbeddingsTest() {
    const std::string path = TempPath("embeddings.gguf");
    WriteEmbeddingFile({}, path);
    model_ = Must(LoadModel(path, {.threads = 1}));
    unlink(path.c_str());
    auto engine = std::make_unique<HeldEngine>(std::move(model_.engine));
    engine_ = engine.get();
    model_.engine = std::move(engine);
  }

  void Start(ServiceOptions options = {}) {
    service_ =
        Must(Service::Create(model_, absl::InvalidArgumentError("no chats"), keys_, options));
  }
  std::shared_ptr<FakeReply> AskForOne() {
    return Ask(*service_, "POST", "/v1/embeddings", R"({"model": "m", "input": "To be"})");
  }
  void WaitUntilBegun(size_t calls) {
    ASSERT_TRUE(WaitUntil([&] { return engine_->begun >= calls; }));
  }

  const ApiKeys keys_;
  LoadedModel model_;
  HeldEngine* engine_;
  std::unique_ptr<Service> service_;
};

TEST_F(EmbeddingsTest, TheQueueIsBounded) {
  ServiceOptions options;
  options.scheduler.most_waiting = 1;
  Start(options);
  std::vector<std::shared_ptr<FakeReply>> replies = {AskForOne(), AskForOne(), AskForOne()};
  WaitUntilBegun(2);
  const auto refused = AskForOne();
  refused->Wait();
  EXPECT_EQ(refused->status(), 429);
  EXPECT_EQ(refused->Header("Retry-After"), "1");
  engine_->released = true;
  for (const auto& reply : replies) {
    reply->Wait();
    EXPECT_EQ(reply->status(), 200) << reply->body();
  }
  const std::string metrics = Ask(*service_, "GET", "/metrics")->body();
  EXPECT_THAT(metrics, HasSubstr("\ninlay_embeddings_total 3\n"));
  EXPECT_THAT(metrics, HasSubstr("\ninlay_embeddings_refused_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("\ninlay_embeddings_failed_total 0\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("\ninlay_embedded_tokens_total 0\n")));
  EXPECT_THAT(metrics, HasSubstr("\ninlay_replies_total{status=\"4xx\"} 1\n"));
  const auto next = AskForOne();
  next->Wait();
  EXPECT_EQ(next->status(), 200) << "places are given back";
}

// Nothing is computed for a request one of whose texts is refused.
TEST_F(EmbeddingsTest, NamesTheInputThatIsRefused) {
  Start();
  const auto refused = [&](const std::string& input, const char* message) {
    const auto reply =
        Ask(*service_, "POST", "/v1/embeddings", "{\"model\": \"m\", \"input\": " + input + "}");
    reply->Wait();
    EXPECT_EQ(reply->status(), 400);
    EXPECT_THAT(reply->Json()["error"]["message"].get<std::string>(), HasSubstr(message));
  };
  refused("[[1, 2], [1, 1000000]]", "input[1]: there is no token 1000000");
  std::string tokens = "1";
  for (size_t i = 0; i < engine_->info().context_length; ++i) tokens += ", 1";
  refused("[[1], [1], [" + tokens + "]]", "input[2]: ");
  EXPECT_EQ(engine_->begun, 0u);
}

TEST_F(EmbeddingsTest, ADeadlineEndsThem) {
  ServiceOptions options;
  options.deadline = absl::Milliseconds(20);
  Start(options);
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 4; ++i) replies.push_back(AskForOne());  // two of them wait
  for (const auto& reply : replies) {
    reply->Wait();
    EXPECT_EQ(reply->status(), 504) << reply->body();
    EXPECT_EQ(reply->Header("x-should-retry"), "false");
  }
}

TEST_F(EmbeddingsTest, DrainLetsThemEnd) {
  Start();
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 4; ++i) replies.push_back(AskForOne());
  WaitUntilBegun(2);
  std::thread drain([this] { service_->Drain(absl::InfiniteDuration()); });
  // Until it drains, a request waits with the others.
  EXPECT_TRUE(WaitUntil([&] {
    const auto late = AskForOne();
    if (!late->finished()) {
      replies.push_back(late);
      return false;
    }
    EXPECT_EQ(late->status(), 503);
    return true;
  }));
  engine_->released = true;
  drain.join();
  for (const auto& reply : replies) {
    ASSERT_TRUE(reply->finished());
    EXPECT_EQ(reply->status(), 200) << reply->body();
  }
}

TEST_F(EmbeddingsTest, DrainWithoutTimeEndsThemAsUnavailable) {
  Start();
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 4; ++i) replies.push_back(AskForOne());
  WaitUntilBegun(2);
  service_->Drain(absl::ZeroDuration());
  for (const auto& reply : replies) {
    ASSERT_TRUE(reply->finished());
    EXPECT_EQ(reply->status(), 503) << reply->body();
    EXPECT_THAT(reply->body(), HasSubstr("shutting down"));
  }
}

}  // namespace
}  // namespace inlay::serve

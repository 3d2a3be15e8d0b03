// What the operator of a server sees of it: its health, its figures, what it notes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "io/store/state_store_memory.h"
#include "nlohmann/json.hpp"
#include "serve/service/service.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class OperationTest : public ::testing::Test {
 protected:
  void Start(ServiceOptions options = {}) {
    options.model_name = "m";
    options.note = [this](absl::string_view sentence) {
      const std::lock_guard lock(mutex_);
      notes_.emplace_back(sentence);
    };
    service_ = Must(Service::Create(
        model_, ChatRenderer::CreateFrom(*model_.tokenizer, "{{ messages[0].content }}"), keys_,
        std::move(options)));
  }
  std::shared_ptr<FakeReply> Complete(const json& changes = json::object()) {
    json body = {{"prompt", "ROMEO:"}, {"max_tokens", 3}};
    body.update(changes);
    return Ask(*service_, "POST", "/v1/completions", body.dump());
  }
  std::string Metrics() { return Ask(*service_, "GET", "/metrics")->body(); }
  bool Shows(const std::string& sample) {
    return absl::StrContains(Metrics(), absl::StrCat("\n", sample, "\n"));
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  ApiKeys keys_;
  LoadedModel model_ = LoadBard();

 private:
  std::mutex mutex_;  // guards the next member
  std::vector<std::string> notes_;

 protected:
  std::unique_ptr<Service> service_;  // last: it uses all others
};

// A model of its own whose file a test may change.
class ChangedModelTest : public OperationTest {
 protected:
  ChangedModelTest() {
    std::filesystem::copy_file(kBardPath, path_);
    model_ = Must(LoadModel(path_, {.threads = 1}));
  }
  // As `touch` and programs that write to a file in place do.
  void Touch() {
    const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  void ExpectUnreadable() {
    const auto health = Ask(*service_, "GET", "/health");
    EXPECT_EQ(health->status(), 503);
    EXPECT_THAT(health->body(), HasSubstr("the server can no longer read its model"));
    EXPECT_TRUE(Shows("inlay_model_readable 0"));
    EXPECT_THAT(notes(), ElementsAre(absl::StrCat("every answer fails until the program is started "
                                                  "again: ",
                                                  path_, " has changed since it was opened")));
  }

  const TempFolder folder_;
  const std::string path_ = folder_.Path("model.gguf");
};

TEST_F(ChangedModelTest, AnAnswerThatFailsForItMakesTheServerUnhealthy) {
  ServiceOptions options;
  options.ping = absl::Hours(1);  // nothing looks at the file but the engine
  Start(options);
  Complete()->Wait();
  EXPECT_EQ(Ask(*service_, "GET", "/health")->status(), 200);
  EXPECT_TRUE(Shows("inlay_model_readable 1"));
  Touch();
  for (int i = 0; i < 2; ++i) {
    const auto reply = Complete();
    reply->Wait();
    EXPECT_EQ(reply->status(), 503);
    EXPECT_EQ(reply->Header("Retry-After"), "1") << "another server may answer";
    EXPECT_THAT(reply->body(), HasSubstr("the server can no longer read its model"));
    EXPECT_THAT(reply->body(), Not(HasSubstr("gguf")));
  }
  const auto stream = Complete({{"stream", true}});
  stream->Wait();
  EXPECT_THAT(stream->body(), HasSubstr("the server can no longer read its model"));
  EXPECT_THAT(stream->body(), Not(HasSubstr("gguf")));
  ExpectUnreadable();
}

TEST_F(ChangedModelTest, IsNoticedWithoutARequest) {
  ServiceOptions options;
  options.ping = absl::Milliseconds(3);
  Start(options);
  EXPECT_EQ(Ask(*service_, "GET", "/health")->status(), 200);
  Touch();
  EXPECT_TRUE(WaitUntil([&] { return Ask(*service_, "GET", "/health")->status() == 503; }));
  ExpectUnreadable();
}

TEST_F(OperationTest, RefusalsCountAmongRepliesAndProbesDoNot) {
  Start();
  Complete()->Wait();
  Ask(*service_, "GET", "/v1/nowhere");
  service_->OnRefusal("r1", "/v1/completions", 401, "this server needs an API key");
  service_->OnRefusal("r2", "", 400, "the request is malformed");
  service_->OnRefusal("r3", "", 503, "the server has as many connections as it serves");
  for (const char* path : {"/health", "/metrics"}) {
    Ask(*service_, "GET", path);
    Ask(*service_, "POST", path);
    service_->OnRefusal("r4", path, 403, "the request's Host is unknown");
  }
  EXPECT_TRUE(Shows(R"(inlay_replies_total{status="2xx"} 1)"));
  EXPECT_TRUE(Shows(R"(inlay_replies_total{status="4xx"} 3)"));
  EXPECT_TRUE(Shows(R"(inlay_replies_total{status="5xx"} 1)"));
  EXPECT_THAT(notes(), ElementsAre("a request was refused (503): the server has as many "
                                   "connections as it serves"));
}

TEST_F(OperationTest, FiguresOfTheServerAndItsAnswers) {
  Start();
  Complete()->Wait();
  const std::string text = Metrics();
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\",model=\"m\",fingerprint=\"",
                                           service_->service_fingerprint(), "\"} 1\n")));
  const auto value = [&](absl::string_view name) {
    const size_t at = text.find(absl::StrCat("\n", name, " "));
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  };
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LE(value("process_start_time_seconds"), now);
  EXPECT_GT(value("process_start_time_seconds"), now - 86400);
  EXPECT_GT(value("process_resident_memory_bytes"), 1 << 20);
  for (const char* sample :
       {"inlay_draining 0", "inlay_model_readable 1", "inlay_key_reloads_failed_total 0",
        "inlay_queue_seconds_count 1", "inlay_answer_seconds_count 1"})
    EXPECT_TRUE(Shows(sample)) << sample;
  keys_.CountFailedReload();
  service_->Drain(absl::InfiniteDuration());
  EXPECT_TRUE(Shows("inlay_key_reloads_failed_total 1"));
  EXPECT_TRUE(Shows("inlay_draining 1"));
}

TEST_F(OperationTest, AnswersThatAreLateCountApart) {
  ServiceOptions options;
  options.deadline = absl::ZeroDuration();
  Start(options);
  const auto reply = Complete();
  reply->Wait();
  EXPECT_EQ(reply->status(), 504);
  EXPECT_TRUE(Shows("inlay_answers_timed_out_total 1"));
  EXPECT_TRUE(Shows("inlay_answers_failed_total 0"));
  EXPECT_TRUE(Shows("inlay_answer_seconds_count 0"));
}

TEST_F(OperationTest, SessionsInMemoryTakeAShareOfThatForConversations) {
  ServiceOptions options;
  options.scheduler.context = 256;
  options.scheduler.memory = size_t{8} << 20;
  Start(options);
  EXPECT_TRUE(Shows(absl::StrCat("inlay_session_memory_bytes ", 2 << 20)));
  EXPECT_TRUE(Shows("inlay_session_bytes 0"));
  const auto create = [&](size_t bytes) {
    const json body = {{"messages", {{{"role", "user"}, {"content", std::string(bytes, 'a')}}}}};
    const auto reply = Ask(*service_, "POST", "/v1/sessions", body.dump());
    reply->Wait();
    return reply;
  };
  EXPECT_EQ(create(100)->status(), 200);
  EXPECT_FALSE(Shows("inlay_session_bytes 0"));
  EXPECT_EQ(create(size_t{3} << 19)->status(), 200);
  EXPECT_EQ(create(size_t{3} << 19)->status(), 503) << "there is no room for the second";
  options.scheduler.memory = size_t{8} << 30;
  Start(options);
  EXPECT_TRUE(Shows(absl::StrCat("inlay_session_memory_bytes ", 1 << 30)));
}

TEST_F(OperationTest, AStoreOfSessionsThatCannotBeReachedShows) {
  class AbsentStore final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
      if (absent_) return absl::UnavailableError("connection refused");
      return ForwardingStore::List(prefix);
    }
    std::atomic<bool> absent_ = false;
  };
  const auto store = std::make_shared<AbsentStore>(std::make_shared<MemoryStore>());
  ServiceOptions options;
  options.sessions = store;
  Start(options);
  EXPECT_TRUE(Shows("inlay_sessions_up 1"));
  EXPECT_THAT(Metrics(), Not(HasSubstr("inlay_session_bytes")));
  for (const bool absent : {true, false}) {
    store->absent_ = absent;
    const auto list = Ask(*service_, "GET", "/v1/sessions");
    list->Wait();
    EXPECT_EQ(list->status(), absent ? 503 : 200);
    EXPECT_TRUE(Shows(absent ? "inlay_sessions_up 0" : "inlay_sessions_up 1"));
  }
}

}  // namespace
}  // namespace inlay::serve

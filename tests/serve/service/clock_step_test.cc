// The system's clock is set while answers are computed: that changes no deadline, no sign of life
// and no measured duration. The test replaces the C library's clock_gettime.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gemma_like/load_model.h"
#include "serve/service/api_keys.h"
#include "serve/service/service.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/wait_until.h"

namespace {

std::atomic<int64_t> clock_was_set_by = 0;  // seconds

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, id, time);
  if (id == CLOCK_REALTIME) time->tv_sec += clock_was_set_by;
  return static_cast<int>(result);
}

namespace inlay::serve {
namespace {

// More than are answered until a change of the clock is noticed: see SetClock.
constexpr int kRequests = 60;

class ClockStepTest : public ::testing::Test {
 protected:
  ClockStepTest() {
    ServiceOptions options;
    options.model_name = "bard";
    options.scheduler.context = 512;
    options.scheduler.memory = size_t{64} << 20;
    options.scheduler.most_running = 1;
    options.deadline = absl::Hours(12);  // far from a step, and from what a loaded machine takes
    options.ping = absl::Milliseconds(20);
    service_ = Must(Service::Create(model_, absl::UnimplementedError("no chats"), keys_, options));
    // The first of them is computed, the others wait.
    for (int i = 0; i < kRequests; ++i) {
      replies_.push_back(Ask(*service_, "POST", "/v1/completions",
                             "{\"prompt\": \"ROMEO:\", \"max_tokens\": 400, \"ignore_eos\": true, "
                             "\"stream\": true}"));
    }
    replies_[0]->WaitFor("data: ");
  }
  ~ClockStepTest() override { clock_was_set_by = 0; }

  // Returns once absl::Now() shows that, which reads the system's clock every two seconds only.
  void SetClock(absl::Duration by) {
    const absl::Time before = absl::Now();
    clock_was_set_by = absl::ToInt64Seconds(by);
    ASSERT_TRUE(WaitUntil([&] {
      return replies_.back()->finished() ||
             absl::AbsDuration(absl::Now() - before - by) < absl::Hours(1);
    }));
    ASSERT_FALSE(replies_.back()->finished()) << "the clock was set too late";
  }

  // The next ones to end do so as they should; the others end with the service.
  void ExpectComplete() {
    int looked_at = 0;
    for (const auto& reply : replies_) {
      if (reply->finished()) continue;
      reply->Wait();
      EXPECT_TRUE(absl::StrContains(reply->body(), "\"finish_reason\":\"length\""))
          << reply->body();
      if (++looked_at == 3) return;
    }
  }

  double Figure(const std::string& name) {
    const auto reply = Ask(*service_, "GET", "/metrics");
    double value = -1;
    const std::string body = reply->body();
    for (absl::string_view line : absl::StrSplit(body, '\n')) {
      if (!absl::ConsumePrefix(&line, name + " ")) continue;
      EXPECT_TRUE(absl::SimpleAtod(line, &value));
    }
    return value;
  }

  // Far below a step of the clock, and far above what a loaded machine takes.
  void ExpectDurationsAreRight() {
    for (const char* name : {"first_token", "between_tokens", "step"}) {
      const double sum = Figure(absl::StrCat("inlay_", name, "_seconds_sum"));
      EXPECT_GT(sum, 0) << name;
      EXPECT_LT(sum, absl::ToDoubleSeconds(absl::Hours(12))) << name;
    }
  }

  const LoadedModel model_ = Must(LoadModel("models/bard.gguf"));
  const ApiKeys keys_;
  std::unique_ptr<Service> service_;
  std::vector<std::shared_ptr<FakeReply>> replies_;
};

size_t Pings(FakeReply& reply) {
  const std::vector<std::string> parts = absl::StrSplit(reply.body(), ": ping");
  return parts.size() - 1;
}

TEST_F(ClockStepTest, NoAnswerIsLateByAStepForward) {
  SetClock(absl::Hours(24));
  ExpectComplete();
  ExpectDurationsAreRight();
}

TEST_F(ClockStepTest, SignsOfLifeGoOnAfterAStepBack) {
  SetClock(-absl::Hours(24));
  FakeReply& last = *replies_.back();
  const size_t before = Pings(last);
  EXPECT_TRUE(WaitUntil([&] { return last.finished() || Pings(last) >= before + 2; }));
  EXPECT_GE(Pings(last), before + 2);
  ExpectComplete();
  ExpectDurationsAreRight();
}

}  // namespace
}  // namespace inlay::serve

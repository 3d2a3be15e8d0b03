// A batch job with a handler that answers in any order, refuses and forgets.
#ifndef INLAY_TESTS_SERVE_BATCH_JOB_BATCH_JOB_FIXTURE_H_
#define INLAY_TESTS_SERVE_BATCH_JOB_BATCH_JOB_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/batch_job.h"
#include "serve/http/http_server.h"
#include "tests/temp_folder.h"

namespace inlay::serve {

inline constexpr size_t kRequests = 60;

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteAll(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string RequestLine(const std::string& id, const Json& body,
                               const std::string& url = "/v1/completions") {
  return DumpJson({{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}) + "\n";
}

// Replies to a request with what it is, after a while, from another thread, in any order.
class Handler {
 public:
  explicit Handler(unsigned seed) : random_(seed) {}
  ~Handler() {
    for (std::thread& thread : threads_) thread.join();
  }

  HttpHandler handler() {
    return [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      const std::lock_guard lock(mutex_);
      ++asked_[request.id];
      // The first time some are refused, and some are not replied to.
      const unsigned kind = asked_[request.id] > 1 ? 9 : random_() % 8;
      const auto wait = std::chrono::microseconds(random_() % 2000);
      threads_.emplace_back([kind, wait, request = std::move(request), reply = std::move(reply)] {
        std::this_thread::sleep_for(wait);
        if (kind == 0) return;
        if (kind == 1) return reply->Send(429, "", R"({"error":"full"})", {});
        const bool bad = request.body.find("bad") != std::string::npos;
        reply->Send(bad ? 400 : 200, "",
                    DumpJson({{"id", request.id}, {"path", request.path}, {"echo", request.body}}),
                    {});
      });
    };
  }
  size_t asked() {
    const std::lock_guard lock(mutex_);
    return asked_.size();
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::mt19937 random_;
  std::map<std::string, int> asked_;
  std::vector<std::thread> threads_;
};

class BatchJobTest : public testing::Test {
 protected:
  BatchJobTest() {
    std::string lines;
    for (size_t i = 0; i < kRequests; ++i) {
      lines += RequestLine(absl::StrCat("request ", i, i % 3 == 0 ? " \"é\"\n" : ""),
                           {{"prompt", i % 7 == 0 ? "bad" : "good"}, {"n", i}});
      if (i % 9 == 0) lines += " \r\n\n";
    }
    lines.pop_back();  // the last line may lack its newline
    WriteAll(input_, lines);
  }

  JobIdentity Identity(const RequestFile& requests) const {
    return {.input = requests.Content(),
            .weights = weights_,
            .instruction_set = "AVX9",
            .cache_type = "f16",
            .model = "m",
            .chat_template = "none",
            .defaults = "{}",
            .context = 100,
            .time = time_,
            .fingerprint = weights_ + "/AVX9"};
  }

  // Runs the job with a handler of this seed; `stop_after` results of this run end it.
  absl::StatusOr<BatchJobOutcome> Run(unsigned seed, const std::string& out, Shard shard = {},
                                      size_t stop_after = kRequests + 1, bool restart = false) {
    INLAY_ASSIGN_OR_RETURN(const RequestFile requests, RequestFile::Open(input_));
    Handler handler(seed);
    BatchJobOptions options{.out = out,
                            .shard = shard,
                            .mode = {.restart = restart, .retry_failed = retry_failed_},
                            .loop = {}};
    options.note = [this](absl::string_view sentence) { notes_.emplace_back(sentence); };
    size_t done = 0;
    options.loop.most_in_flight = 1 + seed % 16;
    options.loop.progress = [&](const JobProgress& job) { done = job.results - job.kept; };
    options.loop.stop = [&] { return done >= stop_after; };
    options.loop.sync = absl::Milliseconds(seed % 3);
    const auto outcome = RunBatchJob(requests, Identity(requests), handler.handler(), options);
    asked_ += handler.asked();
    return outcome;
  }

  void ExpectNothingElse(const std::set<std::string>& names) const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      found.insert(entry.path().filename());
    EXPECT_EQ(found, names);
  }

  const TempFolder folder_;
  const std::string input_ = folder_.Path("in"), out_ = folder_.Path("out");
  std::string weights_ = "f";
  int64_t time_ = 7;
  bool retry_failed_ = false;
  size_t asked_ = 0;                // of handlers, by all runs
  std::vector<std::string> notes_;  // by all runs
};

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_BATCH_JOB_BATCH_JOB_FIXTURE_H_

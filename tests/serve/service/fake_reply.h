// A reply that a test looks at, in place of one over HTTP.
#ifndef INLAY_TESTS_SERVE_SERVICE_FAKE_REPLY_H_
#define INLAY_TESTS_SERVE_SERVICE_FAKE_REPLY_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "serve/http/http_server.h"
#include "serve/service/service.h"
#include "tests/wait_until.h"

namespace inlay::serve {

class FakeReply final : public HttpReply {
 public:
  void Send(int status, absl::string_view content_type, std::string body,
            HttpHeaders headers) override {
    StartStream(status, content_type, std::move(headers));
    Write(std::move(body));
    Finish();
  }
  void StartStream(int status, absl::string_view, HttpHeaders headers) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(status_, 0) << "a reply starts once";
    status_ = status;
    headers_ = std::move(headers);
  }
  void Write(std::string piece) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(finished_);
    body_ += piece;
    changed_.notify_all();
  }
  void Finish() override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(finished_) << "a reply ends once";
    finished_ = true;
    changed_.notify_all();
  }
  void FailWithoutMemory() noexcept override {
    const std::lock_guard lock(mutex_);
    if (status_ == 0) status_ = 503;
    finished_ = true;
    changed_.notify_all();
  }
  void OnGone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(mutex_);
      gone_ = gone;
      if (!left_) return;
    }
    gone();
  }

  // The client closes the connection.
  void Leave() {
    std::function<void()> gone;
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
      gone = gone_;
    }
    if (gone) gone();
  }
  void Wait() { EXPECT_TRUE(Ends()) << "the reply does not end"; }
  // Waits for the end; false when it does not come.
  bool Ends() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongWait, [this] { return finished_; });
  }
  bool finished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  // Waits until this has been written.
  void WaitFor(absl::string_view text) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLongWait, [&] { return absl::StrContains(body_, text); }))
        << "no '" << text << "' in: " << body_;
  }
  int status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  std::string body() {
    const std::lock_guard lock(mutex_);
    return body_;
  }
  // The value of a header; "" where there is none.
  std::string Header(absl::string_view name) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, value] : headers_)
      if (absl::EqualsIgnoreCase(key, name)) return value;
    return "";
  }
  nlohmann::json Json() {
    nlohmann::json json = nlohmann::json::parse(body(), nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << body();
    return json;
  }
  // The data of server-sent events.
  std::vector<nlohmann::json> Events() {
    std::vector<nlohmann::json> events;
    const std::string all = body();
    for (absl::string_view event : absl::StrSplit(all, "\n\n", absl::SkipEmpty())) {
      if (absl::StartsWith(event, ":")) continue;
      EXPECT_TRUE(absl::ConsumePrefix(&event, "data: ")) << event;
      events.push_back(nlohmann::json::parse(event, nullptr, /*allow_exceptions=*/false));
    }
    return events;
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  int status_ = 0;
  HttpHeaders headers_;
  std::string body_;
  std::function<void()> gone_;
  bool left_ = false;
  bool finished_ = false;
};

// Sends a request, without waiting for its reply.
inline std::shared_ptr<FakeReply> Ask(Service& service, const std::string& method,
                                      const std::string& target, const std::string& body = "",
                                      const std::string& key = "") {
  auto reply = std::make_shared<FakeReply>();
  HttpRequest request;
  request.method = method;
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  request.body = body;
  if (!key.empty()) request.headers.emplace_back("Authorization", "Bearer " + key);
  service.Handle(std::move(request), reply);
  return reply;
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SERVICE_FAKE_REPLY_H_

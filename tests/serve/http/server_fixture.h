// A server for one test, and what its tests wait with.
#ifndef INLAY_TESTS_SERVE_HTTP_SERVER_FIXTURE_H_
#define INLAY_TESTS_SERVE_HTTP_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/http_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/wait_until.h"

namespace inlay::serve {

// Counts what happens on one thread, for another that waits for it.
class Counter {
 public:
  void Add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  // Whether the count has reached `count` before kLongWait was over.
  bool WaitFor(int count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongWait, [&] { return count_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  int count_ = 0;
};

// Replies with what the handler was given.
inline void Echo(HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
  reply->Send(200, "text/plain",
              request.method + " " + request.path + "?" + request.query + "\n" + request.body);
}

class ServerTest : public ::testing::Test {
 protected:
  void Start(HttpHandler handler, HttpOptions options = {}) {
    auto server = HttpServer::Start(std::move(options), std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Keeps each reply for the test to make: reply(i) is that to request i.
  void StartKeeping(HttpOptions options = {}) {
    Start(
        [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          {
            const std::lock_guard lock(mutex_);
            requests_.push_back(std::move(request));
            replies_.push_back(std::move(reply));
          }
          arrived_.Add();
        },
        std::move(options));
  }
  // Waits for request i.
  std::shared_ptr<HttpReply> reply(int i) {
    EXPECT_TRUE(arrived_.WaitFor(i + 1));
    const std::lock_guard lock(mutex_);
    return replies_.at(i);
  }
  HttpRequest request(int i) {
    EXPECT_TRUE(arrived_.WaitFor(i + 1));
    const std::lock_guard lock(mutex_);
    return requests_.at(i);
  }
  void DropReplies() {
    std::vector<std::shared_ptr<HttpReply>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(replies_);
  }

  uint16_t port() const { return server_->port(); }

  Counter arrived_;
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::vector<std::shared_ptr<HttpReply>> replies_;
  std::unique_ptr<HttpServer> server_;
};

inline constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

// A POST of JSON.
inline std::string Post(absl::string_view path, absl::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_HTTP_SERVER_FIXTURE_H_

// Many clients and many threads that reply, each of which ends when it likes.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

// Threads that make replies in random ways.
class Repliers {
 public:
  explicit Repliers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { Run(i); });
  }
  ~Repliers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void Add(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back(std::move(request), std::move(reply));
    changed_.notify_one();
  }

  std::atomic<int> begun = 0;  // replies with OnGone
  std::atomic<int> ended = 0;  // of these, finished or gone

 private:
  void Run(int seed) {
    std::mt19937 random(seed);
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      auto [request, reply] = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Make(random, request, *reply);
    }
  }

  void Make(std::mt19937& random, const HttpRequest& request, HttpReply& reply) {
    const auto is_gone = std::make_shared<std::atomic<int>>(0);
    if (random() % 2 == 0) {
      reply.OnGone([is_gone] { EXPECT_EQ(is_gone->fetch_add(1), 0); });
    }
    const std::string expected = absl::StrCat(request.path, request.body.size());
    switch (random() % 8) {
      case 0:
        return;  // dropped
      case 1:
        reply.StartStream(200, "text/plain");
        return;
      case 2:
      case 3:
        return reply.Send(200, "text/plain", expected);
      default:
        reply.StartStream(200, "text/plain");
        for (const char byte : expected) {
          reply.Write(std::string(1, byte));
          if (*is_gone > 0) return;
          if (random() % 8 == 0) std::this_thread::yield();
        }
        reply.Finish();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::deque<std::pair<HttpRequest, std::shared_ptr<HttpReply>>> jobs_;
  std::vector<std::thread> threads_;
};

// One connection: requests whose replies are read, or not, until it ends in some way.
void RunClient(std::mt19937& random, uint16_t port, std::atomic<int>& replies) {
  RawClient client(port, "127.0.0.1", random() % 4 == 0 ? 4096 : 0);
  if (!client.connected()) return;
  for (int requests = random() % 6; requests > 0; --requests) {
    const std::string path = absl::StrCat("/", random() % 100'000);
    const std::string body(random() % 4 == 0 ? random() % 50'000 : random() % 50, 'b');
    std::string request = Post(path, body);
    if (random() % 10 == 0) request.resize(random() % request.size());
    if (!client.Send(request)) return;
    switch (random() % 10) {
      case 0:
        return client.Close();
      case 1:
        return client.Reset();
      case 2:
        client.ShutdownSending();
        client.ReadToEnd();
        return;
      case 3:
        client.ReadHeader();
        return;
      default:
        break;
    }
    const RawReply reply = client.Read();
    if (reply.status != 200 || !reply.whole) return;
    EXPECT_EQ(reply.body, absl::StrCat(path, body.size()));
    ++replies;
  }
}

TEST(HttpRandomTest, EveryWholeReplyIsTheRightOne) {
  constexpr int kClients = 8;
  constexpr int kConnections = 60;  // of each
  std::atomic<int> replies = 0;
  for (int round = 0; round < 4; ++round) {
    Repliers repliers(3);
    HttpOptions options;
    options.threads = 3;
    options.most_connections = round % 2 == 0 ? 2048 : 5;
    // Requests that were cut short end by these.
    options.header_timeout = absl::Milliseconds(100);
    options.body_timeout = absl::Milliseconds(100);
    auto server =
        HttpServer::Start(options, [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          repliers.Add(std::move(request), std::move(reply));
        });
    ASSERT_TRUE(server.ok()) << server.status();
    const uint16_t port = (*server)->port();
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&, i] {
        std::mt19937 random(round * 100 + i);
        for (int n = 0; n < kConnections; ++n) RunClient(random, port, replies);
      });
    }
    if (round == 1) (*server)->Drain(absl::Milliseconds(300));
    if (round == 2) server->reset();
    for (std::thread& client : clients) client.join();
    if (round == 0) {
      EXPECT_TRUE(WaitUntil([&] { return (*server)->connections() == 0; }));
    }
  }
  std::printf("%d whole replies\n", replies.load());
  EXPECT_GT(replies, 0);  // how many depends on the times
}

}  // namespace
}  // namespace inlay::serve

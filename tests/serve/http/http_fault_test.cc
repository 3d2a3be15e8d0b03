// A server without memory or file descriptors: it refuses and recovers. And what a connection
// costs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http/http_server.h"
#include "tests/failing_memory.h"
#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;
using HttpFaultTest = ServerTest;

TEST_F(HttpFaultTest, AnIdleConnectionCostsLittle) {
  constexpr size_t kMost = 2048;  // bytes
  constexpr int kConnections = 400;
  Start(Echo);
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto add = [&] {
    clients.push_back(std::make_unique<RawClient>(port()));
    ASSERT_TRUE(clients.back()->Send(Post("/", std::string(100'000, 'x')) + "\r\n\r\n"));
    ASSERT_EQ(clients.back()->Read().status, 200);
  };
  clients.reserve(2 * kConnections);
  for (int i = 0; i < kConnections; ++i) add();
  const size_t before = failing_memory::held;
  for (int i = 0; i < kConnections; ++i) add();
  const size_t each = (failing_memory::held - before) / kConnections;
  std::printf("%zu bytes for each idle connection and its client here\n", each);
  EXPECT_LT(each, kMost);
}

// Sends requests of each kind; each is replied to, or its connection ends.
void Exercise(uint16_t port) {
  for (const std::string& request :
       {std::string(kGet) + kGet, Post("/stream", std::string(3000, 'x')),
        std::string("what\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")}) {
    RawClient client(port);
    if (!client.connected()) continue;
    client.Send(request);
    client.Read();
  }
}

TEST_F(HttpFaultTest, SurvivesEveryAllocationThatFails) {
  Start([](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (request.path != "/stream") return Echo(std::move(request), reply);
    reply->OnGone([] {});
    reply->StartStream(200, "text/plain");
    for (int i = 0; i < 5; ++i) reply->Write(std::string(200, 'x'));
    reply->Finish();
  });
  int survived = 0;
  int last = 0;  // that failed; how many there are depends on the threads' turns
  for (int n = 0; n < last + 20; ++n) {
    failing_memory::FailAfter(n, Fault::kOnce);
    try {
      Exercise(port());
    } catch (const std::bad_alloc&) {  // the client's, whose allocations count as well
    }
    failing_memory::Stop();
    if (failing_memory::has_failed) {
      last = n;
      ++survived;
    }
    ASSERT_EQ(Get(port(), "/").body, "GET /?\n") << "after allocation " << n;
  }
  std::printf("%d failures survived\n", survived);
  EXPECT_GT(survived, 50);
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
}

TEST_F(HttpFaultTest, SurvivesATimeWithoutAnyMemory) {
  Start(Echo);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(std::make_unique<RawClient>(port()));
    const std::string request = kGet;
    failing_memory::FailAfter(round * 7, Fault::kFromThenOn);
    for (const auto& client : clients) client->Send(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    failing_memory::Stop();
    clients.clear();
    ASSERT_EQ(Get(port(), "/").body, "GET /?\n");
    ASSERT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  }
}

// Also where the exception says so by the size that was asked for.
TEST_F(HttpFaultTest, AHandlerWithoutMemoryIsAnError) {
  Start([](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path == "/fails") return reply->FailWithoutMemory();
    if (request.path == "/throws") throw std::bad_alloc();
    if (request.path == "/too-long") throw std::length_error("a size");
    reply->StartStream(200, "text/plain");
    reply->Write("begun");
    reply->FailWithoutMemory();
  });
  for (const char* path : {"/fails", "/throws", "/too-long"}) {
    const RawReply reply = Get(port(), path);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_EQ(reply.Header("retry-after"), "1");
    EXPECT_EQ(reply.body, R"({"error":{"message":"there is not enough memory for the request"}})");
  }
  EXPECT_FALSE(Get(port(), "/begins").whole) << "a stream's connection ends";
}

// Takes all descriptors but so many of those that the limit leaves.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    int fd;
    while ((fd = dup(0)) >= 0) taken_.push_back(fd);
    for (; left > 0 && !taken_.empty(); --left) Release();
  }
  ~FewDescriptors() {
    while (!taken_.empty()) Release();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  void Release() {
    close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_ = {};
  std::vector<int> taken_;
};

TEST_F(HttpFaultTest, AwaitsDescriptorsWithoutSpinning) {
  Start(Echo);
  EXPECT_EQ(Get(port(), "/").status, 200);
  ASSERT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  FewDescriptors few(1);
  RawClient client(port());  // takes the last one
  ASSERT_TRUE(client.connected());
  client.Send(kGet);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(server_->connections(), 0u);
  const auto microseconds = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  EXPECT_LT(microseconds(after) - microseconds(before), 200'000);
  few.Release();
  EXPECT_EQ(client.Read().status, 200);
}

// A write to a client that has gone ends the connection, not the process.
TEST_F(HttpFaultTest, NoSignalEndsTheProcess) {
  signal(SIGPIPE, SIG_DFL);
  StartKeeping();
  for (int i = 0; i < 20; ++i) {
    RawClient client(port());
    client.Send(kGet);
    const auto stream = reply(i);
    stream->StartStream(200, "text/plain");
    std::thread close([&] { client.Close(); });
    for (int piece = 0; piece < 2000; ++piece) stream->Write("piece");
    close.join();
  }
  DropReplies();
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
}

}  // namespace
}  // namespace inlay::serve

// Replies that take their time: streams, clients that go away, servers that end.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using HttpStreamTest = ServerTest;

TEST_F(HttpStreamTest, PiecesArriveAsTheyAreWritten) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  const auto stream = reply(0);
  stream->StartStream(200, "text/event-stream");
  const RawReply header = client.ReadHeader();
  EXPECT_EQ(header.status, 200);
  EXPECT_EQ(header.Header("transfer-encoding"), "chunked");
  EXPECT_EQ(header.Header("cache-control"), "no-store");
  EXPECT_EQ(header.Header("content-type"), "text/event-stream");
  EXPECT_EQ(header.Header("content-length"), "");
  for (int i = 0; i < 10; ++i) {
    stream->Write(absl::StrCat("data: ", i, "\n\n"));
    EXPECT_TRUE(client.ReadUntil(absl::StrCat("9\r\ndata: ", i, "\n\n\r\n")));
  }
  stream->Write("last");
  stream->Finish();
  EXPECT_TRUE(client.ReadUntil("4\r\nlast\r\n0\r\n\r\n"));
  client.Send(kGet);
  reply(1)->Send(200, "text/plain", "again");
  EXPECT_EQ(client.Read().body, "again");
}

TEST_F(HttpStreamTest, ManyPiecesArriveInOrder) {
  constexpr int kPieces = 20'000;
  Start([](HttpRequest, std::shared_ptr<HttpReply> reply) {
    std::thread([reply = std::move(reply)] {
      reply->StartStream(200, "text/plain");
      for (int i = 0; i < kPieces; ++i) {
        reply->Write(absl::StrCat(i, ","));
        if (i % 1000 == 0) reply->Write("");  // as a chunk it would be the end
      }
      reply->Finish();
    }).detach();
  });
  std::string expected;
  for (int i = 0; i < kPieces; ++i) absl::StrAppend(&expected, i, ",");
  RawClient client(port());
  for (int round = 0; round < 3; ++round) {
    client.Send(kGet);
    const RawReply reply = client.Read();
    EXPECT_TRUE(reply.whole);
    ASSERT_TRUE(reply.body == expected);
  }
}

TEST_F(HttpStreamTest, EndWithTheConnectionForHttp10) {
  Start([](HttpRequest, std::shared_ptr<HttpReply> reply) {
    reply->StartStream(200, "text/plain");
    reply->Write("one ");
    reply->Write("two");
    reply->Finish();
  });
  for (const char* connection : {"", "Connection: keep-alive\r\n"}) {
    RawClient client(port());
    client.Send(absl::StrCat("GET / HTTP/1.0\r\nHost: localhost\r\n", connection, "\r\n"));
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.Header("transfer-encoding"), "");
    EXPECT_EQ(reply.Header("connection"), "close");
    EXPECT_EQ(reply.body, "one two");
  }
}

// How a client may go.
void CloseClient(RawClient& client) { client.Close(); }
void ResetClient(RawClient& client) { client.Reset(); }
void ShutdownClient(RawClient& client) { client.ShutdownSending(); }

TEST_F(HttpStreamTest, AClientThatGoesIsNoticed) {
  StartKeeping();
  int i = 0;
  for (const bool streaming : {false, true}) {
    for (const auto go : {CloseClient, ResetClient, ShutdownClient}) {
      for (const char* more : {"", "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"}) {
        RawClient client(port());
        client.Send(absl::StrCat(kGet, more));
        const auto kept = reply(i++);
        Counter gone;
        kept->OnGone([&] { gone.Add(); });
        if (streaming) {
          kept->StartStream(200, "text/plain");
          kept->Write("piece");
          ASSERT_TRUE(client.ReadUntil("piece"));
        }
        EXPECT_EQ(gone.count(), 0);
        go(client);
        ASSERT_TRUE(gone.WaitFor(1)) << i;
        EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
        // All this does nothing, and does not call again.
        if (!streaming) kept->StartStream(200, "text/plain");
        kept->Write("more");
        kept->Finish();
        EXPECT_EQ(gone.count(), 1);
      }
    }
  }
}

TEST_F(HttpStreamTest, AClientThatHasGoneIsToldAtOnce) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  const auto kept = reply(0);
  client.Close();
  ASSERT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  int calls = 0;
  kept->OnGone([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpStreamTest, AfterTheEndNobodyIsGone) {
  StartKeeping();
  int i = 0;
  for (const bool streaming : {false, true}) {
    RawClient client(port());
    client.Send(kGet);
    const auto kept = reply(i++);
    const auto held = std::make_shared<int>(0);
    kept->OnGone([held] { ++*held; });
    if (streaming) {
      kept->StartStream(200, "text/plain");
      kept->Finish();
    } else {
      kept->Send(200, "text/plain", "");
    }
    EXPECT_EQ(held.use_count(), 1);  // what it held is free
    EXPECT_EQ(client.Read().status, 200);
    kept->OnGone([held] { ++*held; });
    client.Close();
    ASSERT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
    kept->OnGone([held] { ++*held; });
    EXPECT_EQ(*held, 0);
  }
}

TEST_F(HttpStreamTest, AWholeReplyReachesAClientThatHasShutDownItsSide) {
  Start(Echo);
  for (int i = 0; i < 50; ++i) {
    RawClient client(port());
    client.Send(kGet);
    client.ShutdownSending();
    // The server may see the end before the reply is there: then it is gone. Else the reply is
    // whole.
    const std::string all = client.ReadToEnd();
    EXPECT_TRUE(all.empty() || absl::EndsWith(all, "\r\n\r\nGET /?\n")) << all;
  }
}

TEST_F(HttpStreamTest, TheFirstReplyCounts) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  reply(0)->Send(200, "text/plain", "first");
  reply(0)->Send(500, "text/plain", "second");
  reply(0)->StartStream(500, "text/plain");
  reply(0)->Write("third");
  reply(0)->Finish();
  EXPECT_EQ(client.Read().body, "first");
  client.Send(kGet);
  reply(0)->Send(500, "text/plain", "of an earlier request");
  reply(1)->Send(200, "text/plain", "fourth");
  EXPECT_EQ(client.Read().body, "fourth");
}

TEST_F(HttpStreamTest, AClientThatReadsTooSlowlyIsGone) {
  HttpOptions options;
  options.most_queued = 100'000;
  StartKeeping(options);
  RawClient client(port(), "127.0.0.1", /*receive_buffer=*/4096);
  client.Send(kGet);
  const auto kept = reply(0);
  Counter gone;
  kept->OnGone([&] { gone.Add(); });
  kept->StartStream(200, "text/plain");
  // More than the system holds for a connection.
  const std::string piece(100'000, 'x');
  for (int i = 0; i < 1000; ++i) kept->Write(piece);
  EXPECT_TRUE(gone.WaitFor(1));
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  EXPECT_FALSE(absl::StrContains(client.ReadToEnd(), "\r\n0\r\n\r\n"));
}

TEST_F(HttpStreamTest, AClientThatReadsNothingIsGone) {
  HttpOptions options;
  options.write_timeout = absl::Milliseconds(300);
  StartKeeping(options);
  for (const bool streaming : {false, true}) {
    RawClient client(port(), "127.0.0.1", /*receive_buffer=*/4096);
    client.Send(kGet);
    const auto kept = reply(streaming ? 1 : 0);
    Counter gone;
    kept->OnGone([&] { gone.Add(); });
    if (streaming) {
      kept->StartStream(200, "text/plain");
      kept->Write(std::string(20'000'000, 'x'));
      ASSERT_TRUE(gone.WaitFor(1));
    } else {
      kept->Send(200, "text/plain", std::string(20'000'000, 'x'));
    }
    EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
    EXPECT_EQ(gone.count(), streaming ? 1 : 0);
  }
}

TEST_F(HttpStreamTest, AStreamMayPauseForLongerThanItsTimes) {
  int requests = 0;
  // Within its time the server has to send what there is.
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(200), [&](absl::Duration time) {
    HttpOptions options;
    options.header_timeout = absl::Minutes(1);  // it ends with the header
    options.body_timeout = options.idle_timeout = options.write_timeout = time;
    StartKeeping(options);
    RawClient client(port());
    client.Send(kGet);
    const auto kept = reply(requests++);
    absl::SleepFor(2.5 * time);
    kept->StartStream(200, "text/plain");
    if (!client.ReadUntil("\r\n\r\n")) return false;
    absl::SleepFor(2.5 * time);
    kept->Write("here");
    kept->Finish();
    return client.ReadUntil("4\r\nhere\r\n0\r\n\r\n");
  }));
}

TEST_F(HttpStreamTest, ADroppedReplyIsAnError) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  EXPECT_TRUE(arrived_.WaitFor(1));
  DropReplies();
  const RawReply reply = client.Read();
  EXPECT_EQ(reply.status, 500);
  EXPECT_TRUE(absl::StrContains(reply.body, "dropped")) << reply.body;
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpStreamTest, ADroppedStreamEndsWithoutItsEnd) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  reply(0)->StartStream(200, "text/plain");
  reply(0)->Write("piece");
  ASSERT_TRUE(client.ReadUntil("piece\r\n"));
  DropReplies();
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpStreamTest, AHandlerMayThrow) {
  Start([](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path == "/late") reply->StartStream(200, "text/plain");
    if (request.path == "/long") throw std::length_error("too long");
    if (request.path == "/other") throw std::runtime_error("other");
    if (request.path != "/") throw std::bad_alloc();
    reply->Send(200, "text/plain", "well");
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(port(), "/early").status, 503);
    EXPECT_FALSE(Get(port(), "/late").whole);
    EXPECT_EQ(Get(port(), "/long").status, 503);
    EXPECT_EQ(Get(port(), "/other").status, 500);
    EXPECT_EQ(Get(port(), "/").body, "well");
  }
}

TEST_F(HttpStreamTest, RepliesOutliveTheServer) {
  StartKeeping();
  RawClient clients[3] = {RawClient(port()), RawClient(port()), RawClient(port())};
  Counter gone;
  for (int i = 0; i < 3; ++i) {
    clients[i].Send(kGet);
    const auto kept = reply(i);
    kept->OnGone([&] { gone.Add(); });
    if (i > 0) kept->StartStream(200, "text/plain");
    if (i > 1) kept->Write("piece");
  }
  server_.reset();
  EXPECT_EQ(gone.count(), 3);
  for (int i = 0; i < 3; ++i) {
    clients[i].ReadToEnd();
    if (i == 0) reply(i)->Send(200, "text/plain", "late");
    if (i > 0) reply(i)->Write("late");
    if (i > 1) reply(i)->Finish();
    int calls = 0;
    reply(i)->OnGone([&] { ++calls; });
    EXPECT_EQ(calls, 1);
  }
  DropReplies();
}

TEST_F(HttpStreamTest, TheServerEndsWhileOthersWrite) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> writers;
    std::mutex mutex;
    Counter started;
    Start([&](HttpRequest, std::shared_ptr<HttpReply> reply) {
      const std::lock_guard lock(mutex);
      writers.emplace_back([&, reply = std::move(reply)] {
        reply->StartStream(200, "text/plain");
        started.Add();
        while (!stop) {
          reply->Write("piece");
          std::this_thread::yield();
        }
      });
    });
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<RawClient>(port()));
      clients.back()->Send(kGet);
    }
    EXPECT_TRUE(started.WaitFor(4));
    server_.reset();
    stop = true;
    for (std::thread& writer : writers) writer.join();
  }
}

TEST_F(HttpStreamTest, DrainEndsIdleConnectionsAndAwaitsReplies) {
  StartKeeping();
  RawClient fresh(port()), idle(port()), waiting(port()), streaming(port());
  idle.Send(kGet);
  reply(0)->Send(200, "text/plain", "");
  EXPECT_EQ(idle.Read().status, 200);
  waiting.Send(kGet);
  const auto whole = reply(1);
  streaming.Send(absl::StrCat(kGet, kGet));  // the second one is not served any more
  const auto stream = reply(2);
  stream->StartStream(200, "text/plain");
  ASSERT_TRUE(streaming.ReadUntil("\r\n\r\n"));
  const uint16_t port_before = port();
  std::thread drain([&] { server_->Drain(absl::InfiniteDuration()); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(fresh.ReadToEnd(), "");
  EXPECT_TRUE(WaitUntil([&] { return !RawClient(port_before).connected(); }));
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 2; }));
  whole->Send(200, "text/plain", "whole");
  const RawReply reply_to_waiting = waiting.Read();
  EXPECT_EQ(reply_to_waiting.body, "whole");
  EXPECT_EQ(reply_to_waiting.Header("connection"), "close");
  stream->Write("piece");
  stream->Finish();
  EXPECT_EQ(streaming.ReadToEnd(), "5\r\npiece\r\n0\r\n\r\n");
  waiting.Close();
  streaming.Close();
  drain.join();
  EXPECT_EQ(server_->connections(), 0u);
  EXPECT_EQ(arrived_.count(), 3);
}

TEST_F(HttpStreamTest, DrainLetsARequestInItsBodyEnd) {
  Start(Echo);
  RawClient client(port());
  client.Send(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100) << "the header has been read";
  server_->Drain(absl::ZeroDuration());
  client.Send("{}");
  const RawReply reply = client.Read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.Header("connection"), "close");
  EXPECT_EQ(client.ReadToEnd(), "");
}

// Until its first bytes have been read the connection is idle. That nothing can tell: it gets more
// time until it is enough.
TEST_F(HttpStreamTest, DrainLetsARequestInItsHeaderEnd) {
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(10), [&](absl::Duration time) {
    HttpOptions options;
    options.header_timeout = absl::Hours(1);
    Start(Echo, options);
    RawClient client(port());
    client.Send("GET / HTTP/1.1\r\n");
    EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 1; }));
    absl::SleepFor(time);
    server_->Drain(absl::ZeroDuration());
    client.Send("Host: localhost\r\n\r\n");
    const RawReply reply = client.Read();
    EXPECT_EQ(client.ReadToEnd(), "");
    return reply.status == 200 && reply.Header("connection") == "close";
  }));
}

TEST_F(HttpStreamTest, DrainWaitsNoLongerThanItMay) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  const auto kept = reply(0);
  Counter gone;
  kept->OnGone([&] { gone.Add(); });
  server_->Drain(absl::Milliseconds(50));
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(gone.count(), 0);
  server_.reset();
  EXPECT_EQ(gone.count(), 1);
}

TEST_F(HttpStreamTest, OnGoneMayUseAndDropItsReply) {
  StartKeeping();
  RawClient client(port());
  client.Send(kGet);
  Counter gone;
  {
    auto kept = reply(0);
    DropReplies();
    kept->StartStream(200, "text/plain");
    HttpReply* const raw = kept.get();
    raw->OnGone([&gone, kept = std::move(kept)]() mutable {
      kept->Write("more");
      kept->Finish();
      kept.reset();
      gone.Add();
    });
  }
  ASSERT_TRUE(client.ReadUntil("\r\n\r\n"));
  client.Close();
  EXPECT_TRUE(gone.WaitFor(1));
}

}  // namespace
}  // namespace inlay::serve

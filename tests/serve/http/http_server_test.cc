#include "serve/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using HttpServerTest = ServerTest;

TEST_F(HttpServerTest, RepliesWithTheHeadersThatEveryReplyHas) {
  Start(Echo);
  const RawReply reply = Get(port(), "/a%20b?c=d&e");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /a b?c=d&e\n");
  EXPECT_TRUE(reply.whole);
  EXPECT_EQ(reply.Header("content-type"), "text/plain");
  EXPECT_EQ(reply.Header("content-length"), "15");
  EXPECT_EQ(reply.Header("cache-control"), "no-store");
  EXPECT_EQ(reply.Header("x-content-type-options"), "nosniff");
  EXPECT_EQ(reply.Header("x-request-id").size(), 32u);
  EXPECT_EQ(reply.Header("request-id"), reply.Header("x-request-id"));
  EXPECT_TRUE(absl::EndsWith(reply.Header("date"), " GMT"));
  EXPECT_EQ(reply.Header("access-control-allow-origin"), "");
}

TEST_F(HttpServerTest, KeepsTheConnection) {
  Start(Echo);
  RawClient client(port());
  for (int i = 0; i < 20; ++i) {
    const std::string body(i * 1000, 'x');
    ASSERT_TRUE(client.Send(Post("/", body)));
    const RawReply reply = client.Read();
    ASSERT_EQ(reply.body, "POST /?\n" + body);
    EXPECT_EQ(reply.Header("connection"), "keep-alive");
    EXPECT_EQ(server_->connections(), 1u);
  }
  client.Close();
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, EndsTheConnectionWhenTheClientAsks) {
  Start(Echo);
  for (const char* request : {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                              "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: x, Close\r\n\r\n",
                              "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"}) {
    RawClient client(port());
    client.Send(request);
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.status, 200) << request;
    EXPECT_EQ(reply.Header("connection"), "close") << request;
    EXPECT_EQ(client.ReadToEnd(), "");
  }
}

TEST_F(HttpServerTest, KeepsAnHttp10ConnectionWhenTheClientAsks) {
  Start(Echo);
  RawClient client(port());
  for (int i = 0; i < 2; ++i) {
    client.Send("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(client.Read().Header("connection"), "keep-alive");
  }
}

TEST_F(HttpServerTest, TakesOneRequestOfAPipelineAtATime) {
  std::atomic<int> in_progress = 0;
  std::atomic<bool> overlapped = false;
  Start([&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (in_progress.fetch_add(1) > 0) overlapped = true;
    std::thread([&, request = std::move(request), reply = std::move(reply)] {
      --in_progress;
      reply->Send(200, "text/plain", request.path + request.body);
    }).detach();
  });
  RawClient client(port());
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    // An empty line after a body, as some clients send it.
    absl::StrAppend(&requests, Post(absl::StrCat("/", i, "/"), std::string(i * 20, 'b')), "\r\n");
  }
  ASSERT_TRUE(client.Send(requests));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.Read().body, absl::StrCat("/", i, "/", std::string(i * 20, 'b')));
  }
  EXPECT_FALSE(overlapped);
}

TEST_F(HttpServerTest, ReadsRequestsThatComeByteByByte) {
  Start(Echo);
  RawClient client(port());
  const std::string request =
      "PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n3;a=b\r\n   \r\n0\r\nHost: evil\r\n\r\n";
  for (int round = 0; round < 2; ++round) {
    for (const char byte : request) ASSERT_TRUE(client.Send(std::string(1, byte)));
    EXPECT_EQ(client.Read().body, "PUT /x?\n{}   ");
  }
}

TEST_F(HttpServerTest, LeavesOutTrailers) {
  StartKeeping();
  RawClient client(port());
  client.Send(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: Chunked\r\n\r\n0\r\nAuthorization: me\r\n\r\n");
  EXPECT_EQ(request(0).Header("authorization"), "");
  EXPECT_EQ(request(0).body, "");
}

TEST_F(HttpServerTest, RepliesToHeadWithoutBody) {
  Start([](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    EXPECT_EQ(request.method, "GET");
    if (request.path == "/whole") return reply->Send(200, "text/plain", "12345");
    reply->StartStream(200, "text/plain");
    reply->Write("12345");
    reply->Finish();
  });
  RawClient client(port());
  for (const char* path : {"/whole", "/stream", "/whole"}) {
    client.Send(absl::StrCat("HEAD ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const RawReply reply = client.Read(/*to_head=*/true);
    EXPECT_EQ(reply.status, 200);
    const bool whole = std::string(path) == "/whole";
    EXPECT_EQ(reply.Header("content-length"), whole ? "5" : "");
    EXPECT_EQ(reply.Header("transfer-encoding"), whole ? "" : "chunked");
  }
}

TEST_F(HttpServerTest, SendsNoBodyWhereTheStatusHasNone) {
  Start([](HttpRequest, std::shared_ptr<HttpReply> reply) { reply->Send(204, "text/plain", "x"); });
  RawClient client(port());
  for (int i = 0; i < 2; ++i) {
    client.Send(kGet);
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.status, 204);
    EXPECT_EQ(reply.Header("content-length"), "");
  }
}

TEST_F(HttpServerTest, SaysContinueOnceTheHeaderIsChecked) {
  HttpOptions options;
  options.most_body = 10;
  Start(Echo, options);
  const std::string header =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: ";
  RawClient client(port());
  for (int i = 0; i < 2; ++i) {
    client.Send(header + "2\r\n\r\n");
    EXPECT_EQ(client.Read().status, 100);
    client.Send("{}");
    EXPECT_EQ(client.Read().body, "POST /?\n{}");
  }
  // A client that does not wait gets none.
  client.Send(header + "2\r\n\r\n{}");
  EXPECT_EQ(client.Read().status, 200);
  client.Send(header + "11\r\n\r\n");
  EXPECT_EQ(client.Read().status, 413);
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, NamesEachRequest) {
  StartKeeping();
  int i = 0;
  for (const auto& [sent, taken] : {std::pair<std::string, bool>{"", false},
                                    {"x-request-id: a.B_c-9\r\n", true},
                                    {"X-Request-Id: a b\r\n", false},
                                    {"X-Request-Id: <a>\r\n", false},
                                    {"X-Request-Id: " + std::string(129, 'a') + "\r\n", false}}) {
    RawClient client(port());
    client.Send("GET / HTTP/1.1\r\nHost: localhost\r\n" + sent + "\r\n");
    const std::string id = request(i).id;
    reply(i++)->Send(200, "text/plain", "");
    EXPECT_EQ(client.Read().Header("x-request-id"), id);
    EXPECT_EQ(id == "a.B_c-9", taken) << sent;
    EXPECT_EQ(id.size(), taken ? 7u : 32u);
  }
  EXPECT_NE(request(0).id, request(2).id);
}

TEST_F(HttpServerTest, SendsTheHandlersHeadersIfTheyAreValid) {
  Start([](HttpRequest, std::shared_ptr<HttpReply> reply) {
    reply->Send(200, "text/plain", "body",
                {{"Cache-Control", "max-age=5"},
                 {"Retry-After", "7"},
                 {"X-Bad", "a\r\nSet-Cookie: b"},
                 {"Bad Name", "c"},
                 {"X-Bad\r\nSet-Cookie", "d"}});
  });
  const RawReply reply = Get(port(), "/");
  EXPECT_EQ(reply.Header("cache-control"), "max-age=5");
  EXPECT_EQ(reply.Header("retry-after"), "7");
  EXPECT_EQ(reply.Header("x-bad"), "");
  EXPECT_EQ(reply.Header("bad name"), "");
  EXPECT_EQ(reply.Header("set-cookie"), "");
  EXPECT_EQ(reply.body, "body");
}

TEST_F(HttpServerTest, SendsWholeRepliesOfAnySize) {
  HttpOptions options;
  options.most_queued = 1000;
  const std::string body(20'000'000, 'x');
  Start([&](HttpRequest, std::shared_ptr<HttpReply> reply) { reply->Send(200, "a/b", body); },
        options);
  EXPECT_TRUE(Get(port(), "/").body == body);
}

TEST_F(HttpServerTest, AllowsPagesOfAllowedOriginsOnly) {
  HttpOptions options;
  options.allowed_origins = {"https://example.org"};
  Start(Echo, options);
  const std::string own = absl::StrCat("http://localhost:", port());
  const auto ask = [&](const std::string& method, const std::string& origin,
                       const std::string& more = "") {
    RawClient client(port());
    client.Send(absl::StrCat(method, " / HTTP/1.1\r\nHost: localhost:", port(),
                             "\r\nOrigin: ", origin, "\r\n", more, "\r\n"));
    return client.Read();
  };
  const std::string preflight =
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: content-type, x-api-key\r\n"
      "Access-Control-Request-Private-Network: true\r\n";
  for (const std::string& origin : {own, std::string("https://example.org")}) {
    const RawReply get = ask("GET", origin);
    EXPECT_EQ(get.status, 200) << origin;
    EXPECT_EQ(get.Header("access-control-allow-origin"), origin);
    EXPECT_EQ(get.Header("access-control-expose-headers"), "*");
    EXPECT_EQ(get.Header("vary"), "Origin");
    EXPECT_EQ(get.Header("access-control-allow-methods"), "");
    const RawReply options_reply = ask("OPTIONS", origin, preflight);
    EXPECT_EQ(options_reply.status, 204);
    EXPECT_EQ(options_reply.Header("access-control-allow-origin"), origin);
    EXPECT_TRUE(absl::StrContains(options_reply.Header("access-control-allow-methods"), "DELETE"));
    EXPECT_EQ(options_reply.Header("access-control-allow-headers"), "content-type, x-api-key");
    EXPECT_EQ(options_reply.Header("access-control-allow-private-network"), "true");
  }
  for (const char* origin :
       {"https://evil.example", "http://example.org", "null", "http://localhost",
        "https://example.org.evil.example", "https://example.org, x"}) {
    for (const char* method : {"GET", "OPTIONS"}) {
      const RawReply reply = ask(method, origin, preflight);
      EXPECT_EQ(reply.status, 403) << origin;
      EXPECT_EQ(reply.Header("access-control-allow-origin"), "");
      EXPECT_EQ(reply.Header("access-control-allow-methods"), "");
    }
  }
}

TEST_F(HttpServerTest, RepliesToOptionsItself) {
  Start([](HttpRequest, std::shared_ptr<HttpReply>) { ADD_FAILURE(); });
  RawClient client(port());
  for (const char* target : {"*", "/v1/models"}) {
    client.Send(absl::StrCat("OPTIONS ", target, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.status, 204) << target;
    EXPECT_EQ(reply.Header("allow"), "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    EXPECT_EQ(reply.Header("access-control-allow-methods"), "");
  }
}

TEST_F(HttpServerTest, ListensOnEveryAddressOfAName) {
  HttpOptions options;
  options.host = "localhost";
  Start(Echo, options);
  EXPECT_EQ(Get(port(), "/").status, 200);
  HttpOptions other;
  other.host = "127.0.0.1";
  other.port = port();
  const auto second = HttpServer::Start(other, Echo);
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_TRUE(
      absl::StrContains(second.status().message(),
                        absl::StrCat("127.0.0.1 port ", port(), ": Address already in use")))
      << second.status();
}

TEST_F(HttpServerTest, ListensOnIPv6) {
  HttpOptions options;
  options.host = "::1";
  auto server = HttpServer::Start(options, Echo);
  if (!server.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << server.status();
    GTEST_SKIP() << "this machine has no IPv6: " << server.status();
  }
  RawClient client((*server)->port(), "::1");
  client.Send("GET / HTTP/1.1\r\nHost: [::1]:1234\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(HttpServerTest, ListensOnAllAddresses) {
  HttpOptions options;
  options.host = "0.0.0.0";
  Start(Echo, options);
  RawClient client(port(), "127.0.0.2");
  client.Send("GET / HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(HttpServerTest, RefusesAddressesOfOtherMachines) {
  for (const char* host : {"192.0.2.1", "no.such.name.invalid", "", "127.0.0.1:80", "a b"}) {
    HttpOptions options;
    options.host = host;
    const auto server = HttpServer::Start(options, Echo);
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << host << ": " << server.status();
    EXPECT_TRUE(absl::StrContains(server.status().message(), host)) << server.status();
  }
}

TEST_F(HttpServerTest, StartsAgainOnThePortOfAServerThatHasEnded) {
  Start(Echo);
  HttpOptions options;
  options.port = port();
  RawClient client(port());
  client.Send(kGet);
  EXPECT_EQ(client.Read().status, 200);
  server_.reset();  // the server closes first: its side of the connection stays in TIME_WAIT
  EXPECT_EQ(client.ReadToEnd(), "");
  Start(Echo, options);
  EXPECT_EQ(Get(port(), "/").status, 200);
}

}  // namespace
}  // namespace inlay::serve

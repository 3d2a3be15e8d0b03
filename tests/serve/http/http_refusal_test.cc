// Requests that the server replies to with an error of its own, and clients that take too long.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using namespace std::string_literals;

class HttpRefusalTest : public ServerTest {
 protected:
  void StartEcho(HttpOptions options = {}) {
    Start(
        [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          ++handled_;
          Echo(std::move(request), reply);
        },
        std::move(options));
  }
  // Sends bytes and expects the server's own reply, after which it ends the connection.
  RawReply Refused(const std::string& bytes, int status) {
    const int handled = handled_;
    RawClient client(port());
    client.Send(bytes);
    RawReply reply = client.Read();
    EXPECT_EQ(reply.status, status) << absl::CHexEscape(bytes.substr(0, 200));
    EXPECT_EQ(reply.Header("connection"), "close");
    EXPECT_EQ(reply.Header("content-type"), "application/json");
    EXPECT_EQ(reply.Header("x-content-type-options"), "nosniff");
    EXPECT_NE(reply.Header("x-request-id"), "");
    EXPECT_TRUE(reply.whole);
    EXPECT_EQ(client.ReadToEnd(), "") << "a second reply to " << absl::CHexEscape(bytes);
    EXPECT_EQ(handled_, handled) << absl::CHexEscape(bytes);
    return reply;
  }

  std::atomic<int> handled_ = 0;
};

TEST_F(HttpRefusalTest, MalformedRequests) {
  StartEcho();
  const std::string json = "Content-Type: application/json\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n" + json;
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string next = "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const std::string& bytes : {
           "hello\r\n\r\n"s,
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s,  // TLS
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s,
           "GET / HTTP/1.2\r\nHost: localhost\r\n\r\n"s,
           "GET / HTTP/0.9\r\n\r\n"s,
           "GET /\r\n\r\n"s,
           "GET / HTTP/1.1\nHost: localhost\n\n"s,
           "GET / HTTP/1.1\r\n\r\n"s,  // without Host
           "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"s,
           "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: localhost\r\nA\0: b\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: localhost\r\nA: \0b\r\n\r\n"s,
           "GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET http://other.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /a/../b HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /a/%2e%2E/b HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           "GET /a#b HTTP/1.1\r\nHost: localhost\r\n\r\n"s,
           post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
           post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n" + next,
           post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} " + next,
           post + "Content-Length: 2, 3\r\n\r\n{} " + next,
           post + "Content-Length: -2\r\n\r\n",
           post + "Content-Length: +2\r\n\r\n{}",
           post + "Content-Length: 0x2\r\n\r\n{}",
           post + "Content-Length: 99999999999999999999999\r\n\r\n{}",
           post + "Content-Length:\r\n\r\n{}",
           "POST / HTTP/1.0\r\nHost: localhost\r\n" + json + "Transfer-Encoding: chunked\r\n\r\n" +
               "0\r\n\r\n" + next,
           chunked + "-1\r\n\r\n" + next,
           chunked + "0x2\r\n{}\r\n0\r\n\r\n" + next,
           chunked + "\r\n" + next,
           chunked + "2\r\n{}0\r\n\r\n" + next,
           chunked + "2\n{}\r\n0\r\n\r\n" + next,
           chunked + "fffffffffffffffff\r\n{}\r\n0\r\n\r\n" + next,
           chunked + "2;" + std::string(40'000, 'x') + "\r\n{}\r\n0\r\n\r\n",
           chunked + "0\r\nA: " + std::string(40'000, 'x') + "\r\n\r\n",
       }) {
    Refused(bytes, 400);
  }
}

TEST_F(HttpRefusalTest, TransferEncodingsThatAreNotKnown) {
  StartEcho();
  const std::string post =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const std::string next = "\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const char* encoding :
       {"gzip", "gzip, chunked", "chunked, identity", "xchunked", "identity"}) {
    Refused(absl::StrCat(post, "Transfer-Encoding: ", encoding, "\r\n", next), 501);
  }
}

TEST_F(HttpRefusalTest, MethodsThatAreNotKnown) {
  StartEcho();
  for (const char* method : {"PATCH", "TRACE", "CONNECT"}) {
    const RawReply reply =
        Refused(absl::StrCat(method, " / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
    EXPECT_TRUE(absl::StrContains(reply.Header("allow"), "POST"));
  }
  for (const char* method : {"BREW", "get", "X"}) {
    Refused(absl::StrCat(method, " / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 501);
  }
}

TEST_F(HttpRefusalTest, HostsOfOthers) {
  HttpOptions options;
  options.allowed_hosts = {"inlay.example"};
  StartEcho(options);
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "inlay.example.evil",
        "localhost@evil.example", "[::2", "10.0.0.256", "", "localhost:80:80", "localhost:x"}) {
    const RawReply reply = Refused(absl::StrCat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n"), 403);
    EXPECT_TRUE(absl::StrContains(reply.body, "Host")) << reply.body;
  }
  for (const char* host : {"localhost", "LocalHost:80", "127.0.0.1:8080", "127.3.2.1", "[::1]:80",
                           "inlay.example:443", "Inlay.Example.", "192.168.1.5:8080"}) {
    RawClient client(port());
    client.Send(absl::StrCat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    EXPECT_EQ(client.Read().status, 200) << host;
  }
  RawClient health_check(port());
  health_check.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(health_check.Read().status, 200);
}

TEST_F(HttpRefusalTest, BodiesThatAreNotJson) {
  StartEcho();
  const auto request = [](const std::string& method, const std::string& headers) {
    return absl::StrCat(method, " / HTTP/1.1\r\nHost: localhost\r\n", headers,
                        "Content-Length: 2\r\n\r\n{}");
  };
  for (const char* headers :
       {"", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: \r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"}) {
    for (const char* method : {"POST", "PUT", "DELETE"}) Refused(request(method, headers), 415);
  }
  for (const char* type : {"application/json", "Application/JSON ; charset=utf-8"}) {
    RawClient client(port());
    client.Send(request("POST", absl::StrCat("Content-Type: ", type, "\r\n")));
    EXPECT_EQ(client.Read().status, 200) << type;
  }
  // Where there is no body its type does not matter.
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
}

// What is wrong with the body of a request that is not let in nobody needs to know.
TEST_F(HttpRefusalTest, WhatAdmitsComesBeforeTheBodysType) {
  HttpOptions options;
  options.admit = [](const HttpRequest& request, bool) -> std::optional<Refusal> {
    if (request.path == "/here") return std::nullopt;
    return Refusal{404, "there is no such path"};
  };
  StartEcho(options);
  for (const auto& [path, status] : {std::pair("/here", 415), std::pair("/nowhere", 404)}) {
    Refused(absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                         "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"),
            status);
  }
}

TEST_F(HttpRefusalTest, ExpectationsThatAreNotKnown) {
  StartEcho();
  Refused("GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\n\r\n", 417);
}

TEST_F(HttpRefusalTest, HeadersThatAreTooLong) {
  HttpOptions options;
  options.most_header = 1000;
  StartEcho(options);
  const std::string start = "GET / HTTP/1.1\r\nHost: localhost\r\nA: ";
  const auto of_size = [&](size_t size) {
    return start + std::string(size - start.size() - 4, 'a') + "\r\n\r\n";
  };
  RawClient client(port());
  for (int i = 0; i < 2; ++i) {  // the limit is each request's
    client.Send(of_size(1000));
    EXPECT_EQ(client.Read().status, 200);
  }
  EXPECT_TRUE(absl::StrContains(Refused(of_size(1001), 431).body, "1000 bytes"));
  Refused(of_size(100'000), 431);
  Refused(start + std::string(5000, 'a'), 431);  // goes on for ever
  Refused("GET /" + std::string(5000, 'a'), 431);
  Refused(std::string(5000, 'G'), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 500; ++i) absl::StrAppend(&many, "A", i, ":b\r\n");
  Refused(many, 431);
  // Byte by byte, so that no single piece is too long.
  RawClient slow(port());
  for (int i = 0; i < 1100 && slow.Send(many.substr(i, 1)); ++i) {
  }
  EXPECT_EQ(slow.Read().status, 431);
}

TEST_F(HttpRefusalTest, BodiesThatAreTooLong) {
  HttpOptions options;
  options.most_body = 100'000;
  StartEcho(options);
  const std::string header =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  // Before any byte of it has come.
  const RawReply reply = Refused(header + "Content-Length: 100001\r\n\r\n", 413);
  EXPECT_TRUE(absl::StrContains(reply.body, "100000 bytes")) << reply.body;
  const std::string chunk = absl::StrFormat("%x\r\n%s\r\n", 1000, std::string(1000, 'x'));
  std::string chunks = header + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) chunks += chunk;
  RawClient client(port());
  client.Send(chunks + "0\r\n\r\n");
  EXPECT_EQ(client.Read().body.size(), 100'000 + 8u);
  Refused(chunks + "1\r\nx\r\n0\r\n\r\n", 413);
  Refused(header + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", 413);
}

TEST_F(HttpRefusalTest, AClientInTheMiddleOfItsUploadCanReadTheReply) {
  HttpOptions options;
  options.most_body = 1000;
  StartEcho(options);
  for (int i = 0; i < 10; ++i) {
    RawClient client(port());
    client.Send(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 5000000\r\n\r\n");
    EXPECT_TRUE(client.Send(std::string(5'000'000, 'x')));
    EXPECT_EQ(client.Read().status, 413);
  }
}

TEST_F(HttpRefusalTest, WhoIsNotAdmittedSendsNoBody) {
  HttpOptions options;
  options.admit = [](const HttpRequest& request, bool has_body) -> std::optional<Refusal> {
    EXPECT_EQ(request.method, request.Header("expected-method"));
    EXPECT_EQ(request.path + "?" + request.query, "/a?b");
    EXPECT_EQ(request.body, "");
    if (request.Header("key") == "right" || (request.Header("key") == "none" && !has_body))
      return std::nullopt;
    return Refusal{401, "there is no key"};
  };
  StartEcho(options);
  const auto head = [](const std::string& method, const std::string& headers,
                       const std::string& seen_as) {
    return absl::StrCat(method, " /a?b HTTP/1.1\r\nHost: localhost\r\nExpected-Method: ", seen_as,
                        "\r\n", headers, "\r\n");
  };
  const std::string json = "Content-Type: application/json\r\n";
  // Before any byte of the body has come, also where the client waits for a 100 Continue.
  for (const std::string& body : {json + "Content-Length: 30000000\r\n",
                                  json + "Content-Length: 9\r\nExpect: 100-continue\r\n",
                                  json + "Transfer-Encoding: chunked\r\n"}) {
    const RawReply reply = Refused(head("POST", body, "POST"), 401);
    EXPECT_EQ(reply.Header("www-authenticate"), "Bearer");
    EXPECT_TRUE(absl::StrContains(reply.body, "there is no key")) << reply.body;
    for (const char* method : {"GET", "OPTIONS"})
      Refused(head(method, "Key: none\r\n" + body, method), 401);
  }
  Refused(head("GET", "", "GET"), 401);
  for (const std::string& request :
       {head("GET", "Key: none\r\n", "GET"),
        head("POST", "Key: right\r\nContent-Length: 2\r\n" + json, "POST") + "{}"}) {
    RawClient client(port());
    client.Send(request);
    EXPECT_EQ(client.Read().status, 200);
  }
  RawClient to_head(port());
  to_head.Send(head("HEAD", "Key: none\r\n", "GET"));
  EXPECT_EQ(to_head.Read(/*to_head=*/true).status, 200);
  // Browsers ask so before they send a key.
  RawClient browser(port());
  browser.Send(head("OPTIONS", "", ""));
  EXPECT_EQ(browser.Read().status, 204);
}

TEST_F(HttpRefusalTest, BodiesOnTheirWayAreTooMuchTogether) {
  HttpOptions options;
  options.most_bodies = 1'500'000;
  StartEcho(options);
  const std::string large = Post("/", std::string(1'000'000, 'x'));
  const auto reply_to_another = [&] {
    RawClient client(port());
    client.Send(large);
    return client.Read();
  };
  RawReply refused;
  EXPECT_TRUE(WaitUntil([&] {
    RawClient slow(port());
    slow.Send(large.substr(0, large.size() - 1));
    // Refused once the server has read that one, or never where it had read another one first.
    refused = reply_to_another();
    for (int i = 0; i < 100 && refused.status == 200; ++i) refused = reply_to_another();
    EXPECT_EQ(Get(port(), "/").status, 200);
    slow.Send("x");
    return slow.Read().status == 200 && refused.status == 503;
  }));
  EXPECT_EQ(refused.Header("retry-after"), "1");
  EXPECT_EQ(refused.Header("connection"), "close");
  EXPECT_TRUE(absl::StrContains(refused.body, "1500000 bytes")) << refused.body;
  EXPECT_TRUE(WaitUntil([&] { return reply_to_another().status == 200; }));
}

TEST_F(HttpRefusalTest, BodiesThatTheHandlerKeepsAreTooMuchTogether) {
  HttpOptions options;
  options.most_bodies = 1'500'000;
  StartKeeping(options);
  const std::string large = Post("/", std::string(1'000'000, 'x'));
  RawClient first(port()), second(port()), third(port());
  first.Send(large);
  EXPECT_EQ(request(0).body.size(), 1'000'000u);
  second.Send(large);
  EXPECT_EQ(second.Read().status, 503);
  {
    const std::lock_guard lock(mutex_);
    requests_[0] = {};  // its reply is still to come
  }
  third.Send(large);
  EXPECT_EQ(request(1).body.size(), 1'000'000u);
}

TEST_F(HttpRefusalTest, ErrorsHaveTheBodyThatTheOptionsGiveThem) {
  HttpOptions options;
  options.error_body = [](absl::string_view path, int status, absl::string_view message) {
    return absl::StrCat(path, " ", status, " ", message.empty() ? "none" : "some");
  };
  StartEcho(options);
  EXPECT_EQ(Refused("GET /a%20b/c?d HTTP/1.1\r\nHost: x\r\n\r\n", 403).body, "/a b/c 403 some");
  EXPECT_EQ(Refused("BREW /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 501).body, "/a 501 some");
  EXPECT_EQ(Refused("GET /.. HTTP/1.1\r\nHost: localhost\r\n\r\n", 400).body, " 400 some");
  EXPECT_EQ(Refused("what?\r\n\r\n", 400).body, " 400 some");
}

TEST_F(HttpRefusalTest, EachErrorOfTheServersOwnIsToldBeforeItIsSent) {
  std::mutex mutex;
  std::vector<std::string> told;
  HttpOptions options;
  options.most_connections = 1;
  options.most_body = 1000;
  options.admit = [](const HttpRequest& request, bool) -> std::optional<Refusal> {
    if (request.path != "/kept") return std::nullopt;
    return Refusal{401, "there is no key"};
  };
  options.on_refusal = [&](absl::string_view, absl::string_view path, int status,
                           absl::string_view message) {
    const std::lock_guard lock(mutex);
    told.push_back(absl::StrCat(path, " ", status, message.empty() ? " none" : ""));
  };
  const auto handler = [this](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path == "/drop") return;
    if (request.path == "/hold") {
      const std::lock_guard lock(mutex_);
      replies_.push_back(reply);
      return arrived_.Add();
    }
    if (request.path == "/memory") return reply->FailWithoutMemory();
    Echo(std::move(request), reply);
  };
  const auto told_of = [&](const std::string& bytes) {
    std::vector<std::string> result;
    {
      RawClient client(port());
      client.Send(bytes);
      client.Read();
      const std::lock_guard lock(mutex);
      result.swap(told);
    }
    EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
    return result;
  };
  const auto expect = [&](const std::string& bytes, const std::string& what) {
    EXPECT_EQ(told_of(bytes), std::vector<std::string>{what}) << absl::CHexEscape(bytes);
  };
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(200), [&](absl::Duration time) {
    HttpOptions hasty = options;
    hasty.header_timeout = time;
    Start(handler, hasty);
    return told_of("GET /a") == std::vector<std::string>{" 408"};
  }));
  Start(handler, options);
  const std::string host = " HTTP/1.1\r\nHost: localhost\r\n";
  expect("what?\r\n\r\n", " 400");
  expect("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "/a 403");
  expect("GET /kept" + host + "\r\n", "/kept 401");
  expect("POST /a" + host + "Content-Length: 2\r\n\r\n{}", "/a 415");
  expect(Post("/a", std::string(2000, 'x')), " 413");
  expect("GET /drop" + host + "\r\n", "/drop 500");
  expect("GET /memory" + host + "\r\n", "/memory 503");
  RawClient busy(port());
  busy.Send("GET /hold" + host + "\r\n");
  ASSERT_TRUE(arrived_.WaitFor(1));
  EXPECT_EQ(RawClient(port()).Read().status, 503);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told, std::vector<std::string>{" 503"});
}

TEST_F(HttpRefusalTest, TheBodyOfAnErrorIsJsonWhateverTheClientSends) {
  StartEcho();
  EXPECT_EQ(Refused("GET / HTTP/1.1\r\nHost: a\"\xff\\\r\n\r\n", 403).body,
            R"({"error":{"message":"the request's Host, 'a\\\"\\xff\\\\', is neither localhost )"
            R"(nor an address nor a name that the server was given by --allow-host"}})");
}

TEST_F(HttpRefusalTest, TheClientsIdIsKept) {
  StartEcho();
  EXPECT_EQ(Refused("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n", 403)
                .Header("x-request-id"),
            "mine");
}

// Also where it takes the place of a handler's reply: the id shows what belongs together in a log.
TEST_F(HttpRefusalTest, EachErrorOfTheServersOwnIsToldWithTheIdOfItsReply) {
  std::mutex mutex;
  std::string told;
  HttpOptions options;
  options.on_refusal = [&](absl::string_view id, absl::string_view, int, absl::string_view) {
    const std::lock_guard lock(mutex);
    told = std::string(id);
  };
  Start([](HttpRequest,
           const std::shared_ptr<HttpReply>& reply) { return reply->FailWithoutMemory(); },
        options);
  const std::string get = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& bytes :
       {get + "X-Request-Id: mine\r\n\r\n", get + "\r\n",
        std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("what?\r\n\r\n")}) {
    RawClient client(port());
    client.Send(bytes);
    const std::string id = client.Read().Header("x-request-id");
    EXPECT_FALSE(id.empty());
    const std::lock_guard lock(mutex);
    EXPECT_EQ(told, id) << absl::CHexEscape(bytes);
  }
}

TEST_F(HttpRefusalTest, HeadersAndBodiesThatTakeTooLong) {
  // A byte now and then does not help.
  const auto is_refused_as_it_goes_on = [this](const std::string& bytes) {
    RawClient client(port());
    client.Send(bytes);
    EXPECT_TRUE(WaitUntil([&] {
      client.Send("a");
      return server_->connections() == 0;
    }));
    return client.Read().status == 408;
  };
  HttpOptions short_body;
  short_body.header_timeout = absl::Minutes(1);
  short_body.body_timeout = absl::Milliseconds(300);
  StartEcho(short_body);
  const std::string body =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 1000000\r\n\r\n";
  Refused(body, 408);
  EXPECT_TRUE(is_refused_as_it_goes_on(body));

  HttpOptions short_header;
  short_header.most_header = size_t{1} << 20;  // more than is sent
  short_header.body_timeout = absl::Minutes(1);
  const auto start = [&](absl::Duration header_timeout) {
    short_header.header_timeout = header_timeout;
    StartEcho(short_header);
  };
  const std::string header = "GET / HTTP/1.1\r\n";
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(200), [&](absl::Duration time) {
    start(time);
    RawClient client(port());
    client.Send(header);
    return client.Read().status == 408;
  }));
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(200), [&](absl::Duration time) {
    start(time);
    return is_refused_as_it_goes_on(header + "A: ");
  }));
  // A second request has its own time, from its first byte.
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(200), [&](absl::Duration time) {
    start(time);
    RawClient client(port());
    client.Send(kGet);
    if (client.Read().status != 200) return false;
    client.Send("GET");
    return client.Read().status == 408;
  }));
}

TEST_F(HttpRefusalTest, IdleConnectionsEndWithoutAReply) {
  HttpOptions short_header, short_idle;
  short_header.idle_timeout = short_idle.header_timeout = absl::Minutes(1);
  short_header.header_timeout = short_idle.idle_timeout = absl::Milliseconds(200);
  StartEcho(short_header);
  RawClient silent(port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  StartEcho(short_idle);
  RawClient client(port());
  client.Send(kGet);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
}

TEST_F(HttpRefusalTest, ConnectionsThatAreTooMany) {
  HttpOptions options;
  options.most_connections = 3;
  StartKeeping(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(kGet);
    reply(i);  // waits for a reply
  }
  for (int i = 0; i < 10; ++i) {
    RawClient client(port());
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.Header("retry-after"), "1");
    EXPECT_NE(reply.Header("x-request-id"), "");
    EXPECT_EQ(client.ReadToEnd(), "");
    EXPECT_EQ(server_->connections(), 3u);
  }
  clients.pop_back();
  ASSERT_TRUE(WaitUntil([&] { return server_->connections() == 2; }));
  RawClient client(port());
  client.Send(kGet);
  reply(3)->Send(200, "text/plain", "");
  EXPECT_EQ(client.Read().status, 200);
}

// Whoever keeps connections without using them keeps no others out, such as a check of the server's
// health.
TEST_F(HttpRefusalTest, TheConnectionThatIsIdleForLongestMakesRoom) {
  HttpOptions options;
  options.threads = 1;  // so that it has noted that a connection is idle before it accepts another
  options.most_connections = 3;
  options.header_timeout = options.idle_timeout = absl::Hours(1);
  StartEcho(options);
  const auto use = [](RawClient& client) {
    client.Send(kGet);
    EXPECT_EQ(client.Read().status, 200);
  };
  RawClient unused(port()), first(port()), second(port());
  use(second);
  use(first);
  use(second);
  EXPECT_EQ(Get(port(), "/").status, 200);
  EXPECT_EQ(first.ReadToEnd(), "");
  use(second);
  use(unused);
}

}  // namespace
}  // namespace inlay::serve

// The client against our own server, and against ones that break off.
#include "serve/http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/must.h"
#include "tests/serve/http/server_fixture.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

bool Never() { return false; }

class HttpClientTest : public ServerTest {
 protected:
  HttpAddress Address(const std::string& path = "") {
    return Must(HttpAddress::Parse(absl::StrCat("http://127.0.0.1:", port(), path)));
  }
  // The status and the body.
  std::string Ask(const HttpAddress& address, const ClientRequest& request) {
    std::string body;
    const auto status = SendRequest(
        address, request, [&](int, absl::string_view piece) { body += std::string(piece); }, Never);
    return status.ok() ? absl::StrCat(*status, " ", body) : std::string(status.status().message());
  }
};

TEST(HttpAddressTest, IsReadFromUrls) {
  const auto shown = [](absl::string_view url) {
    const auto address = HttpAddress::Parse(url);
    if (!address.ok()) return std::string(address.status().message());
    return absl::StrCat(address->host, " ", address->port, " ", address->path, " ",
                        address->Authority());
  };
  EXPECT_EQ(shown("http://localhost:8080"), "localhost 8080  localhost:8080");
  EXPECT_EQ(shown("HTTP://a.b/c/v1/"), "a.b 80 /c/v1 a.b");
  EXPECT_EQ(shown("http://[::1]:9/v1"), "::1 9 /v1 [::1]:9");
  EXPECT_EQ(shown("http://[::1]"), "::1 80  [::1]");
  EXPECT_THAT(shown("https://a"), HasSubstr("a proxy's business"));
  EXPECT_THAT(shown("localhost:8080"), HasSubstr("http://HOST[:PORT] is expected"));
  EXPECT_THAT(shown("ftp://a"), HasSubstr("http://HOST[:PORT] is expected"));
  EXPECT_THAT(shown("http://:80"), HasSubstr("no host"));
  EXPECT_THAT(shown("http://a:0"), HasSubstr("port"));
  EXPECT_THAT(shown("http://a:x"), HasSubstr("port"));
  EXPECT_THAT(shown("http://[::1"), HasSubstr("]"));
  EXPECT_THAT(shown("http://[::1]x"), HasSubstr("]"));
  EXPECT_THAT(shown("http://::1/v1"), HasSubstr("an address of IPv6 is written [::1]"));
  EXPECT_THAT(shown("http://me:secret@a"), HasSubstr("port"));
  EXPECT_THAT(shown("http://me@a"), HasSubstr("characters"));
  EXPECT_THAT(shown("http://a/b c"), HasSubstr("characters"));
  EXPECT_THAT(shown("http://a/\r\nX: y"), HasSubstr("characters"));
}

TEST_F(HttpClientTest, SendsAndReads) {
  Start(Echo);
  EXPECT_EQ(Ask(Address("/base/"), {.path = "/x"}), "200 GET /base/x?\n");
  const std::string body(300'000, 'x');
  EXPECT_EQ(Ask(Address(), {.method = "POST",
                            .path = "/",
                            .headers = {{"Content-Type", "application/json"}},
                            .body = body}),
            "200 POST /?\n" + body);
  EXPECT_THAT(Ask(Address(), {.method = "POST", .path = "/", .headers = {}, .body = "{}"}),
              HasSubstr("415 "));
}

TEST_F(HttpClientTest, HeadersArrive) {
  StartKeeping();
  std::thread client([&] {
    Ask(Address(), {.path = "/", .headers = {{"Authorization", "Bearer k"}}, .body = ""});
  });
  EXPECT_EQ(request(0).Header("authorization"), "Bearer k");
  reply(0)->Send(200, "text/plain", "");
  client.join();
}

TEST_F(HttpClientTest, PiecesComeWhenTheyAreWritten) {
  StartKeeping();
  Counter pieces;
  std::string all;
  std::thread client([&] {
    EXPECT_EQ(Must(SendRequest(
                  Address(), {.path = "/"},
                  [&](int status, absl::string_view piece) {
                    EXPECT_EQ(status, 202);
                    all += std::string(piece);
                    pieces.Add();
                  },
                  Never)),
              202);
  });
  const auto stream = reply(0);
  stream->StartStream(202, "text/plain");
  for (int i = 0; i < 3; ++i) {
    stream->Write("piece ");
    EXPECT_TRUE(pieces.WaitFor(i + 1));
  }
  stream->Finish();
  client.join();
  EXPECT_EQ(all, "piece piece piece ");
}

TEST_F(HttpClientTest, ACancelledRequestClosesTheConnection) {
  StartKeeping();
  std::atomic<bool> cancelled = false;
  Counter gone;
  absl::Status status;
  std::thread client([&] {
    status = SendRequest(
                 Address(), {.path = "/"}, [](int, absl::string_view) {},
                 [&] { return cancelled.load(); })
                 .status();
  });
  const auto stream = reply(0);
  stream->OnGone([&] { gone.Add(); });
  stream->StartStream(200, "text/plain");
  cancelled = true;
  EXPECT_TRUE(gone.WaitFor(1));
  client.join();
  EXPECT_TRUE(absl::IsCancelled(status));
}

// A server of one reply, which then closes.
std::string AskOneThatSays(const std::string& text) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::thread server([&] {
    const int client = accept(fd, nullptr, nullptr);
    char buffer[4096];
    EXPECT_GT(read(client, buffer, sizeof(buffer)), 0);
    EXPECT_EQ(write(client, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(client);
  });
  std::string body;
  const auto status = SendRequest(
      {.host = "127.0.0.1", .port = absl::StrCat(ntohs(address.sin_port)), .path = ""},
      {.path = "/"}, [&](int, absl::string_view piece) { body += std::string(piece); }, Never);
  server.join();
  close(fd);
  return absl::StrCat(status.ok() ? absl::StrCat(*status) : std::string(status.status().message()),
                      " ", body);
}

TEST(HttpClientAlone, RepliesThatBreakOff) {
  EXPECT_EQ(AskOneThatSays("HTTP/1.1 200 OK\r\n\r\nto the end"), "200 to the end");
  EXPECT_EQ(AskOneThatSays("HTTP/1.1 204 No Content\r\n\r\n"), "204 ");
  EXPECT_THAT(AskOneThatSays("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
              HasSubstr("ends too early"));
  EXPECT_THAT(AskOneThatSays("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort"),
              HasSubstr("ends too early"));
  EXPECT_THAT(AskOneThatSays("SSH-2.0-OpenSSH\r\n"), HasSubstr("no reply comes from the server"));
  EXPECT_THAT(AskOneThatSays(""), HasSubstr("no reply comes from the server at 127.0.0.1:"));
}

TEST(HttpClientAlone, NobodyAnswers) {
  const auto ask = [](const HttpAddress& address) {
    return SendRequest(
               address, {.path = "/"}, [](int, absl::string_view) {}, Never)
        .status();
  };
  const absl::Status refused = ask({.host = "127.0.0.1", .port = "1", .path = ""});
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(refused.message(), HasSubstr("cannot connect to the server at 127.0.0.1:1: "));
  EXPECT_THAT(ask({.host = "no.such.name.invalid", .port = "80", .path = ""}).message(),
              HasSubstr("no.such.name.invalid"));
}

}  // namespace
}  // namespace inlay::serve

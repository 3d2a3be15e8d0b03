#include "serve/http/http_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/serve/http/raw_client.h"

namespace inlay::serve {
namespace {

TEST(HttpServerTest, Replies) {
  auto server = HttpServer::Start({}, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    reply->Send(200, "text/plain", request.method + " " + request.path + " " + request.query);
  });
  ASSERT_TRUE(server.ok()) << server.status();
  const RawReply reply = Get((*server)->port(), "/a%20b?c=d");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /a b c=d");
  EXPECT_TRUE(reply.whole);
}

}  // namespace
}  // namespace inlay::serve

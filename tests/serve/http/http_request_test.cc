#include "gtest/gtest.h"
#include "serve/http/http_server.h"

namespace inlay::serve {
namespace {

TEST(HttpRequestTest, FindsHeadersInAnyCase) {
  const HttpRequest request{
      .method = "GET",
      .path = "/",
      .query = "",
      .headers = {{"Host", "localhost"}, {"X-Api-Key", "a"}, {"x-api-key", "b"}},
      .body = "",
      .id = ""};
  EXPECT_EQ(request.Header("host"), "localhost");
  EXPECT_EQ(request.Header("X-API-KEY"), "a");
  EXPECT_EQ(request.Header("Origin"), "");
}

}  // namespace
}  // namespace inlay::serve

// The files of the page that are not the page's own.
#include "serve/page/page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/serve/service/fake_reply.h"

namespace inlay::serve {
namespace {

TEST(Page, HasTheLicences) {
  for (const std::string name : {"LICENSE", "NOTICE"}) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/page/" + name;
    ASSERT_TRUE(IsPagePath(request.path));
    FakeReply reply;
    ReplyPage(request, reply);
    EXPECT_EQ(reply.status(), 200);
    std::ifstream file(name, std::ios::binary);
    EXPECT_EQ(reply.body(), std::string(std::istreambuf_iterator<char>(file), {}));
  }
  EXPECT_FALSE(IsPagePath("/NOTICE"));
  EXPECT_FALSE(IsPagePath("/page/CHANGELOG.md"));
}

}  // namespace
}  // namespace inlay::serve

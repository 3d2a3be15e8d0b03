// The service without a network: what a model that knows no chats is good for.
#include "serve/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"

namespace inlay::serve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ServiceTest, WithoutChatsCompletionsAreAnswered) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto service = Must(Service::Create(
      model, absl::InvalidArgumentError("this model knows no chats"), keys, {.model_name = "m"}));
  const auto ask = [&](const char* method, const char* path, const json& body) {
    const auto reply = Ask(*service, method, path, body.is_null() ? "" : body.dump());
    reply->Wait();
    return reply;
  };
  const auto completion =
      ask("POST", "/v1/completions", {{"prompt", "ROMEO:"}, {"max_tokens", 2}, {"model", "m"}});
  EXPECT_EQ(completion->status(), 200) << completion->body();
  const json chat = {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  for (const char* path : {"/v1/chat/completions", "/apply-template"}) {
    const auto refused = ask("POST", path, chat);
    EXPECT_EQ(refused->status(), 400) << path;
    EXPECT_THAT(refused->body(), HasSubstr("this model knows no chats"));
  }
  EXPECT_EQ(ask("GET", "/v1/sessions", nullptr)->status(), 400);
}

}  // namespace
}  // namespace inlay::serve

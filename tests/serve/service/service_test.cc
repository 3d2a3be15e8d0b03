// The service without a network: what a model that knows no chats is good for, and many clients at
// once.
#include "serve/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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
  ServiceOptions options;
  options.model_name = "m";
  const auto service = Must(Service::Create(
      model, absl::InvalidArgumentError("this model knows no chats"), keys, options));
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

// The text of a completion, streamed or whole.
std::string TextOf(FakeReply& reply, bool stream) {
  if (!stream) return reply.Json()["choices"][0]["text"];
  std::string text;
  for (const json& event : reply.Events()) {
    if (event.is_object() && !event["choices"].empty())
      text += event["choices"][0].value("text", "");
  }
  return text;
}

// Run with ThreadSanitizer by scripts/sanitize: clients stream, leave, and look at figures, while
// signs of life are sent and keys change.
TEST(ServiceTest, ClientsOfManyThreads) {
  const LoadedModel model = LoadBard();
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("key-of-one one\nkey-of-two two").ok());
  ServiceOptions options;
  options.model_name = "m";
  options.scheduler.context = 256;
  options.ping = absl::Milliseconds(3);
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
  const auto ask = [&](int question, bool stream, const std::string& key) {
    const json body = {{"prompt", absl::StrCat("Question ", question)},
                       {"max_tokens", 12},
                       {"seed", 7},
                       {"model", "m"},
                       {"stream", stream}};
    return Ask(*service, "POST", "/v1/completions", body.dump(), key);
  };
  std::vector<std::string> alone;
  for (int i = 0; i < 3; ++i) {
    const auto reply = ask(i, /*stream=*/false, "key-of-one");
    reply->Wait();
    alone.push_back(TextOf(*reply, /*stream=*/false));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const bool stream = (t + i) % 2 == 0, leaves = (t + i) % 5 == 0;
        const auto reply = ask(i % 3, stream, t % 2 == 0 ? "key-of-one" : "key-of-two");
        Ask(*service, "GET", "/metrics", "", "key-of-one")->Wait();
        if (leaves) reply->Leave();
        reply->Wait();
        if (!leaves) {
          EXPECT_EQ(TextOf(*reply, stream), alone[i % 3]) << reply->body();
        }
        EXPECT_TRUE(keys.Replace("key-of-one one\nkey-of-two two").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  service->Drain(absl::InfiniteDuration());
  EXPECT_EQ(Ask(*service, "GET", "/health")->status(), 503);
}

}  // namespace
}  // namespace inlay::serve

// Who is let in before a body is read, and what a request keeps while it waits.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "serve/service/api_keys.h"
#include "serve/service/service.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

TEST(AdmissionTest, WithoutAKeyOnlyWhatIsOpenAndNoBody) {
  const LoadedModel model = LoadBard();
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("key-of-one one").ok());
  ServiceOptions options;
  options.page = true;
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
  const auto refusal = [&](const char* method, const char* path, bool has_body,
                           const char* key = "") {
    const HttpRequest request{.method = method,
                              .path = path,
                              .query = "",
                              .headers = {{"Authorization", absl::StrCat("Bearer ", key)}},
                              .body = "",
                              .id = ""};
    return service->Admit(request, has_body);
  };
  for (const char* path : {"/health", "/"}) {
    EXPECT_FALSE(refusal("GET", path, false).has_value()) << path;
    EXPECT_TRUE(refusal("GET", path, true).has_value()) << path;
  }
  for (const char* path : {"/v1/completions", "/v1/models", "/health", "/nowhere"}) {
    const std::optional<Refusal> without = refusal("POST", path, true);
    ASSERT_TRUE(without.has_value()) << path;
    EXPECT_EQ(without->status, 401);
    EXPECT_EQ(without->message, "this server needs an API key");
    EXPECT_EQ(refusal("POST", path, false, "key-of-two")->message, "this API key is not known");
    EXPECT_FALSE(refusal("POST", path, false, "key-of-one").has_value()) << path;
    const std::optional<Refusal> with_body = refusal("POST", path, true, "key-of-one");
    EXPECT_EQ(with_body.has_value(), path == absl::string_view("/nowhere")) << path;
  }
  EXPECT_EQ(refusal("POST", "/nowhere", true, "key-of-one")->status, 404);
  EXPECT_EQ(refusal("POST", "/nowhere", true, "key-of-one")->message, "there is no /nowhere");
}

TEST(AdmissionTest, MetricsNeedAKeyUnlessTheyAreOpen) {
  const LoadedModel model = LoadBard();
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("key-of-one one").ok());
  for (const bool open : {false, true}) {
    ServiceOptions options;
    options.open_metrics = open;
    const auto service =
        Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
    const auto admitted = [&](const char* method, const char* path, bool has_body) {
      HttpRequest request;
      request.method = method;
      request.path = path;
      return !service->Admit(request, has_body).has_value();
    };
    EXPECT_EQ(admitted("GET", "/metrics", false), open);
    EXPECT_FALSE(admitted("GET", "/metrics", true));
    EXPECT_FALSE(admitted("POST", "/metrics", false));
    EXPECT_FALSE(admitted("GET", "/v1/models", false));
    for (const auto& [path, is_open] :
         {std::pair("/metrics", open), std::pair("/v1/models", false)}) {
      const auto reply = Ask(*service, "GET", path);
      reply->Wait();
      EXPECT_EQ(reply->status(), is_open ? 200 : 401) << path;
    }
  }
}

TEST(AdmissionTest, RequestsThatWaitKeepNothingThatIsRendered) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.scheduler.most_running = 1;
  options.scheduler.most_waiting = 8;
  const auto service = Must(Service::Create(
      model, ChatRenderer::CreateFrom(*model.tokenizer, "{{ messages[0].content }}"), keys,
      options));
  std::string list = "[0";
  for (int i = 0; i < 500'000; ++i) list += ",0";
  const std::string body = absl::StrCat(
      R"({"messages": [{"role": "user", "content": "hi"}], "ignore_eos": true, "stream": true,)",
      R"("chat_template_kwargs": {"list": )", list, "]}}");
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const size_t before = used();
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 4; ++i) {
    replies.push_back(Ask(*service, "POST", "/v1/chat/completions", body));
    ASSERT_TRUE(WaitUntil([&] { return replies.back()->status() != 0; }));
    EXPECT_EQ(replies.back()->status(), 200) << replies.back()->body();
  }
  // Each list takes 8 MB. (Memory of sanitizers is not in these figures.)
  EXPECT_LT(used(), before + (size_t{16} << 20));
  for (const auto& reply : replies) reply->Leave();
}

}  // namespace
}  // namespace inlay::serve

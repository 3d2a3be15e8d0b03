// A server of the demo model whose sessions are in a folder, as clients of /v1/sessions see it.
#ifndef INLAY_TESTS_SERVE_SERVICE_SESSION_ROUTES_FIXTURE_H_
#define INLAY_TESTS_SERVE_SERVICE_SESSION_ROUTES_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/chat/builtin_templates.h"
#include "gemma_like/load_model.h"
#include "io/store/state_store.h"
#include "io/store/state_store_file.h"
#include "nlohmann/json.hpp"
#include "serve/service/service.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"

namespace inlay::serve {

inline const LoadedModel& Model() {
  static const LoadedModel* const model = new LoadedModel(Must(LoadModel("models/bard.gguf")));
  return *model;
}

class SessionRoutesTest : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  SessionRoutesTest() { Start(); }

  void Start() {
    service_ = nullptr;
    ServiceOptions options;
    options.model_name = "bard";
    options.scheduler.context = context_;
    options.scheduler.memory = size_t{64} << 20;
    options.sessions = states_ != nullptr ? states_ : std::make_shared<FileStore>(folder_.path());
    if (!log_.empty()) options.answer_log = Must(AnswerLog::Open(log_));
    service_ = Must(Service::Create(
        Model(), Must(ChatRenderer::CreateFrom(*Model().tokenizer, template_)), keys_, options));
  }

  std::shared_ptr<FakeReply> Send(const std::string& method, const std::string& path,
                                  const std::string& body, const std::string& key = "") {
    const auto reply = Ask(*service_, method, path, body, key);
    reply->Wait();
    return reply;
  }
  // The reply's body, where its status is 200.
  json Ok(const std::string& method, const std::string& path, const json& body = json()) {
    const auto reply = Send(method, path, body.is_null() ? "" : body.dump());
    EXPECT_EQ(reply->status(), 200) << method << " " << path << " " << body << reply->body();
    return reply->Json();
  }
  json Post(const std::string& path, const json& body = json::object()) {
    return Ok("POST", absl::StrCat("/v1/sessions", path), body);
  }
  json Get(const std::string& path) { return Ok("GET", absl::StrCat("/v1/sessions", path)); }
  std::vector<int32_t> Tokens(const std::string& name) {
    return Get(absl::StrCat("/", name, "?tokens=1"))["tokens"].get<std::vector<int32_t>>();
  }
  void ExpectError(const std::string& method, const std::string& path, const std::string& body,
                   int status, const std::string& message, const std::string& key = "") {
    const auto reply = Send(method, absl::StrCat("/v1/sessions", path), body, key);
    EXPECT_EQ(reply->status(), status) << method << " " << path << " " << body;
    EXPECT_THAT(reply->Json()["error"]["message"].get<std::string>(),
                ::testing::HasSubstr(message));
  }
  // What the model answers to these tokens alone.
  std::string Alone(std::vector<int32_t> prompt, int seed, int most) {
    return Ok("POST", "/v1/completions",
              {{"prompt", std::move(prompt)},
               {"seed", seed},
               {"max_tokens", most}})["choices"][0]["text"];
  }

  const TempFolder folder_;
  std::shared_ptr<StateStore> states_;  // null: those in the folder
  std::string template_ = std::string(BuiltinTemplate(ChatTemplate::kChatMl));
  std::string log_;
  size_t context_ = 512;
  ApiKeys keys_;
  std::unique_ptr<Service> service_;
};

inline nlohmann::json Turn(uint64_t parent, const std::string& content, int seed = 1,
                           int most = 8) {
  return {{"parent", parent}, {"content", content}, {"seed", seed}, {"max_tokens", most}};
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SERVICE_SESSION_ROUTES_FIXTURE_H_

// A chat session with the demo model in this process, and its answers.
#ifndef INLAY_TESTS_TOOLS_SESSION_FIXTURE_H_
#define INLAY_TESTS_TOOLS_SESSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/load_model.h"
#include "gemma_like/sessions/chat_session.h"
#include "tests/must.h"

namespace inlay {

class Session : public testing::Test {
 protected:
  Session() : model_(*LoadModel("models/bard.gguf")) {}

  ChatSession Make(size_t context = 2048, std::shared_ptr<BlockPool> pool = nullptr,
                   std::vector<std::string> stop_texts = {}) {
    auto format = FixedChatFormat::Create(*model_.tokenizer, ChatTemplate::kNone);
    EXPECT_TRUE(format.ok()) << format.status();
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = 60;
    options.stop_texts = std::move(stop_texts);
    return Must(ChatSession::Create(
        *model_.engine, *model_.tokenizer,
        std::make_shared<const FixedChatFormat>(*std::move(format)),
        Must(model_.engine->CreateCache({.max_length = context, .pool = std::move(pool)})), "",
        options));
  }

  static std::string Say(ChatSession& session, const std::string& user) {
    auto result = session.Say(user, nullptr, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->text;
  }

  LoadedModel model_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_TOOLS_SESSION_FIXTURE_H_

// What the handles of the C API hold.
#ifndef INLAY_GEMMA_LIKE_C_API_HANDLES_H_
#define INLAY_GEMMA_LIKE_C_API_HANDLES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/kv_cache.h"
#include "gemma_like/c_api/target.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/inlay_c.h"
#include "gemma_like/load_model.h"

namespace inlay {

class ChatRenderer;

namespace c_api {

// What a model's handle and those of its conversations, answers and chats share.
class SharedModel {
 public:
  explicit SharedModel(LoadedModel model);
  ~SharedModel();

  const LoadedModel& loaded() const { return loaded_; }
  Engine& engine() const { return *loaded_.engine; }
  const Tokenizer& tokenizer() const { return *loaded_.tokenizer; }
  AnswerGrammars& grammars() { return grammars_; }

  // The model's chat template, read by the first call. The errors of ChatRenderer::Create.
  absl::StatusOr<const ChatRenderer*> Renderer();

 private:
  const TargetUse target_;
  const LoadedModel loaded_;
  AnswerGrammars grammars_;
  std::mutex mutex_;
  std::unique_ptr<const ChatRenderer> renderer_;
};

// A conversation, which an answer that is being generated shares with the caller's handle.
struct Conversation {
  explicit Conversation(std::unique_ptr<KVCache> of) : cache(std::move(of)) {}

  const std::unique_ptr<KVCache> cache;
  std::atomic<bool> in_use{false};
};

// The right to read or change a conversation's past, which one call or one answer has at a time.
// Everything that others do meanwhile is refused rather than undefined.
class Use {
 public:
  // FailedPrecondition when another has it.
  static absl::StatusOr<Use> Of(std::shared_ptr<Conversation> conversation) {
    if (conversation->in_use.exchange(true, std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          "the conversation is in use by another thread or by an answer that has not ended");
    }
    return Use(std::move(conversation));
  }
  Use(Use&&) noexcept = default;
  Use& operator=(Use&& other) noexcept {
    std::swap(conversation_, other.conversation_);
    return *this;
  }
  ~Use() {
    if (conversation_ != nullptr) conversation_->in_use.store(false, std::memory_order_release);
  }

  KVCache& cache() const { return *conversation_->cache; }

 private:
  explicit Use(std::shared_ptr<Conversation> conversation)
      : conversation_(std::move(conversation)) {}

  std::shared_ptr<Conversation> conversation_;
};

}  // namespace c_api
}  // namespace inlay

struct inlay_model {
  std::shared_ptr<inlay::c_api::SharedModel> shared;
};

struct inlay_cache {
  std::shared_ptr<inlay::c_api::SharedModel> shared;
  std::shared_ptr<inlay::c_api::Conversation> conversation;
};

#endif  // INLAY_GEMMA_LIKE_C_API_HANDLES_H_

#include "gemma_like/c_api/handles.h"

#include "base/status_macros.h"
#include "gemma_like/chat/chat_renderer.h"

namespace inlay::c_api {

SharedModel::SharedModel(LoadedModel model)
    : loaded_(std::move(model)), grammars_(*loaded_.tokenizer) {}

SharedModel::~SharedModel() = default;

absl::StatusOr<const ChatRenderer*> SharedModel::Renderer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (renderer_ == nullptr) {
    INLAY_ASSIGN_OR_RETURN(ChatRenderer created, ChatRenderer::Create(loaded_));
    renderer_ = std::make_unique<const ChatRenderer>(std::move(created));
  }
  return renderer_.get();
}

}  // namespace inlay::c_api

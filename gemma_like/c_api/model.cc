// Models of the C API: loading, what they are, and what belongs to no model.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/c_api/options.h"
#include "gemma_like/c_api/target.h"
#include "gemma_like/c_api/watch.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/fingerprint.h"
#include "gemma_like/inlay_c.h"
#include "gemma_like/load_model.h"
#include "gemma_like/registry.h"
#include "io/file/mapping_guard.h"

namespace inlay::c_api {
namespace {

absl::StatusOr<LoadedModel> Load(const char* path, const inlay_model_options* options) {
  INLAY_ASSIGN_OR_RETURN(const inlay_model_options o,
                         Complete("inlay_model_options", options,
                                  {sizeof(inlay_model_options), /*threads=*/0, /*check_tensors=*/0,
                                   /*max_batch=*/0}));
  constexpr int kMostThreads = 1024;
  if (o.threads < 0 || o.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", o.threads, ", outside 0 to ", kMostThreads));
  }
  EngineOptions engine;
  engine.threads = static_cast<size_t>(o.threads);
  if (o.max_batch != 0) engine.max_batch = o.max_batch;
  engine.check_tensors = o.check_tensors != 0;
  return LoadModel(path, engine);
}

std::string NotesOf(const LoadedModel& model) {
  std::vector<std::string> lines = model.notes;
  if (!model.ignored.empty()) lines.insert(lines.begin(), absl::StrCat("ignoring ", model.ignored));
  return absl::StrJoin(lines, "\n");
}

inlay_model_info InfoOf(const SharedModel& model) {
  const EngineInfo& info = model.engine().info();
  const Tokenizer& tokenizer = model.tokenizer();
  return {.size = sizeof(inlay_model_info),
          .vocabulary_size = info.vocab_size,
          .token_count = tokenizer.size(),
          .context_length = info.context_length,
          .embedding_dim = info.embedding_dim,
          .max_batch = info.max_batch,
          .layers = info.layers,
          .bos = tokenizer.bos().value_or(-1),
          .eos = tokenizer.eos().value_or(-1),
          .unknown = tokenizer.unk().value_or(-1),
          .adds_bos = tokenizer.adds_bos() ? 1 : 0,
          .has_template = HasChatTemplate(*model.loaded().file) ? 1 : 0,
          .config = info.config_name.data()};  // a literal
}

}  // namespace
}  // namespace inlay::c_api

using inlay::c_api::Call;
using inlay::c_api::CheckNotNull;

const char* inlay_last_error(void) { return inlay::c_api::LastError(); }

const char* inlay_version(void) { return INLAY_VERSION; }

int inlay_interface_version(void) { return 6; }

void inlay_guard_mapped_files(void) { inlay::GuardMappedFiles(); }

inlay_status inlay_set_target(const char* name) {
  return Call([&] { return inlay::c_api::SetTarget(name == nullptr ? "" : name); });
}

const char* inlay_config_name(size_t index) {
  const auto entries = inlay::ConfigEntries();
  return index < entries.size() ? entries[index].name.data() : nullptr;  // a literal
}

void inlay_set_poll(inlay_poll_callback callback, void* user) {
  inlay::c_api::SetPoll(callback, user);
}

inlay_status inlay_load_model(const char* path, const inlay_model_options* options,
                              inlay_model** model) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"path", path}, {"model", model}}));
    const inlay::c_api::TargetUse target;
    INLAY_ASSIGN_OR_RETURN(inlay::LoadedModel loaded, inlay::c_api::Load(path, options));
    *model = new inlay_model{std::make_shared<inlay::c_api::SharedModel>(std::move(loaded))};
    return absl::OkStatus();
  });
}

void inlay_free_model(inlay_model* model) { delete model; }

size_t inlay_vocabulary_size(const inlay_model* model) {
  return model == nullptr ? 0 : model->shared->engine().info().vocab_size;
}

inlay_status inlay_get_model_info(const inlay_model* model, inlay_model_info* info) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}}));
    return inlay::c_api::Fill("inlay_model_info", inlay::c_api::InfoOf(*model->shared), info);
  });
}

inlay_status inlay_model_notes(const inlay_model* model, char* text, size_t capacity,
                               size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"size", size}}));
    const std::string notes = inlay::c_api::NotesOf(model->shared->loaded());
    return inlay::c_api::CopyOutString(notes, text, capacity, size);
  });
}

inlay_status inlay_fingerprint(const inlay_model* model, int row_type, char* text, size_t capacity,
                               size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"size", size}}));
    INLAY_ASSIGN_OR_RETURN(const inlay::KvType type, inlay::c_api::RowTypeOf(row_type));
    INLAY_ASSIGN_OR_RETURN(const std::string fingerprint,
                           inlay::MakeFingerprint(model->shared->engine(), type));
    return inlay::c_api::CopyOutString(fingerprint, text, capacity, size);
  });
}

#include "gemma_like/load_model.h"

#include <utility>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/model/batch_check.h"
#include "gemma_like/model/check_tensors.h"
#include "gemma_like/model/ignored.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/model/metadata_check.h"
#include "gemma_like/registry.h"
#include "gemma_like/usable_cores.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "ops/team.h"

namespace inlay {
namespace {

absl::StatusOr<LoadedModel> Load(const std::string& path, EngineOptions options) {
  INLAY_RETURN_IF_ERROR(CheckMaxBatch(options.max_batch));
  if (options.threads == 0) options.threads = UsableCores();
  INLAY_ASSIGN_OR_RETURN(GgufFile opened, GgufFile::Open(path));
  LoadedModel model;
  model.file = std::make_shared<const GgufFile>(std::move(opened));
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry, FindConfig(*model.file));
  if (options.check_tensors) {
    const std::shared_ptr<Team> team =
        options.team != nullptr ? options.team : std::make_shared<Team>(options.threads);
    INLAY_RETURN_IF_ERROR(CheckTensors(*model.file, *team));
  }
  INLAY_RETURN_IF_ERROR(CheckMemory(path, entry->memory(*model.file, options).total()));
  INLAY_ASSIGN_OR_RETURN(model.engine, entry->load(model.file, options));
  INLAY_ASSIGN_OR_RETURN(model.tokenizer, LoadTokenizer(*model.file));
  model.ignored = FindIgnored(*model.file, *entry).ToString();
  model.notes = entry->compare(*model.file).notes;
  INLAY_RETURN_IF_ERROR(model.file->CheckWhole());  // all of it was read
  return model;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& path, const EngineOptions& options) {
  return OrOutOfMemory(path, [&] { return Load(path, options); });
}

}  // namespace inlay

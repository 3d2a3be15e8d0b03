// Models of a hub, for the C API.
#include <utility>

#include "base/status_macros.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/watch.h"
#include "gemma_like/inlay_c.h"
#include "io/download/pull_model.h"
#include "io/hub/environment.h"
#include "io/hub/hub_name.h"

namespace inlay::c_api {
namespace {

absl::StatusOr<PulledModel> Pull(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const HubName name, HubName::Parse(text));
  PullOptions options;
  INLAY_ASSIGN_OR_RETURN(options.access, HubAccessFromEnvironment());
  INLAY_ASSIGN_OR_RETURN(options.cache_folder, HubCacheFolder());
  Watch watch(/*model=*/nullptr);
  return PullModel(name, options, {.cancelled = [&] { return watch.Cancelled(); }});
}

}  // namespace
}  // namespace inlay::c_api

inlay_status inlay_pull(const char* name, char* path, size_t capacity, size_t* size) {
  return inlay::c_api::Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(inlay::c_api::CheckNotNull({{"name", name}, {"size", size}}));
    INLAY_ASSIGN_OR_RETURN(const inlay::PulledModel model, inlay::c_api::Pull(name));
    return inlay::c_api::CopyOutString(model.files.front(), path, capacity, size);
  });
}

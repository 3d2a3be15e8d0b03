#include "tools/pull.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/hub/environment.h"
#include "tools/flags/usage_error.h"
#include "tools/format.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace inlay {

absl::StatusOr<PulledModel> PullWithProgress(const HubName& name) {
  PullOptions options;
  INLAY_ASSIGN_OR_RETURN(options.access, HubAccessFromEnvironment());
  INLAY_ASSIGN_OR_RETURN(options.cache_folder, HubCacheFolder());
  std::optional<ProgressBar> bar;
  const PullObserver observer = {.note =
                                     [&](const std::string& sentence) {
                                       bar.reset();  // a line of its own
                                       WriteNote(absl::StrCat(sentence, "\n"));
                                     },
                                 .progress =
                                     [&](uint64_t done, uint64_t total) {
                                       if (!bar.has_value()) {
                                         bar.emplace(name.ToString(), total, ProgressUnit::kBytes);
                                         bar->SetDoneBefore(done);
                                       }
                                       bar->Update(done);
                                     }};
  return PullModel(name, options, observer);
}

absl::StatusOr<std::string> PullForCommand(const std::string& text) {
  static auto& pulled = *new std::map<std::string, std::string>;
  if (const auto found = pulled.find(text); found != pulled.end()) return found->second;
  INLAY_ASSIGN_OR_RETURN(const HubName name, AsUsageError(HubName::Parse(text)));
  INLAY_ASSIGN_OR_RETURN(const PulledModel model, PullWithProgress(name));
  if (model.transferred > 0)
    WriteNote(absl::StrCat("pulled ", name.ToString(), ", ", ByteCount(model.bytes), "\n"));
  pulled.emplace(text, model.files.front());
  return model.files.front();
}

}  // namespace inlay

#include "gemma_like/ranks/rank_load.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "cache/model_identity.h"

namespace inlay {
namespace {

// What a rank says of its share. All texts end with zeros.
struct Loaded {
  int32_t code = 0;  // of a status
  char message[500] = {};
  uint64_t weights_hash = 0;
  char config[64] = {};
  char instruction_set[32] = {};
};

template <size_t n>
void SetText(absl::string_view text, char (&to)[n]) {
  text.copy(to, n - 1);
}

Loaded Describe(const absl::StatusOr<LoadedModel>& model) {
  Loaded loaded;
  absl::Status status = model.status();
  if (status.ok()) {
    const absl::StatusOr<ModelIdentity> identity = model->engine->Identity();
    status = identity.status();
    if (status.ok()) {
      loaded.weights_hash = identity->weights_hash;
      SetText(identity->instruction_set, loaded.instruction_set);
    }
    SetText(model->engine->info().config_name, loaded.config);
  }
  loaded.code = static_cast<int32_t>(status.code());
  SetText(status.message(), loaded.message);
  return loaded;
}

// What rank r differs in from the first: "" if in nothing.
std::string Difference(const Loaded& first, const Loaded& other) {
  if (std::strcmp(first.config, other.config) != 0) {
    return absl::StrCat("a model of config ", other.config, ", not ", first.config);
  }
  if (first.weights_hash != other.weights_hash) {
    return Format("weights of the hash %016x, not %016x", other.weights_hash, first.weights_hash);
  }
  if (std::strcmp(first.instruction_set, other.instruction_set) != 0) {
    return absl::StrCat("the instruction set ", other.instruction_set, ", not ",
                        first.instruction_set, "; INLAY_TARGET makes all ranks use one");
  }
  return "";
}

absl::Status Compare(const std::string& path, absl::Span<const Loaded> all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].code == 0) continue;
    return absl::Status(static_cast<absl::StatusCode>(all[r].code),
                        r == 0 ? all[r].message : absl::StrCat("rank ", r, ": ", all[r].message));
  }
  for (size_t r = 1; r < all.size(); ++r) {
    const std::string difference = Difference(all[0], all[r]);
    if (difference.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, " at rank ", r, " gives ", difference, " as at rank 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedModel> LoadShare(const std::shared_ptr<Ranks>& ranks, const std::string& path,
                                      EngineOptions options, const ModelLoader& load) {
  options.ranks = ranks;
  options.hash_weights = true;
  absl::StatusOr<LoadedModel> model = load(path, options);
  std::vector<Loaded> all(ranks->count());
  all[ranks->rank()] = Describe(model);
  const std::vector<size_t> sizes(all.size(), sizeof(Loaded));
  ranks->Gather(sizes, reinterpret_cast<char*>(all.data()), Ranks::Deadline::kNone);
  const absl::Status same = Compare(path, all);
  if (!same.ok()) return same;
  return model;
}

}  // namespace inlay

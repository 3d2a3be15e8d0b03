#include "gemma_like/model/ignored.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "io/gguf/gguf.h"

namespace inlay {

int64_t DraftBlocks(const GgufFile& file) {
  // More than any model has: a file that says so is refused by its number of blocks.
  constexpr uint64_t kMost = 64;
  const auto architecture = file.GetString("general.architecture");
  if (!architecture.ok()) return 0;
  const auto blocks = file.GetUint(absl::StrCat(*architecture, ".nextn_predict_layers"));
  return blocks.ok() ? static_cast<int64_t>(std::min(*blocks, kMost)) : 0;
}

IgnoredNames::IgnoredNames(const GgufFile& file)
    : prefixes_{{"v.", "vision"},  {"model.vision_tower.", "vision"},
                {"a.", "audio"},   {"mm.a.", "audio"},
                {"mm.", "vision"}, {"mtp.", "multi-token prediction"}} {
  const int64_t drafts = DraftBlocks(file);
  if (drafts == 0) return;
  const auto blocks =
      file.GetUint(absl::StrCat(*file.GetString("general.architecture"), ".block_count"));
  for (int64_t i = 1; i <= drafts && blocks.ok() && *blocks >= static_cast<uint64_t>(i); ++i) {
    prefixes_.push_back(
        {absl::StrCat("blk.", *blocks - static_cast<uint64_t>(i), "."), "multi-token prediction"});
  }
}

const IgnoredNames::Prefix* IgnoredNames::Find(absl::string_view tensor_name) const {
  const auto found = std::find_if(prefixes_.begin(), prefixes_.end(), [&](const Prefix& prefix) {
    return absl::StartsWith(tensor_name, prefix.prefix);
  });
  return found == prefixes_.end() ? nullptr : &*found;
}

std::vector<IgnoredTensors> FindIgnoredTensors(const GgufFile& file) {
  const IgnoredNames names(file);
  std::vector<IgnoredTensors> found;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto* const prefix = names.Find(tensor.name);
    if (prefix == nullptr) continue;
    auto group = std::find_if(found.begin(), found.end(), [&](const IgnoredTensors& tensors) {
      return tensors.what == prefix->what;
    });
    if (group == found.end()) {
      found.push_back({.what = prefix->what, .prefixes = {}});
      group = found.end() - 1;
    }
    if (std::find(group->prefixes.begin(), group->prefixes.end(), prefix->prefix) ==
        group->prefixes.end()) {
      group->prefixes.push_back(prefix->prefix);
    }
    ++group->count;
    group->bytes += tensor.data.size();
  }
  return found;
}

std::string Ignored::ToString() const {
  std::vector<std::string> parts;
  for (const IgnoredTensors& group : tensors) {
    parts.push_back(absl::StrCat(Plural(group.count, "tensor"), " of ", group.what, " (",
                                 absl::StrJoin(group.prefixes, ", "), ")"));
  }
  for (const std::string& key : keys) parts.push_back(absl::StrCat("the key ", key));
  if (parts.size() < 2) return absl::StrJoin(parts, "");
  const std::string last = parts.back();
  parts.pop_back();
  return absl::StrCat(absl::StrJoin(parts, ", "), " and ", last);
}

}  // namespace inlay

#include "gemma_like/model/ignored.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "io/gguf/gguf.h"

namespace inlay {
namespace {

// The longer prefix first where one begins with another.
struct Prefix {
  absl::string_view prefix;
  absl::string_view what;
};
constexpr Prefix kPrefixes[] = {
    {"v.", "vision"},  {"model.vision_tower.", "vision"},  {"a.", "audio"}, {"mm.a.", "audio"},
    {"mm.", "vision"}, {"mtp.", "multi-token prediction"},
};

const Prefix* FindPrefix(absl::string_view tensor_name) {
  const auto* const found = std::find_if(
      std::begin(kPrefixes), std::end(kPrefixes),
      [&](const Prefix& prefix) { return absl::StartsWith(tensor_name, prefix.prefix); });
  return found == std::end(kPrefixes) ? nullptr : found;
}

}  // namespace

bool IsIgnored(absl::string_view tensor_name) { return FindPrefix(tensor_name) != nullptr; }

std::vector<IgnoredTensors> FindIgnoredTensors(const GgufFile& file) {
  std::vector<IgnoredTensors> found;
  for (const GgufTensor& tensor : file.tensors()) {
    const Prefix* const prefix = FindPrefix(tensor.name);
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

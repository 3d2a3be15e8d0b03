#include "io/hub/repo_listing.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/hub/hub_name.h"
#include "io/json/parse_json.h"

namespace inlay {
namespace {

// The member of this name; null where there is none, or `json` is no object.
const Json* Member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

// Empty where it is no text.
std::string TextOf(const Json* json) {
  return json != nullptr && json->is_string() ? json->get<std::string>() : "";
}

std::optional<uint64_t> SizeOf(const Json* json) {
  if (json == nullptr || !json->is_number_unsigned()) return std::nullopt;
  return json->get<uint64_t>();
}

HubFile ReadSibling(std::string path, const Json& sibling) {
  HubFile file = {std::move(path), std::nullopt, ""};
  if (const Json* lfs = Member(sibling, "lfs"); lfs != nullptr && lfs->is_object()) {
    file.size = SizeOf(Member(*lfs, "size"));
    file.hash = TextOf(Member(*lfs, "sha256"));
    if (!IsHex(file.hash, 64)) file.hash.clear();
  } else {
    file.size = SizeOf(Member(sibling, "size"));
    file.hash = TextOf(Member(sibling, "blobId"));
    if (!IsHex(file.hash, 40)) file.hash.clear();
  }
  return file;
}

}  // namespace

absl::StatusOr<RepoListing> ParseRepoListing(absl::string_view who, absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const Json json,
                         ParseJson(absl::StrCat("the hub's reply for ", who), text));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the hub's reply for ", who, " ", why));
  };
  return OrOutOfMemory("a list of files", [&]() -> absl::StatusOr<RepoListing> {
    RepoListing listing;
    listing.commit = TextOf(Member(json, "sha"));
    if (!IsHex(listing.commit, 40)) return refuse("names no commit ('sha', 40 hexadecimal digits)");
    const Json* siblings = Member(json, "siblings");
    if (siblings == nullptr || !siblings->is_array()) return refuse("has no list 'siblings'");
    if (siblings->size() > kMostListedFiles)
      return refuse(absl::StrCat("lists more than ", kMostListedFiles, " files"));
    for (const Json& sibling : *siblings) {
      std::string path = TextOf(Member(sibling, "rfilename"));
      if (!absl::EndsWithIgnoreCase(path, ".gguf")) continue;
      INLAY_RETURN_IF_ERROR(CheckHubPath(path));
      listing.files.push_back(ReadSibling(std::move(path), sibling));
    }
    return listing;
  });
}

}  // namespace inlay

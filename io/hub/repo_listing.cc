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

std::optional<uint64_t> SizeOf(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  return json.get<uint64_t>();
}

HubFile ReadSibling(std::string path, const Json& sibling) {
  HubFile file = {std::move(path), std::nullopt, ""};
  if (const Json& lfs = JsonMember(sibling, "lfs"); lfs.is_object()) {
    file.size = SizeOf(JsonMember(lfs, "size"));
    file.hash = JsonString(JsonMember(lfs, "sha256"));
    if (!IsHex(file.hash, 64)) file.hash.clear();
  } else {
    file.size = SizeOf(JsonMember(sibling, "size"));
    file.hash = JsonString(JsonMember(sibling, "blobId"));
    if (!IsHex(file.hash, 40)) file.hash.clear();
  }
  return file;
}

}  // namespace

absl::StatusOr<RepoListing> ParseRepoListing(absl::string_view who, absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json,
                         ParseJson(absl::StrCat("the hub's reply for ", who), text));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the hub's reply for ", who, " ", why));
  };
  return OrOutOfMemory("a list of files", [&]() -> absl::StatusOr<RepoListing> {
    RepoListing listing;
    listing.commit = JsonString(JsonMember(*json, "sha"));
    if (!IsHex(listing.commit, 40)) return refuse("names no commit ('sha', 40 hexadecimal digits)");
    const Json& siblings = JsonMember(*json, "siblings");
    if (!siblings.is_array()) return refuse("has no list 'siblings'");
    if (siblings.size() > kMostListedFiles)
      return refuse(absl::StrCat("lists more than ", kMostListedFiles, " files"));
    for (const Json& sibling : siblings) {
      std::string path = JsonString(JsonMember(sibling, "rfilename"));
      if (!absl::EndsWithIgnoreCase(path, ".gguf")) continue;
      INLAY_RETURN_IF_ERROR(CheckHubPath(path));
      listing.files.push_back(ReadSibling(std::move(path), sibling));
    }
    return listing;
  });
}

}  // namespace inlay

#include "io/hub/environment.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/hub/small_file.h"

namespace inlay {
namespace {

constexpr size_t kLongestToken = 4096;  // bytes
constexpr size_t kLongestPath = 4096;   // bytes

// Empty where it is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first of the variables that is set; empty where none is.
std::string FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = Variable(name); !value.empty()) return value;
  }
  return "";
}

// The folder of Hugging Face's tools; empty where there is no $HOME.
std::string HuggingFaceFolder() {
  if (const std::string home = Variable("HF_HOME"); !home.empty()) return ExpandHome(home);
  if (const std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty())
    return absl::StrCat(ExpandHome(cache), "/huggingface");
  const std::string home = Variable("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.cache/huggingface");
}

absl::StatusOr<std::string> HubToken() {
  std::string token = FirstOf({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  std::string where = "$HF_TOKEN";
  if (token.empty()) {
    where = ExpandHome(Variable("HF_TOKEN_PATH"));
    if (where.empty() && !HuggingFaceFolder().empty())
      where = absl::StrCat(HuggingFaceFolder(), "/token");
    auto text = ReadSmallFile(where, kLongestToken);
    if (!text.ok()) return "";  // no token, as for most people
    token = *std::move(text);
  }
  token = std::string(absl::StripAsciiWhitespace(token));
  const bool is_word = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (is_word && token.size() <= kLongestToken) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("the token of ", where, " is not one word of visible ASCII characters"));
}

}  // namespace

std::string ExpandHome(absl::string_view path) {
  if (path != "~" && !absl::StartsWith(path, "~/")) return std::string(path);
  const std::string home = Variable("HOME");
  return home.empty() ? std::string(path) : absl::StrCat(home, path.substr(1));
}

absl::StatusOr<std::string> HubCacheFolder() {
  if (const std::string folder = FirstOf({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
      !folder.empty())
    return ExpandHome(folder);
  const std::string home = HuggingFaceFolder();
  if (!home.empty()) return absl::StrCat(home, "/hub");
  return absl::NotFoundError(
      "there is no folder for models: set HF_HUB_CACHE or HF_HOME, as HOME is not set");
}

absl::StatusOr<HubAccess> HubAccessFromEnvironment() {
  HubAccess access;
  if (const std::string endpoint = Variable("HF_ENDPOINT"); !endpoint.empty()) {
    if (!absl::StartsWithIgnoreCase(endpoint, "https://") &&
        !absl::StartsWithIgnoreCase(endpoint, "http://")) {
      return absl::InvalidArgumentError(
          absl::StrCat("HF_ENDPOINT is ", QuoteForMessage(endpoint),
                       ", which begins with neither https:// nor http://"));
    }
    access.endpoint =
        std::string(absl::string_view(endpoint).substr(0, endpoint.find_last_not_of('/') + 1));
  }
  INLAY_ASSIGN_OR_RETURN(access.token, HubToken());
  const std::string offline = absl::AsciiStrToLower(Variable("HF_HUB_OFFLINE"));
  access.offline = offline == "1" || offline == "on" || offline == "yes" || offline == "true";
  return access;
}

std::vector<std::string> OllamaFolders() {
  if (std::string folder = Variable("OLLAMA_MODELS"); !folder.empty()) return {std::move(folder)};
  std::vector<std::string> folders;
  if (const std::string home = Variable("HOME"); !home.empty())
    folders.push_back(absl::StrCat(home, "/.ollama/models"));
  folders.emplace_back("/usr/share/ollama/.ollama/models");
  return folders;
}

std::vector<std::string> LmStudioFolders() {
  const std::string home = Variable("HOME");
  if (home.empty()) return {};
  std::vector<std::string> folders;
  const auto add = [&](absl::string_view folder) {
    std::string models = absl::StrCat(absl::StripSuffix(folder, "/"), "/models");
    if (std::find(folders.begin(), folders.end(), models) == folders.end())
      folders.push_back(std::move(models));
  };
  const auto pointer = ReadSmallFile(absl::StrCat(home, "/.lmstudio-home-pointer"), kLongestPath);
  if (pointer.ok() && absl::StartsWith(*pointer, "/")) add(absl::StripAsciiWhitespace(*pointer));
  add(absl::StrCat(home, "/.lmstudio"));
  add(absl::StrCat(home, "/.cache/lm-studio"));
  return folders;
}

}  // namespace inlay

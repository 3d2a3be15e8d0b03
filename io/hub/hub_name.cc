#include "io/hub/hub_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace inlay {
namespace {

constexpr size_t kLongestHubName = 96;     // of a user or a repository, in bytes
constexpr size_t kMostHubComponents = 16;  // of a path in a repository
constexpr size_t kLongestComponent = 255;  // bytes; NAME_MAX of the file systems in use

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

bool IsHubNamePart(absl::string_view part) {
  if (part.empty() || part.size() > kLongestHubName) return false;
  if (!std::all_of(part.begin(), part.end(), IsNameCharacter)) return false;
  if (absl::StrContains(part, "--") || absl::StrContains(part, "..")) return false;
  const auto is_mark = [](char c) { return c == '-' || c == '.'; };
  return !is_mark(part.front()) && !is_mark(part.back());
}

bool IsQuantization(absl::string_view type) {
  return !type.empty() && absl::ascii_isalpha(static_cast<unsigned char>(type.front())) &&
         type.size() <= kLongestHubName && std::all_of(type.begin(), type.end(), IsNameCharacter);
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

absl::StatusOr<HubName> HubName::Parse(absl::string_view text) {
  HubName name;
  const size_t colon = text.find(':');
  const absl::string_view id = text.substr(0, colon);
  const std::vector<absl::string_view> parts = absl::StrSplit(id, '/');
  if (parts.size() != 2 || !IsHubNamePart(parts[0]) || !IsHubNamePart(parts[1])) {
    return absl::InvalidArgumentError(
        absl::StrCat(QuoteForMessage(text),
                     " is not the name of a model on a hub, USER/REPO or USER/REPO:TYPE"));
  }
  name.user = std::string(parts[0]);
  name.repo = std::string(parts[1]);
  if (colon == absl::string_view::npos) return name;
  name.type = std::string(text.substr(colon + 1));
  if (absl::EndsWith(name.type, ".gguf")) {
    INLAY_RETURN_IF_ERROR(CheckHubPath(name.type));
  } else if (!IsQuantization(name.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat(QuoteForMessage(name.type),
                     " is neither a quantization, as Q4_K_M, nor the name of a .gguf file"));
  }
  return name;
}

std::string HubName::Id() const { return absl::StrCat(user, "/", repo); }

std::string HubName::ToString() const {
  return type.empty() ? Id() : absl::StrCat(Id(), ":", type);
}

absl::Status CheckHubPath(absl::string_view path) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file name ", QuoteForMessage(path), " is refused: ", why));
  };
  if (!IsValidUtf8(path) || std::any_of(path.begin(), path.end(), IsControl))
    return refuse("it is not UTF-8 without control characters");
  if (absl::StrContains(path, '\\')) return refuse("it has a backslash");
  const std::vector<absl::string_view> components = absl::StrSplit(path, '/');
  if (components.size() > kMostHubComponents)
    return refuse(absl::StrCat("it has more than ", kMostHubComponents, " components"));
  for (const absl::string_view component : components) {
    if (component.empty() || component == "." || component == "..")
      return refuse("a component of it is empty, '.' or '..'");
    if (component.size() > kLongestComponent)
      return refuse(absl::StrCat("a component of it is longer than ", kLongestComponent, " bytes"));
  }
  return absl::OkStatus();
}

bool IsHex(absl::string_view text, size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace inlay

#include "io/hub/hub_name.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// What people copy: "USER/REPO[:FILE]" from the address of a page of the hub about a repository or
// a file, "https://huggingface.co/USER/REPO/blob/main/FILE". Other text stays as it is.
absl::StatusOr<std::string> WithoutAddress(absl::string_view text) {
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "https://");
  if (!absl::ConsumePrefix(&rest, "huggingface.co/") && !absl::ConsumePrefix(&rest, "hf.co/"))
    return std::string(text);
  rest = rest.substr(0, rest.find_first_of("?#"));
  absl::ConsumeSuffix(&rest, "/");
  // USER, REPO, "tree" and a revision, or USER, REPO, "blob", a revision and a path.
  const std::vector<std::string> parts = absl::StrSplit(rest, absl::MaxSplits('/', 4));
  if (parts.size() <= 2) return std::string(rest);
  const bool is_tree = parts.size() == 4 && parts[2] == "tree";
  const bool is_file = parts.size() == 5 && (parts[2] == "blob" || parts[2] == "resolve");
  if (!is_tree && !is_file) return std::string(rest);
  if (parts[3] != "main") {
    return absl::InvalidArgumentError(absl::StrCat(QuoteForMessage(text), " is of the revision ",
                                                   QuoteForMessage(parts[3]),
                                                   "; only those of main are pulled"));
  }
  return absl::StrCat(parts[0], "/", parts[1], is_file ? ":" : "", is_file ? parts[4] : "");
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

absl::StatusOr<HubName> HubName::Parse(absl::string_view text) {
  HubName name;
  INLAY_ASSIGN_OR_RETURN(const std::string plain, WithoutAddress(text));
  const size_t colon = plain.find(':');
  const absl::string_view id = absl::string_view(plain).substr(0, colon);
  const std::vector<absl::string_view> parts = absl::StrSplit(id, '/');
  if (parts.size() != 2 || !IsHubNamePart(parts[0]) || !IsHubNamePart(parts[1])) {
    return absl::InvalidArgumentError(
        absl::StrCat(QuoteForMessage(text),
                     " is not the name of a model on a hub, USER/REPO or USER/REPO:TYPE"));
  }
  name.user = std::string(parts[0]);
  name.repo = std::string(parts[1]);
  if (colon == std::string::npos) return name;
  name.type = plain.substr(colon + 1);
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

#include "serve/api/sealed_reasoning.h"

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kMark = "inlay1:";

}  // namespace

std::string SealReasoning(absl::string_view text) {
  return absl::StrCat(kMark, absl::Base64Escape(text));
}

std::optional<std::string> UnsealReasoning(absl::string_view sealed) {
  std::string text;
  if (!absl::ConsumePrefix(&sealed, kMark) || !absl::Base64Unescape(sealed, &text) ||
      !IsValidUtf8(text))
    return std::nullopt;
  return text;
}

}  // namespace inlay::serve

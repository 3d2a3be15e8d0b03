#include "io/gguf/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace inlay {
namespace {

constexpr absl::string_view kConvert = "download a GGUF file of the model, or convert it to one";

struct Beginning {
  absl::string_view bytes;
  absl::string_view what;
  absl::string_view advice;
};

constexpr std::array<Beginning, 7> kBeginnings = {{
    {"version https://git-lfs", "a Git LFS pointer, which only names the model file",
     "get the file itself with 'git lfs pull' or download it from its page"},
    {"PK\x03\x04", "a ZIP archive, as PyTorch writes checkpoints", kConvert},
    {"lmgg", "a file of the GGML format, which GGUF has replaced", kConvert},
    {"fmgg", "a file of the GGMF format, which GGUF has replaced", kConvert},
    {"tjgg", "a file of the GGJT format, which GGUF has replaced", kConvert},
    {"\x1f\x8b", "compressed by gzip", "decompress it with gunzip"},
    {"FUGG", "a GGUF file in reversed byte order", "download the little-endian one"},
}};

// The length of a header of JSON in 8 bytes, and that header.
bool IsSafetensors(absl::Span<const uint8_t> bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(length) + 1) return false;
  std::memcpy(&length, bytes.data(), sizeof(length));
  // The format's limit for headers is 100 MB.
  return length >= 2 && length <= 100'000'000 && bytes[sizeof(length)] == '{';
}

// The protocols that files are still written in: 2 to 5.
bool IsPickle(absl::string_view text) {
  return text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

bool IsHtml(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::StartsWithIgnoreCase(text, "<!doctype html") ||
         absl::StartsWithIgnoreCase(text, "<html") || absl::StartsWithIgnoreCase(text, "<head");
}

}  // namespace

std::string DescribeForeignFile(absl::Span<const uint8_t> bytes) {
  constexpr size_t kMostRead = 1024;
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), kMostRead));
  const auto sentence = [](absl::string_view what, absl::string_view advice) {
    return absl::StrCat("it is ", what, "; ", advice);
  };
  for (const Beginning& beginning : kBeginnings) {
    if (absl::StartsWith(text, beginning.bytes)) return sentence(beginning.what, beginning.advice);
  }
  if (IsPickle(text)) {
    return sentence("a Python pickle, as PyTorch writes checkpoints", kConvert);
  }
  if (IsHtml(text)) {
    return sentence("an HTML page, as a server sends instead of a file",
                    "download the file itself: the link must be that of the file, not of its "
                    "page, and some models need a login");
  }
  if (IsSafetensors(bytes)) return sentence("a safetensors file", kConvert);
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
    return sentence("JSON text, as a server sends instead of a file or as an index of one",
                    "download the GGUF file itself");
  }
  return absl::StrCat("it starts with ", QuoteForMessage(text.substr(0, 4)), " instead of 'GGUF'");
}

}  // namespace inlay

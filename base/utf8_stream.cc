#include "base/utf8_stream.h"

#include <utility>

#include "base/utf8.h"

namespace inlay {
namespace {

std::string Repaired(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (c.valid) {
      out.append(text.data(), c.length);
    } else {
      AppendUtf8(kReplacementCharacter, &out);
    }
    text.remove_prefix(c.length);
  }
  return out;
}

}  // namespace

std::string Utf8Stream::Push(absl::string_view bytes) {
  held_.append(bytes.data(), bytes.size());
  const size_t complete = held_.size() - IncompleteUtf8Tail(held_);
  std::string out = Repaired(absl::string_view(held_).substr(0, complete));
  held_.erase(0, complete);
  return out;
}

std::string Utf8Stream::Flush() { return Repaired(std::exchange(held_, {})); }

}  // namespace inlay

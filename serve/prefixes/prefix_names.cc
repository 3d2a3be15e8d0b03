#include "serve/prefixes/prefix_names.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "base/xxh64.h"

namespace inlay::serve {
namespace {

// 128 bits.
class WideHash {
 public:
  void Update(const void* data, size_t bytes) {
    first_.Update(data, bytes);
    second_.Update(data, bytes);
  }
  std::string Text() const {
    return absl::StrCat(absl::Hex(first_.Digest(), absl::kZeroPad16),
                        absl::Hex(second_.Digest(), absl::kZeroPad16));
  }

 private:
  Xxh64 first_{1}, second_{2};
};

std::string HashOf(absl::string_view text) {
  WideHash hash;
  hash.Update(text.data(), text.size());
  return hash.Text();
}

}  // namespace

PrefixNames::PrefixNames(absl::string_view fingerprint, absl::string_view owner, size_t least)
    : group_(absl::StrCat(HashOf(fingerprint).substr(0, 16), ".", HashOf(owner), ".")),
      least_(least) {}

std::string PrefixNames::Root(absl::Span<const int32_t> tokens) const {
  assert(tokens.size() >= least_);
  WideHash hash;
  hash.Update(tokens.data(), least_ * sizeof(int32_t));
  return absl::StrCat("r.", group_, hash.Text());
}

std::vector<std::string> PrefixNames::States(absl::Span<const int32_t> tokens,
                                             absl::Span<const size_t> lengths) const {
  std::vector<std::string> names;
  WideHash hash;
  size_t at = 0;
  for (const size_t length : lengths) {
    assert(length >= at && length <= tokens.size());
    hash.Update(tokens.data() + at, (length - at) * sizeof(int32_t));
    at = length;
    names.push_back(absl::StrCat("s.", group_, hash.Text()));
  }
  return names;
}

}  // namespace inlay::serve

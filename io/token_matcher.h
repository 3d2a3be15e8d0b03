// Finds tokens that are taken from a text as they stand, before any merging.
#ifndef INLAY_IO_TOKEN_MATCHER_H_
#define INLAY_IO_TOKEN_MATCHER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

class TokenMatcher {
 public:
  struct Match {
    size_t begin;
    size_t length;
    int32_t id;
  };

  // Of equal texts the one with the least id wins; empty texts are left out.
  void Add(absl::string_view text, int32_t id);
  // Call once, after the last Add.
  void Build();

  // The first match at or after `from`; of several that start there, the longest.
  std::optional<Match> Find(absl::string_view text, size_t from) const;

  // The token with exactly this text.
  std::optional<int32_t> FindExact(absl::string_view text) const;

 private:
  std::optional<Match> MatchAt(absl::string_view text, size_t at) const;

  std::vector<std::pair<std::string, int32_t>> tokens_;  // sorted by text once built
  std::bitset<256> starts_;                              // first bytes
};

}  // namespace inlay

#endif  // INLAY_IO_TOKEN_MATCHER_H_

#include "io/token_matcher.h"

#include <algorithm>

namespace inlay {
namespace {

using Token = std::pair<std::string, int32_t>;

uint8_t ByteAt(absl::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

void TokenMatcher::Add(absl::string_view text, int32_t id) {
  if (!text.empty()) tokens_.emplace_back(text, id);
}

void TokenMatcher::Build() {
  std::sort(tokens_.begin(), tokens_.end());  // by text, then by id
  const auto same = [](const Token& a, const Token& b) { return a.first == b.first; };
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same), tokens_.end());
  for (const Token& token : tokens_) starts_.set(ByteAt(token.first, 0));
}

std::optional<TokenMatcher::Match> TokenMatcher::Find(absl::string_view text, size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t at = from; at < text.size(); ++at) {
    if (!starts_[ByteAt(text, at)]) continue;
    if (const auto match = MatchAt(text, at)) return match;
  }
  return std::nullopt;
}

// Narrows the sorted tokens, byte by byte, to those that share the text's next `depth` bytes: a
// walk down a trie that is never built. Among them the shortest comes first, so a token that ends
// at this depth is the first one.
std::optional<TokenMatcher::Match> TokenMatcher::MatchAt(absl::string_view text, size_t at) const {
  std::optional<Match> longest;
  auto first = tokens_.begin();
  auto last = tokens_.end();
  for (size_t depth = 0; at + depth < text.size(); ++depth) {
    const uint8_t byte = ByteAt(text, at + depth);
    first = std::partition_point(first, last, [&](const Token& token) {
      return token.first.size() <= depth || ByteAt(token.first, depth) < byte;
    });
    last = std::partition_point(
        first, last, [&](const Token& token) { return ByteAt(token.first, depth) == byte; });
    if (first == last) break;
    if (first->first.size() == depth + 1) longest = Match{at, depth + 1, first->second};
  }
  return longest;
}

std::optional<int32_t> TokenMatcher::FindExact(absl::string_view text) const {
  const auto it = std::lower_bound(
      tokens_.begin(), tokens_.end(), text,
      [](const Token& token, absl::string_view t) { return absl::string_view(token.first) < t; });
  if (it == tokens_.end() || it->first != text) return std::nullopt;
  return it->second;
}

}  // namespace inlay

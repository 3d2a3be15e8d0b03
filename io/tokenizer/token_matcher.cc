#include "io/tokenizer/token_matcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

// Texts are read from their ends.
uint8_t ByteFromEnd(absl::string_view text, size_t depth) {
  return static_cast<uint8_t>(text[text.size() - 1 - depth]);
}

size_t CommonEnd(absl::string_view a, absl::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t n = 0;
  while (n < most && ByteFromEnd(a, n) == ByteFromEnd(b, n)) ++n;
  return n;
}

// Whether the reversed `a` comes before the reversed `b`.
bool ReversedLess(absl::string_view a, absl::string_view b) {
  const size_t n = CommonEnd(a, b);
  if (n == a.size() || n == b.size()) return a.size() < b.size();
  return ByteFromEnd(a, n) < ByteFromEnd(b, n);
}

}  // namespace

void TokenMatcher::Add(absl::string_view text, int32_t id, Set set) {
  if (text.empty()) return;
  tokens_.push_back({text, id, set});
  longest_ = std::max(longest_, text.size());
}

absl::Status TokenMatcher::Build() {
  std::sort(tokens_.begin(), tokens_.end(), [](const Token& a, const Token& b) {
    return a.text == b.text ? a.id < b.id : ReversedLess(a.text, b.text);
  });
  const size_t nodes = CountNodes();
  if (nodes > kMostNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the user-defined and control tokens need a search tree of ", nodes,
                     " nodes, more than ", kMostNodes));
  }
  BuildTrie(nodes);
  BuildFailures();
  std::vector<Token>().swap(tokens_);
  return absl::OkStatus();
}

size_t TokenMatcher::CountNodes() const {
  size_t nodes = 1;
  absl::string_view before;
  for (const Token& token : tokens_) {
    nodes += token.text.size() - CommonEnd(before, token.text);
    before = token.text;
  }
  return nodes;
}

// Level by level: a node is the range of the sorted tokens that have the same last `depth` bytes.
void TokenMatcher::BuildTrie(size_t nodes) {
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  bytes_.reserve(nodes);
  first_child_.reserve(nodes + 1);
  for (std::vector<int32_t>& match : match_) match.assign(nodes, -1);
  bytes_.push_back(0);
  std::vector<Range> level = {{0, static_cast<uint32_t>(tokens_.size())}};
  std::vector<Range> below;
  size_t node = 0;
  for (size_t depth = 0; !level.empty(); ++depth) {
    below.clear();
    for (Range range : level) {
      for (; range.first < range.last && tokens_[range.first].text.size() == depth; ++range.first)
        AddEnding(node, tokens_[range.first]);
      first_child_.push_back(static_cast<uint32_t>(bytes_.size()));
      while (range.first < range.last) {
        const uint8_t byte = ByteFromEnd(tokens_[range.first].text, depth);
        uint32_t end = range.first;
        while (end < range.last && ByteFromEnd(tokens_[end].text, depth) == byte) ++end;
        bytes_.push_back(byte);
        below.push_back({range.first, end});
        range.first = end;
      }
      ++node;
    }
    level.swap(below);
  }
  first_child_.push_back(static_cast<uint32_t>(bytes_.size()));
  for (uint32_t child = 1; child < first_child_[1]; ++child) root_children_[bytes_[child]] = child;
}

// Of tokens with equal texts the one with the least id comes first.
void TokenMatcher::AddEnding(size_t node, const Token& token) {
  for (size_t set = token.set; set < match_.size(); ++set) {
    if (match_[set][node] < 0) match_[set][node] = static_cast<int32_t>(endings_.size());
  }
  endings_.push_back({token.text.size(), token.id});
}

// The failure link of a node leads nearer to the root, to a node whose own link and matches are
// already set.
void TokenMatcher::BuildFailures() {
  fail_.assign(bytes_.size(), 0);
  uint64_t steps = 0;
  for (uint32_t node = 0; node < bytes_.size(); ++node) {
    for (uint32_t child = first_child_[node]; child < first_child_[node + 1]; ++child) {
      if (node != 0) fail_[child] = Next(fail_[node], bytes_[child], &steps);
      for (std::vector<int32_t>& match : match_) {
        if (match[child] < 0) match[child] = match[fail_[child]];
      }
    }
  }
}

uint32_t TokenMatcher::Child(uint32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  const auto first = bytes_.begin() + first_child_[node];
  const auto last = bytes_.begin() + first_child_[node + 1];
  const auto child = std::lower_bound(first, last, byte);
  return child == last || *child != byte ? 0 : static_cast<uint32_t>(child - bytes_.begin());
}

// Each failure link leads nearer to the root, and each byte at most one level away from it, so in
// total no more links are followed than bytes are read.
uint32_t TokenMatcher::Next(uint32_t node, uint8_t byte, uint64_t* steps) const {
  while (true) {
    ++*steps;
    const uint32_t child = Child(node, byte);
    if (child != 0 || node == 0) return child;
    node = fail_[node];
  }
}

uint64_t TokenMatcher::FindAll(Set set, absl::string_view text, size_t from, size_t count,
                               std::vector<Match>* matches) const {
  matches->clear();
  if (longest_ == 0) return 0;
  uint64_t steps = 0;
  uint32_t node = 0;
  for (size_t at = text.size(); at-- > from;) {
    node = Next(node, static_cast<uint8_t>(text[at]), &steps);
    const int32_t match = match_[set][node];
    if (match >= 0 && at < count)
      matches->push_back({at, endings_[match].length, endings_[match].id});
  }
  std::reverse(matches->begin(), matches->end());
  size_t done = from;
  const auto overlaps = [&](const Match& match) {
    if (match.begin < done) return true;
    done = match.begin + match.length;
    return false;
  };
  matches->erase(std::remove_if(matches->begin(), matches->end(), overlaps), matches->end());
  return steps;
}

std::optional<int32_t> TokenMatcher::FindExact(absl::string_view text) const {
  uint32_t node = 0;
  for (size_t depth = 0; depth < text.size(); ++depth) {
    node = Child(node, ByteFromEnd(text, depth));
    if (node == 0) return std::nullopt;
  }
  const int32_t match = node == 0 ? -1 : match_[kTrustedText][node];
  if (match < 0 || endings_[match].length != text.size()) return std::nullopt;
  return endings_[match].id;
}

}  // namespace inlay

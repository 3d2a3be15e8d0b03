#include "gemma_like/grammar/token_trie.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/utf8.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {
namespace {

constexpr size_t kMostTokens = size_t{1} << 24;

// What `bytes` begins with: plain characters, at most kMostPlain.
struct PlainPrefix {
  size_t characters = 0;
  size_t bytes = 0;
};

PlainPrefix FindPlainPrefix(absl::string_view bytes) {
  PlainPrefix prefix;
  while (prefix.bytes < bytes.size() && prefix.characters < TokenTrie::kMostPlain) {
    const CodePoint c = DecodeUtf8(bytes.substr(prefix.bytes));
    const bool special = c.value < 0x20 || c.value == '"' || c.value == '\\' || c.value == 0x7F;
    if (!c.valid || special) break;
    prefix.bytes += c.length;
    ++prefix.characters;
  }
  return prefix;
}

// The first eight bytes as a number that is ordered as they are; zeros where there are fewer.
uint64_t Head(absl::string_view bytes) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; ++i) {
    head = head << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  }
  return head;
}

size_t CommonPrefix(absl::string_view a, absl::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + size, b.begin()).first -
                             a.begin());
}

}  // namespace

template <class PieceOf, class IsControl>
absl::StatusOr<std::shared_ptr<const TokenTrie>> TokenTrie::Make(size_t tokens,
                                                                 const PieceOf& piece_of,
                                                                 const IsControl& is_control) {
  if (tokens > kMostTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the vocabulary has ", tokens, " tokens; a grammar takes at most ", kMostTokens));
  }
  using Result = absl::StatusOr<std::shared_ptr<const TokenTrie>>;
  return OrOutOfMemory("the tokens of a vocabulary", [&]() -> Result {
    const std::shared_ptr<TokenTrie> trie(new TokenTrie());
    trie->ends_.reserve(tokens);
    for (size_t i = 0; i < tokens; ++i) {
      const int32_t token = static_cast<int32_t>(i);
      const absl::string_view piece = piece_of(token);
      assert(piece.size() <= std::numeric_limits<uint16_t>::max());  // as Node::depth
      if (is_control(token)) {
        trie->bytes_ += ControlTokenSpelling(token);
      } else if (piece.find(static_cast<char>(kControlTokenByte)) == piece.npos) {
        trie->bytes_.append(piece.data(), piece.size());
      }
      trie->ends_.push_back(trie->bytes_.size());
    }
    trie->Build();
    return trie;
  });
}

absl::StatusOr<std::shared_ptr<const TokenTrie>> TokenTrie::Create(const Tokenizer& tokenizer) {
  return Make(
      tokenizer.size(), [&](int32_t token) { return tokenizer.Piece(token); },
      [&](int32_t token) { return tokenizer.IsControl(token); });
}

absl::StatusOr<std::shared_ptr<const TokenTrie>> TokenTrie::Create(
    const std::vector<std::string>& pieces, absl::Span<const int32_t> controls) {
  return Make(
      pieces.size(), [&](int32_t token) -> absl::string_view { return pieces[token]; },
      [&](int32_t token) {
        return std::find(controls.begin(), controls.end(), token) != controls.end();
      });
}

void TokenTrie::Build() {
  plain_up_to_.fill(TokenBits(words()));
  std::vector<Tail> plain, others;
  std::array<std::vector<Tail>, kMostPlain + 1> after_plain;
  for (size_t i = 0; i < size(); ++i) {
    const int32_t token = static_cast<int32_t>(i);
    const absl::string_view bytes = Bytes(token);
    if (bytes.empty()) continue;
    const PlainPrefix prefix = FindPlainPrefix(bytes);
    if (prefix.bytes == bytes.size()) {
      plain.push_back({token, 0});
      AddPlain(token, prefix.characters);
    } else {
      others.push_back({token, 0});
      after_plain[prefix.characters].push_back({token, prefix.bytes});
    }
  }
  plain_ = MakePart(plain);
  others_ = MakePart(others);
  for (size_t i = 0; i <= kMostPlain; ++i) after_plain_[i] = MakePart(after_plain[i]);
}

void TokenTrie::AddPlain(int32_t token, size_t characters) {
  for (size_t most = characters; most <= kMostPlain; ++most) {
    plain_up_to_[most][token / 64] |= uint64_t{1} << token % 64;
  }
}

TokenTrie::Part TokenTrie::MakePart(absl::Span<const Tail> tails) const {
  struct Entry {
    uint64_t head;
    absl::string_view bytes;
    int32_t token;
  };
  std::vector<Entry> sorted;
  sorted.reserve(tails.size());
  for (const Tail& tail : tails) {
    const absl::string_view bytes = Bytes(tail.token).substr(tail.skipped);
    sorted.push_back({Head(bytes), bytes, tail.token});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = a.bytes.compare(b.bytes);
    return order != 0 ? order < 0 : a.token < b.token;
  });
  Part part;
  part.tokens.reserve(tails.size());
  part.nodes.push_back({0, 0, 0, 0, true});
  std::vector<uint32_t> path = {0};  // the nodes of the prefixes of `last`
  absl::string_view last;
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      part.nodes[path.back()].skip = static_cast<uint32_t>(part.nodes.size());
    }
  };
  for (const auto& [head, bytes, token] : sorted) {
    size_t depth = CommonPrefix(bytes, last);
    leave(depth + 1);
    for (; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<uint32_t>(part.nodes.size()));
      const bool whole = IncompleteUtf8Tail(bytes.substr(0, depth + 1)) == 0;
      part.nodes.push_back({0, static_cast<uint32_t>(part.tokens.size()),
                            static_cast<uint16_t>(depth + 1), static_cast<uint8_t>(bytes[depth]),
                            whole});
    }
    part.tokens.push_back(token);
    last = bytes;
  }
  leave(0);
  part.nodes.push_back({0, static_cast<uint32_t>(part.tokens.size()), 0, 0, true});
  return part;
}

absl::string_view TokenTrie::Bytes(int32_t token) const {
  if (token < 0 || static_cast<size_t>(token) >= size()) return {};
  const size_t begin = token == 0 ? 0 : ends_[token - 1];
  return absl::string_view(bytes_).substr(begin, ends_[token] - begin);
}

}  // namespace inlay

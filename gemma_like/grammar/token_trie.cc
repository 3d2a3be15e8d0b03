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

// How many characters a plain token has; none for others.
std::optional<size_t> PlainCharacters(absl::string_view bytes) {
  size_t characters = 0;
  for (; !bytes.empty(); ++characters) {
    const CodePoint c = DecodeUtf8(bytes);
    const bool special = c.value < 0x20 || c.value == '"' || c.value == '\\' || c.value == 0x7F;
    if (!c.valid || special || characters == TokenTrie::kMostPlain) return std::nullopt;
    bytes.remove_prefix(c.length);
  }
  return characters;
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
  std::vector<int32_t> plain, others;
  for (size_t i = 0; i < size(); ++i) {
    const int32_t token = static_cast<int32_t>(i);
    const absl::string_view bytes = Bytes(token);
    if (bytes.empty()) continue;
    const std::optional<size_t> characters = PlainCharacters(bytes);
    (characters.has_value() ? plain : others).push_back(token);
    if (characters.has_value()) AddPlain(token, *characters);
  }
  plain_ = MakePart(std::move(plain));
  others_ = MakePart(std::move(others));
}

void TokenTrie::AddPlain(int32_t token, size_t characters) {
  for (size_t most = characters; most <= kMostPlain; ++most) {
    plain_up_to_[most][token / 64] |= uint64_t{1} << token % 64;
  }
}

TokenTrie::Part TokenTrie::MakePart(std::vector<int32_t> tokens) const {
  std::vector<std::pair<uint64_t, int32_t>> sorted;
  sorted.reserve(tokens.size());
  for (const int32_t token : tokens) sorted.emplace_back(Head(Bytes(token)), token);
  std::sort(sorted.begin(), sorted.end(), [this](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const int order = Bytes(a.second).compare(Bytes(b.second));
    return order != 0 ? order < 0 : a.second < b.second;
  });
  Part part;
  part.tokens.reserve(tokens.size());
  part.nodes.push_back({0, 0, 0, 0, true});
  std::vector<uint32_t> path = {0};  // the nodes of the prefixes of `last`
  absl::string_view last;
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      part.nodes[path.back()].skip = static_cast<uint32_t>(part.nodes.size());
    }
  };
  for (const auto& [head, token] : sorted) {
    const absl::string_view bytes = Bytes(token);
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

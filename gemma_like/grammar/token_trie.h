// The tokens of a vocabulary by their bytes, so that a grammar can be asked for all of them at
// once.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_TRIE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_TRIE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// A bit for each token of a vocabulary: token t is bit t % 64 of word t / 64.
using TokenBits = std::vector<uint64_t>;

// Immutable, so it may be shared by threads and by grammars.
//
// A control token has the bytes of ControlTokenSpelling. Tokens without bytes, such as the unknown
// token, are left out, and so are others that have the byte 0xFF, which no text has.
class TokenTrie {
 public:
  // A prefix of tokens. Those that begin with it follow it up to the node `skip`.
  struct Node {
    uint32_t skip;
    uint32_t first_token;  // in Part::tokens; this node's own come before those of the next node
    uint16_t depth;        // bytes of the prefix
    uint8_t byte;          // its last one
    bool whole;            // it ends between characters; in plain() only
  };

  // The first node is the empty prefix; one more, after the last, ends the list of tokens.
  struct Part {
    std::vector<Node> nodes;
    std::vector<int32_t> tokens;

    uint32_t end() const { return static_cast<uint32_t>(nodes.size() - 1); }
    absl::Span<const int32_t> TokensOf(uint32_t node) const {
      return Tokens(nodes[node].first_token, nodes[node + 1].first_token);
    }
    absl::Span<const int32_t> TokensUnder(uint32_t node) const {
      return Tokens(nodes[node].first_token, nodes[nodes[node].skip].first_token);
    }

   private:
    absl::Span<const int32_t> Tokens(uint32_t first, uint32_t last) const {
      return absl::MakeConstSpan(tokens).subspan(first, last - first);
    }
  };

  // Plain tokens are one to kMostPlain whole characters, none of them below U+0020, '"', '\' or
  // U+007F: what JSON strings treat alike.
  static constexpr size_t kMostPlain = 16;

  // The tokenizer's. Fails for more than 2^24 tokens, and without memory.
  static absl::StatusOr<std::shared_ptr<const TokenTrie>> Create(const Tokenizer& tokenizer);

  // Of the tokens `pieces`; those in `controls` are control tokens. For tests.
  static absl::StatusOr<std::shared_ptr<const TokenTrie>> Create(
      const std::vector<std::string>& pieces, absl::Span<const int32_t> controls);

  // The number of tokens in the vocabulary, and of words in its TokenBits.
  size_t size() const { return ends_.size(); }
  size_t words() const { return (size() + 63) / 64; }

  // Empty for a token that is left out, and for ids outside the vocabulary.
  absl::string_view Bytes(int32_t token) const;

  const Part& plain() const { return plain_; }

  // The tokens that are not plain. For frames that treat all plain characters alike they are there
  // once more without their first ones: by how many plain characters they begin with, at most
  // kMostPlain, what follows these. That has far fewer nodes.
  const Part& others() const { return others_; }
  const Part& after_plain(size_t characters) const { return after_plain_[characters]; }

  // The plain tokens of at most `characters` characters, 0 to kMostPlain.
  const TokenBits& PlainUpTo(size_t characters) const { return plain_up_to_[characters]; }

 private:
  TokenTrie() = default;

  template <class PieceOf, class IsControl>
  static absl::StatusOr<std::shared_ptr<const TokenTrie>> Make(size_t tokens,
                                                               const PieceOf& piece_of,
                                                               const IsControl& is_control);
  void Build();
  void AddPlain(int32_t token, size_t characters);

  // A token without its first bytes.
  struct Tail {
    int32_t token;
    size_t skipped;
  };
  Part MakePart(absl::Span<const Tail> tails) const;

  std::string bytes_;
  std::vector<size_t> ends_;  // by token, in bytes_
  Part plain_, others_;
  std::array<Part, kMostPlain + 1> after_plain_;
  std::array<TokenBits, kMostPlain + 1> plain_up_to_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_TRIE_H_

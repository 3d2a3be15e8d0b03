// Finds the tokens that are matched verbatim in a text, before any merging.
#ifndef INLAY_IO_TOKENIZER_TOKEN_MATCHER_H_
#define INLAY_IO_TOKENIZER_TOKEN_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// The automaton of Aho and Corasick 1975, "Efficient String Matching: An Aid to Bibliographic
// Search", over reversed tokens. It reads texts backwards, so the longest token that ends at its
// current byte is the longest one that begins there in the text. A text therefore needs at most two
// steps per byte, whatever the tokens are, and finding the longest match at a place needs no
// backtracking.
class TokenMatcher {
 public:
  // Two sets of tokens: those that are matched in any text, and these plus those that are matched
  // only in trusted text.
  enum Set : size_t { kAnyText = 0, kTrustedText = 1 };

  struct Match {
    size_t begin;
    size_t length;
    int32_t id;
  };

  // The maximum size of the trie of reversed tokens; a node needs 17 bytes.
  static constexpr size_t kMostNodes = size_t{1} << 23;

  // `text` must stay valid until Build. `set` is the smaller set that the token belongs to. Of
  // equal texts the one with the least id is matched; empty texts are ignored.
  void Add(absl::string_view text, int32_t id, Set set);
  // Call once, after the last Add. ResourceExhausted when the tokens need more than kMostNodes.
  absl::Status Build();

  // Bytes of the longest token; 0 when there is none.
  size_t longest() const { return longest_; }

  // Replaces `matches` by those that begin in [from, count), from left to right: each is the first
  // one after the end of the match before it (from `from` on), and the longest that begins there.
  // `text` should include longest() - 1 bytes after `count`, unless it ends before. Returns the
  // number of steps, at most two for each byte from `from` on.
  uint64_t FindAll(Set set, absl::string_view text, size_t from, size_t count,
                   std::vector<Match>* matches) const;

  // The token of kTrustedText with exactly this text.
  std::optional<int32_t> FindExact(absl::string_view text) const;

 private:
  struct Token {
    absl::string_view text;
    int32_t id;
    Set set;
  };
  struct Ending {
    size_t length;
    int32_t id;
  };

  size_t CountNodes() const;
  void BuildTrie(size_t nodes);
  void BuildFailures();
  void AddEnding(size_t node, const Token& token);
  uint32_t Child(uint32_t node, uint8_t byte) const;
  uint32_t Next(uint32_t node, uint8_t byte, uint64_t* steps) const;

  std::vector<Token> tokens_;  // until Build
  size_t longest_ = 0;
  std::vector<Ending> endings_;
  // By node, in breadth-first order from the root, 0: a node's children are adjacent, sorted by
  // byte.
  std::vector<uint8_t> bytes_;         // on the edge to the node
  std::vector<uint32_t> first_child_;  // with one more entry at the end
  std::vector<uint32_t> fail_;         // failure links: the node of the longest proper suffix
  // By set: the index in endings_ of the longest token that is a suffix of the text read so far; -1
  // for none.
  std::array<std::vector<int32_t>, 2> match_;
  std::array<uint32_t, 256> root_children_ = {};  // 0 for none
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_TOKEN_MATCHER_H_

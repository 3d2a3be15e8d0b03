// Finds tokens that are taken from a text as they stand, before any merging.
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

// An automaton of Aho and Corasick 1975, "Efficient String Matching: An Aid to Bibliographic
// Search", that reads texts backwards: the longest token that ends what it has read, reversed, is
// the longest one that begins at this place of the text. A text therefore takes at most two steps a
// byte, whatever the tokens are, and which of two matches comes first needs no second look.
class TokenMatcher {
 public:
  // Two sets of tokens: those that any text may turn into, and these together with those that only
  // a trusted text may turn into.
  enum Set : size_t { kAnyText = 0, kTrustedText = 1 };

  struct Match {
    size_t begin;
    size_t length;
    int32_t id;
  };

  // The most nodes that Build makes of the tokens' common ends and what precedes these; a node
  // takes 17 bytes.
  static constexpr size_t kMostNodes = size_t{1} << 23;

  // `text` must stay valid until Build. `set` is the smaller set that the token belongs to. Of
  // equal texts the one with the least id wins; empty texts are left out.
  void Add(absl::string_view text, int32_t id, Set set);
  // Call once, after the last Add. ResourceExhausted when the tokens need more than kMostNodes.
  absl::Status Build();

  // Bytes of the longest token; 0 when there is none.
  size_t longest() const { return longest_; }

  // Replaces `matches` by those that begin in [from, count), from left to right: each is the first
  // one behind the match before it (behind `from`), and the longest that begins there. The text
  // should go on for longest() - 1 bytes after `count`, unless it ends before. Returns the steps
  // taken, at most two for each byte from `from` on.
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
  // By node, breadth first from the root, 0: a node's children lie side by side, sorted by byte.
  std::vector<uint8_t> bytes_;         // that leads to the node
  std::vector<uint32_t> first_child_;  // and one more at the end
  std::vector<uint32_t> fail_;         // the node of the longest proper end of its text
  // By set: the longest token that ends the node's text, in endings_; -1 for none.
  std::array<std::vector<int32_t>, 2> match_;
  std::array<uint32_t, 256> root_children_ = {};  // 0 for none
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_TOKEN_MATCHER_H_

// SentencePiece-style BPE over characters, with byte fallback (`tokenizer.ggml.model` = llama).
#ifndef INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/tokenizer/hash_map.h"
#include "io/tokenizer/symbol_merger.h"
#include "io/tokenizer/vocabulary_tokenizer.h"

namespace inlay {

// The rules of SentencePiece's BPE model (Kudo and Richardson 2018) as GGUF files use it: a text
// starts as characters; the adjacent pair whose joined text is the normal token with the best
// score is joined, the leftmost among equals, until there is none; a character that is no token
// becomes its bytes' tokens, or the unknown token where the vocabulary lacks one of them.
//
// Tokens write a space as U+2581. That character itself, in a text, is encoded as bytes, so that
// it is not decoded as a space. Control, unknown, byte and unused tokens are never the result of
// joining, so no text can produce them by accident.
class SpmTokenizer : public VocabularyTokenizer {
 public:
  // Fails, beyond what Vocabulary::Load checks, when `tokenizer.ggml.scores` has another length
  // or a score that is not finite, when a byte token's text is not <0x00> to <0xFF>, and when a
  // byte has no token and there is no unknown token either.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufFile& file);

 protected:
  size_t EncodeWords(absl::string_view text, bool last, std::vector<int32_t>* ids) const override;

 private:
  // Ids of the tokens for single bytes, -1 where there is none.
  using ByteTokens = std::vector<int32_t>;

  SpmTokenizer(Vocabulary vocabulary, StringPool pieces, std::vector<uint32_t> ranks,
               ByteTokens byte_tokens, bool adds_bos, bool space_prefix);

  bool CanJoin(char32_t before, char32_t after) const;
  void EncodeWord(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;
  std::optional<int32_t> FindJoinable(absl::string_view text) const;

  std::vector<uint32_t> ranks_;  // by id: less for a better score, equal for equal scores
  ByteTokens byte_tokens_;
  size_t longest_ = 0;                            // bytes of the longest joinable token
  HashMap<absl::string_view, int32_t> joinable_;  // views into pieces()
  // Whether some joinable token may contain this pair of neighbouring characters, indexed by a hash
  // of both. Collisions make it true for a few pairs that are in no token.
  static constexpr size_t kNeighbours = size_t{1} << 20;
  std::bitset<kNeighbours> neighbours_;
  // By id: whether the token's own text is encoded as that token; filled in when such a word is
  // encoded.
  enum Whole : uint8_t { kNotTried, kYes, kNo };
  mutable std::vector<std::atomic<uint8_t>> whole_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_

// BPE over characters, with byte fallback (`tokenizer.ggml.model` = llama or gemma4).
#ifndef INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/tokenizer/merges.h"
#include "io/tokenizer/symbol_merger.h"
#include "io/tokenizer/token_index.h"
#include "io/tokenizer/vocabulary_tokenizer.h"
#include "io/tokenizer/whole_tokens.h"

namespace inlay {

// The rules of SentencePiece's BPE model (Kudo and Richardson 2018) as GGUF files use it: a text
// starts as characters; the adjacent pair whose joined text is the normal token with the best
// score is joined, the leftmost among equals, until there is none; a character that is no token
// becomes its bytes' tokens, or the unknown token where the vocabulary lacks one of them.
//
// Gemma 4's vocabulary ranks pairs, not tokens: the adjacent pair that comes first in the file's
// list of merges is joined, as in Sennrich et al. 2016. Both sides and the result of a merge are
// normal tokens there; a merge of others is ignored. No merge crosses the beginning or the end of a
// run of newlines, and a run that is a token as a whole is that token. Files say so by the model
// "gemma4" or, Ollama's, by "llama" with the pre-tokenizer "gemma4"; their scores mean nothing.
// Such a text always begins with BOS, whatever `tokenizer.ggml.add_bos_token` is: it is false in
// files whose chat template prints BOS.
//
// Tokens write a space as U+2581. That character itself, in a text, is encoded as bytes, so that
// it is not decoded as a space. Control, unknown, byte and unused tokens are never the result of
// joining, so no text can produce them by accident.
class SpmTokenizer : public VocabularyTokenizer {
 public:
  // Fails, beyond what Vocabulary::Load checks, when `tokenizer.ggml.scores` has another length
  // or a score that is not finite, when a byte token's text is not <0x00> to <0xFF>, and when a
  // byte has no token and there is no unknown token either. For Gemma 4: when
  // `tokenizer.ggml.merges` is missing or one of them is not two symbols. A packed file's arrays
  // are used as they are.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufFile& file);

  std::string ReadyArrays() const override;

 protected:
  size_t EncodeWords(absl::string_view text, bool last, std::vector<int32_t>* ids) const override;

 private:
  // How a file ranks what is joined.
  enum class Ranking { kScores, kMerges };
  static absl::StatusOr<Ranking> ReadRanking(const GgufFile& file);

  // What is computed from a vocabulary, or lies ready in a packed file.
  struct Tables {
    // With kScores, by id: less for a better score, equal for equal scores. Empty with kMerges.
    std::vector<uint32_t> ranks;
    MergeTable merges;                 // with kMerges
    std::vector<int32_t> byte_tokens;  // ids of the tokens for single bytes, -1 where there is none
    TokenIndex joinable;               // of the pieces of normal tokens
    // Whether some joinable token may contain this pair of neighbouring characters: bit i % 64 of
    // element i / 64 for a hash i of both. Collisions make it true for a few pairs that are in no
    // token.
    std::vector<uint64_t> neighbours;

    template <class Self, class Visit>
    static void VisitArrays(Self& self, Visit& visit) {
      visit(self.ranks);
      MergeTable::VisitArrays(self.merges, visit);
      visit(self.byte_tokens);
      TokenIndex::VisitArrays(self.joinable, visit);
      visit(self.neighbours);
    }
    bool AreValid(const Vocabulary& vocabulary, Ranking ranking) const;
  };
  static constexpr size_t kNeighbours = size_t{1} << 20;

  SpmTokenizer(Vocabulary vocabulary, StringTable pieces, Tables tables, bool adds_bos,
               bool space_prefix);

  static absl::StatusOr<StringTable> ReadPieces(const GgufFile& file, const Vocabulary& vocabulary,
                                                Tables* tables);
  static absl::Status IndexPieces(const GgufFile& file, const Vocabulary& vocabulary,
                                  const StringTable& pieces, Tables* tables);
  static absl::Status ReadMerges(const GgufFile& file, const StringTable& pieces, Tables* tables);

  // Whether the file lists merges.
  bool RanksPairs() const { return tables_.ranks.empty(); }
  // What joining two adjacent symbols of `word` gives.
  std::optional<Merge> FindMerge(absl::string_view word, const Symbol& left,
                                 const Symbol& right) const;
  bool CanJoin(char32_t before, char32_t after) const;
  void EncodeWord(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;
  std::optional<int32_t> FindJoinable(absl::string_view text) const;

  Tables tables_;
  size_t longest_ = 0;  // bytes of the longest joinable token
  mutable WholeTokens whole_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_SPM_TOKENIZER_H_

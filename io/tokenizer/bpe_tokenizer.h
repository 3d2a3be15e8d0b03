// Byte-level BPE with ranked merges (`tokenizer.ggml.model` = gpt2).
#ifndef INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/tokenizer/merges.h"
#include "io/tokenizer/pre_tokenizer.h"
#include "io/tokenizer/symbol_merger.h"
#include "io/tokenizer/token_index.h"
#include "io/tokenizer/vocabulary_tokenizer.h"
#include "io/tokenizer/whole_tokens.h"

namespace inlay {

// The rules of GPT-2 (Radford et al. 2019): a text is cut into words; each starts as bytes; the
// adjacent pair that comes first in the list of merges is joined, the leftmost among equals, until
// no pair is in the list. Tokens and merges are written with a printable character for each byte.
//
// A symbol that is no normal token after merging becomes the tokens of its bytes. Some vocabularies
// lack tokens for bytes that do not occur in UTF-8; such a byte becomes the unknown token, or where
// there is none the bytes of U+FFFD. (Some files name a control token, "<|endoftext|>", as the
// unknown one; it is not used, since no text may turn into a control token.)
class BpeTokenizer : public VocabularyTokenizer {
 public:
  // Fails, beyond what Vocabulary::Load checks, when `tokenizer.ggml.pre` is not a known name, when
  // `tokenizer.ggml.merges` is missing or one of them is not two symbols, and when a byte has
  // neither a token nor a replacement. A packed file's arrays are used as they are.
  //
  // A missing key means "default", which converters also write for rules that they do not know. So
  // either means the rules of the file's architecture where all its models have the same.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufFile& file);

  std::string ReadyArrays() const override;

 protected:
  size_t EncodeWords(absl::string_view text, bool last, std::vector<int32_t>* ids) const override;

 private:
  // What is computed from a vocabulary, or lies ready in a packed file. Symbols are token ids and,
  // from the vocabulary's size on, texts that occur only in merges.
  struct Tables {
    TokenIndex tokens;  // of the pieces of normal tokens
    std::vector<int32_t> byte_symbols;
    std::vector<int32_t> replacement;  // ids for a byte without a token
    MergeTable merges;
    // Whether some merge's left symbol ends with byte a and its right symbol begins with byte b:
    // bit i % 64 of element i / 64 for i = a * 256 + b.
    std::vector<uint64_t> joins;

    template <class Self, class Visit>
    static void VisitArrays(Self& self, Visit& visit) {
      TokenIndex::VisitArrays(self.tokens, visit);
      visit(self.byte_symbols);
      visit(self.replacement);
      MergeTable::VisitArrays(self.merges, visit);
      visit(self.joins);
    }
    bool AreValid(const Vocabulary& vocabulary) const;
  };
  static constexpr size_t kJoins = size_t{256} * 256;

  BpeTokenizer(Vocabulary vocabulary, StringTable pieces, Tables tables,
               const PreTokenizerInfo& pre, bool adds_bos);

  static StringTable MakePieces(const Vocabulary& vocabulary);
  static absl::Status ReadMerges(const GgufFile& file, const Vocabulary& vocabulary,
                                 const StringTable& pieces, Tables* tables);
  static absl::Status FindReplacement(const GgufFile& file, const Vocabulary& vocabulary,
                                      Tables* tables);
  bool MayJoin(char before, char after) const;
  bool IsToken(int32_t symbol) const { return static_cast<size_t>(symbol) < size(); }
  void EncodeWord(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;
  void EncodeLongWord(absl::string_view word, SymbolMerger* merger,
                      std::vector<int32_t>* ids) const;
  void MergeBytes(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;

  PreTokenizer pre_;
  bool whole_words_first_;
  Tables tables_;
  mutable WholeTokens whole_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_

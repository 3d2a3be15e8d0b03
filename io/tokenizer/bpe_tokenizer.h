// Byte-level BPE with ranked merges (`tokenizer.ggml.model` = gpt2).
#ifndef INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/tokenizer/hash_map.h"
#include "io/tokenizer/pre_tokenizer.h"
#include "io/tokenizer/symbol_merger.h"
#include "io/tokenizer/vocabulary_tokenizer.h"

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
  // Fails, beyond what Vocabulary::Load checks, when `tokenizer.ggml.pre` is not a known name (a
  // missing key means "default"), when `tokenizer.ggml.merges` is missing or one of them is not two
  // symbols, and when a byte has neither a token nor a replacement.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufFile& file);

 protected:
  size_t EncodeWords(absl::string_view text, bool last, std::vector<int32_t>* ids) const override;

 private:
  BpeTokenizer(Vocabulary vocabulary, StringPool pieces, const PreTokenizerInfo& pre,
               bool adds_bos);

  absl::Status LoadMerges(const GgufFile& file);
  absl::Status LoadReplacement(const GgufFile& file);
  bool IsToken(int32_t symbol) const { return static_cast<size_t>(symbol) < size(); }
  void EncodeWord(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;
  void EncodeLongWord(absl::string_view word, SymbolMerger* merger,
                      std::vector<int32_t>* ids) const;
  void MergeBytes(absl::string_view word, SymbolMerger* merger, std::vector<int32_t>* ids) const;

  PreTokenizer pre_;
  bool whole_words_first_;
  // Texts of normal tokens, as bytes; views into pieces().
  HashMap<absl::string_view, int32_t> tokens_;
  // Symbols are token ids and, from size() on, texts that occur only in merges.
  std::array<int32_t, 256> byte_symbols_;
  std::vector<int32_t> replacement_;  // ids for a byte without a token
  HashMap<uint64_t, Merge> merges_;   // by left symbol << 32 | right symbol
  // At a * 256 + b: whether some merge's left symbol ends with byte a and its right symbol begins
  // with byte b.
  std::bitset<256 * 256> joins_;
  // By id: whether the token's own text is encoded as that token; filled in when such a word is
  // encoded.
  enum Whole : uint8_t { kNotTried, kYes, kNo };
  mutable std::vector<std::atomic<uint8_t>> whole_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_BPE_TOKENIZER_H_

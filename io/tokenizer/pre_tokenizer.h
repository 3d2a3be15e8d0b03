// Cuts a text into words before byte-level BPE merges bytes within each of them.
#ifndef INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// The rules, written as the regular expressions that their models publish: at each place the first
// alternative that matches is a word.
enum class PreTokenizer {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Each \p{N} is a word; what lies between them is cut like kGpt2, as a text of its own.
  kSingleDigits,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+
  kLlama3,
  // Like kLlama3 with single digits:
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+
  kQwen2,
  // Like kQwen2 with marks among the letters:
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|
  //  ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kQwen35,
  // For files that name none. Each [\p{P}$+<=>^~|]+ is a word; what lies between them is cut like
  // kGpt2, as a text of its own. Of these words, numbers are cut further: a space before one is a
  // word of its own, and so is every group of three [0-9], from the left.
  kUnnamed,
};

// What a value of `tokenizer.ggml.pre` means.
struct PreTokenizerInfo {
  absl::string_view name;
  PreTokenizer rules;
  bool whole_words_first;  // a word that is a token stays whole, whatever the merges say
  bool adds_bos;           // unless the file says otherwise
  bool to_nfc = false;     // texts are normalized first (io/tokenizer/nfc.h)
};

// All that are known.
absl::Span<const PreTokenizerInfo> PreTokenizers();

// nullptr for a name that is not known.
const PreTokenizerInfo* FindPreTokenizer(absl::string_view name);

// What files are called that do not name their rules.
inline constexpr absl::string_view kUnnamedPreTokenizer = "default";

// The name of the rules that all byte-level vocabularies of models of an architecture (the value of
// `general.architecture`) have; kUnnamedPreTokenizer where they differ, or it is not known.
absl::string_view PreTokenizerOfFamily(absl::string_view architecture);

// Calls `use` for each word, from left to right, and returns their bytes in total. With `last` that
// is the whole text. Otherwise more text follows that is not known yet, so it stops before the
// first word whose scan reached the end of `text`. Called again with the rest and the text after
// it, it continues as if it had seen the whole. A byte that is not part of well-formed UTF-8 counts
// as a character that is no letter, number or space.
size_t SplitWords(PreTokenizer rules, absl::string_view text, bool last,
                  absl::FunctionRef<void(absl::string_view)> use);

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_

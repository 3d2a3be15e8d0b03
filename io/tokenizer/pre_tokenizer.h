// Cuts a text into words before byte-level BPE merges bytes within each of them.
#ifndef INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

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
  // For files that name none. Each [\p{P}$+<=>^~|]+ is a word; what lies between them is cut like
  // kGpt2, as a text of its own; of the words that this gives, those with a number lose their space
  // to a word of its own and are cut before and after each three [0-9], from the left.
  kUnnamed,
};

// What a value of `tokenizer.ggml.pre` means.
struct PreTokenizerInfo {
  absl::string_view name;
  PreTokenizer rules;
  bool whole_words_first;  // a word that is a token stays whole, whatever the merges say
  bool adds_bos;           // unless the file says otherwise
};

// nullptr for a name that is not known.
const PreTokenizerInfo* FindPreTokenizer(absl::string_view name);

// Calls `use` for each word, from left to right, and returns how many bytes they are together. With
// `last` that is the whole text. Else more follows that is not known yet, and it ends before the
// first word that was looked at up to the end of `text`: called again with the rest and what
// follows, it goes on as with the whole. A byte that is not part of well-formed UTF-8 counts as a
// character that is no letter, number or space.
size_t SplitWords(PreTokenizer rules, absl::string_view text, bool last,
                  absl::FunctionRef<void(absl::string_view)> use);

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_PRE_TOKENIZER_H_

// Letters, numbers, spaces, punctuation and marks among the code points, as pre-tokenizers tell
// them apart.
#ifndef INLAY_IO_TOKENIZER_UNICODE_CLASSES_H_
#define INLAY_IO_TOKENIZER_UNICODE_CLASSES_H_

#include <cstdint>

namespace inlay {

enum class CodePointClass : uint8_t {
  kOther = 0,        // symbols, controls, unassigned
  kLetter = 1,       // general categories L*: \p{L}
  kNumber = 2,       // general categories N*: \p{N}
  kSpace = 3,        // property White_Space: \s
  kPunctuation = 4,  // general categories P*: \p{P}
  kMark = 5,         // general categories M*: \p{M}
};

CodePointClass ClassOf(char32_t code_point);

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_UNICODE_CLASSES_H_

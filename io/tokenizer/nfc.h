// Unicode's Normalization Form C, which some vocabularies were trained on.
#ifndef INLAY_IO_TOKENIZER_NFC_H_
#define INLAY_IO_TOKENIZER_NFC_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// Normalizes a text that comes in parts (Unicode Standard Annex #15, "Unicode Normalization
// Forms"): letters and the marks on them become one character where there is one, and marks that do
// not interact are put in order. The result does not depend on where the parts end. Bytes that are
// not well-formed UTF-8 stay as they are.
class NfcStream {
 public:
  // A text has at most this many bytes for each byte that it has when it is normalized. The most
  // are 3.5: U+1FBE, U+0308 and U+0301 become U+0390.
  static constexpr size_t kMostShrink = 4;

  // Appends what is known of the normalized text so far to `out`. What `text` ends with may wait
  // for marks that follow: most often its last character.
  void Push(absl::string_view text, std::string* out);

  // The text has ended: appends what has waited. Another one may follow.
  void Finish(std::string* out);

  // Bytes that wait.
  size_t held() const { return held_.size(); }

 private:
  std::string held_;
  size_t scanned_ = 0;  // bytes of held_ whose characters have been looked at
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_NFC_H_

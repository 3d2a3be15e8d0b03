// Finds stop texts in a stream of text, holding back what may be the start of one.
#ifndef INLAY_GEMMA_LIKE_GENERATION_STOP_MATCHER_H_
#define INLAY_GEMMA_LIKE_GENERATION_STOP_MATCHER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

class StopMatcher {
 public:
  // Ignores stop texts that are empty, and those that start inside a UTF-8 character: cut before
  // them, the text would no longer be valid UTF-8.
  explicit StopMatcher(std::vector<std::string> stop_texts);

  // Accepts the next text and returns what is certain not to belong to a stop text. Once a stop
  // text is complete, stopped() is true, and the text before it has been returned. Of several the
  // one that is complete first counts.
  std::string Push(absl::string_view text);

  // What is held back, when no more text will come.
  std::string Flush();

  bool stopped() const { return stopped_; }
  // The stop text that was found; "" unless stopped().
  const std::string& found() const { return found_; }

 private:
  std::vector<std::string> stop_texts_;
  std::string held_;
  bool stopped_ = false;
  std::string found_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_STOP_MATCHER_H_

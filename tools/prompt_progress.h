// A progress bar for the tokens of a prompt.
#ifndef INLAY_TOOLS_PROMPT_PROGRESS_H_
#define INLAY_TOOLS_PROMPT_PROGRESS_H_

#include <cstdint>
#include <optional>

#include "tools/progress.h"

namespace inlay {

// To be updated while an answer is computed: the bar is there until all tokens of the prompt are.
class PromptProgress {
 public:
  void Update(uint64_t done, uint64_t total) {
    if (done >= total) {
      bar_.reset();
    } else {
      if (!bar_.has_value()) bar_.emplace("reading the prompt", total, ProgressUnit::kTokens);
      bar_->Update(done);
    }
  }
  // Clears the line for what comes after it.
  void End() { bar_.reset(); }

 private:
  std::optional<ProgressBar> bar_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_PROMPT_PROGRESS_H_

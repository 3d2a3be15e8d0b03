// Sentences for whoever operates the server.
#ifndef INLAY_SERVE_NOTES_NOTE_H_
#define INLAY_SERVE_NOTES_NOTE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"

namespace inlay::serve {

// Tells the operator one sentence at a time, in the thread that has it to tell.
class Note {
 public:
  // `tell` may be null: nobody is told.
  explicit Note(std::function<void(absl::string_view sentence)> tell) : tell_(std::move(tell)) {}

  // Tells the sentence that these parts make up, as those of absl::StrCat. One for which there is
  // no memory is lost.
  template <class... Parts>
  void Tell(const Parts&... parts) const noexcept {
    if (tell_ == nullptr) return;
    (void)OrOutOfMemory("a note", [&] {
      tell_(absl::StrCat(parts...));
      return absl::OkStatus();
    });
  }

 private:
  const std::function<void(absl::string_view sentence)> tell_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_NOTES_NOTE_H_

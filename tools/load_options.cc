#include "tools/load_options.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/plural.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace inlay {

LoadOptions ShownLoad(std::string name, bool exact, const InterruptWatch& interrupt) {
  return {.exact = exact,
          .on_recompute =
              [name = std::move(name)](absl::string_view why, size_t tokens) {
                WriteNote(absl::StrCat(name, ": computing its ", Plural(tokens, "token"),
                                       " again, since ", why, "\n"));
              },
          .cancel = [&interrupt] { return interrupt.requested(); },
          .progress = ShowProgress("computing it again", ProgressUnit::kTokens)};
}

}  // namespace inlay

// Turns the exceptions that the standard library throws when memory or threads run out into a
// status.
#ifndef INLAY_BASE_OUT_OF_MEMORY_H_
#define INLAY_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {

// Returns act(), an absl::Status or StatusOr; ResourceExhausted, with `what` in its message, if
// act() throws std::bad_alloc or a thread's std::system_error.
template <class Act>
auto OrOutOfMemory(absl::string_view what, const Act& act) -> decltype(act()) {
  try {
    try {
      return act();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(absl::StrCat("there is not enough memory for ", what));
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system refuses a thread for ", what, ": ", error.what()));
    }
  } catch (const std::bad_alloc&) {  // not even for the message; a code alone allocates nothing
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace inlay

#endif  // INLAY_BASE_OUT_OF_MEMORY_H_

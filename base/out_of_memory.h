// Turns the exceptions that the standard library throws when memory or threads run out into a
// status.
//
// Memory may run out at any allocation, and what comes from outside may make it run out. An
// exception that leaves a thread's function, a destructor or a noexcept function ends the process.
// Hence:
//
// - What works on input runs within OrOutOfMemory: for example, all that a route of the server does
//   for a request.
// - What is done with the error runs outside of it and may take memory, too, for example for the
//   body of a reply. It is caught once more, and what is done then takes none: the connection
//   closes.
// - The function of each thread catches all exceptions of the work that it is given.
// - Destructors, noexcept functions and handlers of a lack of memory take no memory. These do:
//   - absl::StrFormat, absl::StrAppendFormat: they grow a string in a destructor. Use
//   base/format.h.
//   - The destructor of a nlohmann::json with lists or objects, which collects all that the value
//     holds in a vector. One that a request determines is a JsonDocument: io/json/parse_json.h.
//   - So does nlohmann's copy of such a value that fails halfway, for what it has copied until
//     then, and a nlohmann::ordered_json::object_t that grows, as it copies its members: reserve
//     its size.
//   Where they need little, as for the parts of a message, base/unwinding_memory.h keeps that for
//   the server.
// - A size that comes from outside and has no bound may be more than a container can have, which
//   is std::length_error.
#ifndef INLAY_BASE_OUT_OF_MEMORY_H_
#define INLAY_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/unwinding_memory.h"

namespace inlay {

namespace out_of_memory {

// The payload by which IsOutOfMemory knows a status. A std::string of it takes no memory.
inline constexpr absl::string_view kMark = "inlay/no_memory";

template <class... Parts>
absl::Status Marked(const Parts&... parts) noexcept {
  RenewUnwindingMemory();
  try {
    absl::Status status = absl::ResourceExhaustedError(absl::StrCat(parts...));
    status.SetPayload(kMark, absl::Cord());
    return status;
  } catch (const std::bad_alloc&) {  // not even for the message; a code alone allocates nothing
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

inline absl::Status OfSystemError(absl::string_view what, const std::system_error& error) noexcept {
  if (error.code() == std::errc::resource_unavailable_try_again)
    return Marked("the system refuses a thread for ", what, ": ", error.what());
  try {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kInternal, "");
  }
}

}  // namespace out_of_memory

// ResourceExhausted, "there is not enough memory for WHAT"; without a message where there is no
// memory for that, either.
inline absl::Status OutOfMemoryError(absl::string_view what) noexcept {
  return out_of_memory::Marked("there is not enough memory for ", what);
}

// Whether the status says that the machine lacks memory or threads. ResourceExhausted is also what
// exceeds a bound of this program: a full queue, a grammar that is too large.
inline bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         (status.message().empty() || status.GetPayload(out_of_memory::kMark).has_value());
}

// Returns act(), an absl::Status or StatusOr. An error with `what` in its message if act() throws:
// one that IsOutOfMemory knows for std::bad_alloc, std::length_error and the std::system_error of a
// thread that cannot be started, Internal for any other std::system_error.
template <class Act>
auto OrOutOfMemory(absl::string_view what, const Act& act) -> decltype(act()) {
  try {
    return act();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(what);
  } catch (const std::length_error&) {
    return OutOfMemoryError(what);
  } catch (const std::system_error& error) {
    return out_of_memory::OfSystemError(what, error);
  }
}

}  // namespace inlay

#endif  // INLAY_BASE_OUT_OF_MEMORY_H_

// How functions of the C API begin and end: statuses as codes and sentences, checked arguments,
// versioned structs, texts and tokens copied out.
#ifndef INLAY_GEMMA_LIKE_C_API_CALL_H_
#define INLAY_GEMMA_LIKE_C_API_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "gemma_like/inlay_c.h"

namespace inlay::c_api {

inlay_status CodeOf(const absl::Status& status);

// What inlay_last_error() returns in this thread from now on.
void SetLastError(absl::string_view sentence);
const char* LastError();

// Runs the body of a function of the C API. No exception leaves it: the standard library throws
// where memory or threads run out, and a caller's callback may throw anything. What ends a thread
// passes, as when a callback calls pthread_exit().
inlay_status Call(absl::FunctionRef<absl::Status()> body);

// InvalidArgument with the name of the first that is null.
absl::Status CheckNotNull(std::initializer_list<std::pair<const char*, const void*>> arguments);

// InvalidArgument when there are elements, `count` of them, and the pointer to them is null.
absl::Status CheckArray(const char* name, const void* elements, size_t count);

// Copies the first `capacity` of `from`, and sets `count` to their number: OutOfRange, with `what`
// as their name, when there are more.
template <class T>
absl::Status CopyOut(const char* what, absl::Span<const T> from, T* to, size_t capacity,
                     size_t* count) {
  *count = from.size();
  INLAY_RETURN_IF_ERROR(CheckArray(what, to, capacity));
  std::copy_n(from.begin(), std::min(from.size(), capacity), to);
  if (from.size() <= capacity) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("there are ", from.size(), " ", what, ", but room for ", capacity));
}

// The same for a text with a NUL, which `size` does not count: nothing is written when it does not
// fit.
absl::Status CopyOutString(absl::string_view from, char* to, size_t capacity, size_t* size);

// InvalidArgument for a size below `least` or far above that of any struct.
absl::Status CheckSize(const char* what, size_t size, size_t least = 2 * sizeof(size_t));

// `from` over the defaults: a caller of an older version passes only the first fields, and null
// stands for none. InvalidArgument for a size that no version of the struct has.
template <class Struct>
absl::StatusOr<Struct> Complete(const char* what, const Struct* from, Struct defaults) {
  if (from == nullptr) return defaults;
  INLAY_RETURN_IF_ERROR(CheckSize(what, from->size));
  std::memcpy(&defaults, from, std::min(from->size, sizeof(Struct)));
  return defaults;
}

// Sets the fields of `to` that its caller knows; the size stays.
template <class Struct>
absl::Status Fill(const char* what, Struct from, Struct* to) {
  INLAY_RETURN_IF_ERROR(CheckNotNull({{what, to}}));
  INLAY_RETURN_IF_ERROR(CheckSize(what, to->size));
  from.size = to->size;
  std::memcpy(to, &from, std::min(to->size, sizeof(Struct)));
  return absl::OkStatus();
}

// The size of a struct up to its member `status`.
template <class Struct>
inline constexpr size_t kSizeToStatus = offsetof(Struct, status) + sizeof(Struct::status);

// The elements of an array, whose size is that of the version that its caller knows.
// InvalidArgument when they differ in it or have less than `least`.
template <class Struct>
absl::StatusOr<std::vector<Struct*>> ElementsOf(const char* what, Struct* first, size_t count,
                                                size_t least) {
  std::vector<Struct*> elements;
  for (size_t i = 0; i < count; ++i) {
    auto* const element =
        reinterpret_cast<Struct*>(reinterpret_cast<char*>(first) + i * first->size);
    INLAY_RETURN_IF_ERROR(CheckSize(what, element->size, least));
    if (element->size % alignof(Struct) != 0 || element->size != first->size) {
      return absl::InvalidArgumentError(absl::StrCat("the size of ", what, " number ", i, " is ",
                                                     element->size, ", that of the first is ",
                                                     first->size));
    }
    elements.push_back(element);
  }
  return elements;
}

}  // namespace inlay::c_api

#endif  // INLAY_GEMMA_LIKE_C_API_CALL_H_

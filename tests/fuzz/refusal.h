// How everything that a fuzzer reads is refused.
#ifndef INLAY_TESTS_FUZZ_REFUSAL_H_
#define INLAY_TESTS_FUZZ_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay {

// With InvalidArgument and a sentence in UTF-8.
inline void CheckRefusal(const absl::Status& status) {
  INLAY_FUZZ_CHECK(absl::IsInvalidArgument(status));
  INLAY_FUZZ_CHECK(!status.message().empty() && IsValidUtf8(status.message()));
}

// Whether it was read; what was not must have been refused so.
template <class T>
bool IsRead(const absl::StatusOr<T>& read) {
  if (!read.ok()) CheckRefusal(read.status());
  return read.ok();
}

}  // namespace inlay

#endif  // INLAY_TESTS_FUZZ_REFUSAL_H_

// The value of a StatusOr that a test cannot go on without.
#ifndef INLAY_TESTS_MUST_H_
#define INLAY_TESTS_MUST_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace inlay {

// Ends the test's process with the status's sentence where there is none.
template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

}  // namespace inlay

#endif  // INLAY_TESTS_MUST_H_

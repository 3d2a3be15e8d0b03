#include "io/template/budget.h"

#include "absl/strings/str_cat.h"

namespace inlay::jinja {

absl::Status Budget::TooManySteps() const {
  return absl::OutOfRangeError(
      absl::StrCat("the template needs more than ", limits_.max_steps, " steps"));
}

absl::Status Budget::TooManyBytes() const {
  return absl::OutOfRangeError(
      absl::StrCat("the template needs more than ", limits_.max_bytes, " bytes of memory"));
}

absl::Status Budget::TooDeep() const {
  return absl::InvalidArgumentError(absl::StrCat("the template nests calls deeper than ",
                                                 limits_.max_depth,
                                                 " levels or values deeper than ", kMaxValueDepth));
}

}  // namespace inlay::jinja

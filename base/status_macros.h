// Early return for absl::Status and absl::StatusOr.
#ifndef INLAY_BASE_STATUS_MACROS_H_
#define INLAY_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expression`, an absl::Status, is not ok.
#define INLAY_RETURN_IF_ERROR(expression)                               \
  do {                                                                  \
    if (absl::Status inlay_status = (expression); !inlay_status.ok()) { \
      return inlay_status;                                              \
    }                                                                   \
  } while (false)

#define INLAY_STATUS_CONCAT_INNER(a, b) a##b
#define INLAY_STATUS_CONCAT(a, b) INLAY_STATUS_CONCAT_INNER(a, b)

// `left` = the value of `expression`, an absl::StatusOr; returns its status when there is none.
#define INLAY_ASSIGN_OR_RETURN(left, expression) \
  INLAY_ASSIGN_OR_RETURN_INNER(INLAY_STATUS_CONCAT(inlay_or_, __LINE__), left, expression)
#define INLAY_ASSIGN_OR_RETURN_INNER(name, left, expression) \
  auto name = (expression);                                  \
  if (!name.ok()) return std::move(name).status();           \
  left = *std::move(name)

#endif  // INLAY_BASE_STATUS_MACROS_H_

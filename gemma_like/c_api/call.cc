#include "gemma_like/c_api/call.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>

namespace inlay::c_api {
namespace {

thread_local std::string last_error;

}  // namespace

inlay_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return INLAY_OK;
    case absl::StatusCode::kInvalidArgument:
      return INLAY_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return INLAY_NOT_FOUND;
    case absl::StatusCode::kOutOfRange:
      return INLAY_OUT_OF_RANGE;
    case absl::StatusCode::kResourceExhausted:
      return INLAY_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kDataLoss:
      return INLAY_DATA_LOSS;
    case absl::StatusCode::kCancelled:
      return INLAY_CANCELLED;
    case absl::StatusCode::kFailedPrecondition:
      return INLAY_FAILED_PRECONDITION;
    default:
      return INLAY_ERROR;
  }
}

void SetLastError(absl::string_view sentence) { last_error = std::string(sentence); }

const char* LastError() { return last_error.c_str(); }

inlay_status Call(absl::FunctionRef<absl::Status()> body) {
  try {
    absl::Status status;
    try {
      status = body();
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("there is not enough memory for this");
    } catch (const std::exception& error) {
      status = absl::UnknownError(error.what());
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) {
      throw;  // the thread ends, which must not be kept from it
#endif
    } catch (...) {
      status = absl::UnknownError("a callback threw what is no std::exception");
    }
    if (!status.ok()) SetLastError(status.message());
    return CodeOf(status);
  } catch (const std::bad_alloc&) {
    last_error.clear();  // no memory for the sentence either
    return INLAY_RESOURCE_EXHAUSTED;
  }
}

absl::Status CheckNotNull(std::initializer_list<std::pair<const char*, const void*>> arguments) {
  for (const auto& [name, pointer] : arguments) {
    if (pointer == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
  }
  return absl::OkStatus();
}

absl::Status CheckArray(const char* name, const void* elements, size_t count) {
  return count == 0 ? absl::OkStatus() : CheckNotNull({{name, elements}});
}

absl::Status CopyOutString(absl::string_view from, char* to, size_t capacity, size_t* size) {
  *size = from.size();
  if (from.size() >= capacity) {
    return absl::OutOfRangeError(
        absl::StrCat("a text of ", from.size(), " bytes and its NUL do not fit in ", capacity));
  }
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"the text's buffer", to}}));
  std::copy(from.begin(), from.end(), to);
  to[from.size()] = '\0';
  return absl::OkStatus();
}

absl::Status CheckSize(const char* what, size_t size, size_t least) {
  constexpr size_t kMost = size_t{1} << 16;
  if (size >= least && size <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the size of ", what, " is ", size, ", not sizeof(", what, ")"));
}

}  // namespace inlay::c_api

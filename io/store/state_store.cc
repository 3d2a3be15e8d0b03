#include "io/store/state_store.h"

#include <algorithm>
#include <cassert>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {

absl::Status CheckStateKey(absl::string_view key) {
  constexpr size_t kMaxKey = 100;
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (!key.empty() && key.size() <= kMaxKey && plain && key.front() != '.') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the key '", absl::CHexEscape(key.substr(0, kMaxKey)), "' (", key.size(),
                   " bytes) is no name of 1 to ", kMaxKey,
                   " characters out of A-Z a-z 0-9 . _ -, the first not a dot"));
}

absl::Status NoSuchState(absl::string_view key) {
  return absl::NotFoundError(absl::StrCat("there is no state '", key, "'"));
}

absl::Status TooManyStates(absl::string_view prefix) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "more than ", StateStore::kMostListed, " states have keys that begin with '", prefix, "'"));
}

absl::Status StateWasReplaced(absl::string_view key) {
  return absl::AbortedError(
      absl::StrCat("the state '", key, "' was stored or deleted by another writer meanwhile"));
}

absl::StatusOr<StateBeginning> StateStore::ReadBeginning(absl::string_view key, size_t most) {
  assert(most <= kMostBeginning);
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader, Get(key));
  StateBeginning beginning{.bytes = "", .state_bytes = reader->remaining()};
  beginning.bytes.resize(static_cast<size_t>(std::min<uint64_t>(most, beginning.state_bytes)));
  INLAY_RETURN_IF_ERROR(
      reader->Read({reinterpret_cast<uint8_t*>(beginning.bytes.data()), beginning.bytes.size()}));
  return beginning;
}

}  // namespace inlay

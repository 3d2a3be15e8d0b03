#include "serve/service/api_keys.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/xxh64.h"

namespace inlay::serve {
namespace {

constexpr size_t kShortestKey = 8;
constexpr int kMostPriority = 100;

absl::Status BadLine(size_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, " ", what));
}

// Looks at every byte of `given`, whatever the key is.
bool SameKey(absl::string_view given, absl::string_view key) {
  volatile unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = key[i % key.size()];
    difference = difference | static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

}  // namespace

absl::StatusOr<std::vector<ApiKeys::Entry>> ApiKeys::Parse(absl::string_view text) {
  std::vector<Entry> entries;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = WithoutComment(line);
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (words.size() > 3) return BadLine(number, "has more than KEY NAME PRIORITY");
    Entry entry{.key = words[0], .client = {}};
    if (entry.key.size() < kShortestKey) {
      return BadLine(number, absl::StrCat("has a key of ", entry.key.size(),
                                          " characters; it must have ", kShortestKey, " or more"));
    }
    for (const Entry& other : entries) {
      if (other.key == entry.key) return BadLine(number, "repeats a key");
    }
    entry.client.name = words.size() > 1 ? words[1] : absl::StrCat("key ", entries.size() + 1);
    const bool bad_priority =
        words.size() > 2 && (!absl::SimpleAtoi(words[2], &entry.client.priority) ||
                             std::abs(entry.client.priority) > kMostPriority);
    if (bad_priority) {
      return BadLine(number, absl::StrCat("has a priority that is no number from ", -kMostPriority,
                                          " to ", kMostPriority));
    }
    // A key without a name is its own client, also where its line moves.
    const std::string& identity = words.size() > 1 ? words[1] : words[0];
    const int32_t next = static_cast<int32_t>(owners_.size()) + 1;
    entry.client.identity =
        words.size() > 1
            ? absl::StrCat("name ", words[1])
            : absl::StrCat("key ", absl::Hex(Xxh64Of(words[0].data(), words[0].size())));
    entry.client.owner = owners_.try_emplace(identity, next).first->second;
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return absl::InvalidArgumentError("it holds no key");
  return entries;
}

absl::Status ApiKeys::Replace(absl::string_view text) {
  const std::lock_guard lock(mutex_);
  INLAY_ASSIGN_OR_RETURN(entries_, Parse(text));
  return absl::OkStatus();
}

bool ApiKeys::required() const {
  const std::lock_guard lock(mutex_);
  return !entries_.empty();
}

std::optional<ApiClient> ApiKeys::Find(absl::string_view key) const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return ApiClient{};
  std::optional<ApiClient> found;
  for (const Entry& entry : entries_) {
    if (SameKey(key, entry.key)) found = entry.client;
  }
  return found;
}

}  // namespace inlay::serve

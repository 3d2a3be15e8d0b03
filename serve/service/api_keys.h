// Who may use the server.
#ifndef INLAY_SERVE_SERVICE_API_KEYS_H_
#define INLAY_SERVE_SERVICE_API_KEYS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace inlay::serve {

// One client, as a key names it.
struct ApiClient {
  std::string name;
  int32_t owner = 0;  // of its prefixes and sessions: the same for keys of the same name
  int priority = 0;   // a larger one goes first
  // The same for the same client after a restart, and different for others: what its sessions are
  // stored under. Of a key without a name it holds a hash.
  std::string identity = {};
};

// A line of a file with keys up to its comment, which begins with a "#" at the line's start or
// after white space: within a key it is part of that. Here, as programs without a server have such
// files.
inline absl::string_view WithoutComment(absl::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || absl::ascii_isspace(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

// Safe to use from several threads.
class ApiKeys {
 public:
  // No keys: everybody is the one client.
  ApiKeys() = default;

  // Replaces all keys by those of a text with a key on each line: "KEY", "KEY NAME" or "KEY NAME
  // PRIORITY" (-100 to 100), with comments (see WithoutComment). Without a name the key is a client
  // of its own.
  // InvalidArgument, naming the line (never the key), with no change: for a key of fewer than 8
  // characters, one given twice, a priority that is no number, or no key at all.
  absl::Status Replace(absl::string_view text);

  // Whether there are keys.
  bool required() const;

  // For /metrics: attempts to read the keys again that failed, in whichever step.
  void CountFailedReload() { ++failed_reloads_; }
  uint64_t failed_reloads() const { return failed_reloads_; }

  // The client whose key this is. Takes the same time for every wrong key of the same length.
  std::optional<ApiClient> Find(absl::string_view key) const;

 private:
  struct Entry {
    std::string key;
    ApiClient client;
  };
  // Under the lock.
  absl::StatusOr<std::vector<Entry>> Parse(absl::string_view text);

  std::atomic<uint64_t> failed_reloads_ = 0;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<Entry> entries_;
  // Owners stay the same when keys are read again.
  std::map<std::string, int32_t> owners_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_API_KEYS_H_

// Which states this server knows to be in the store.
#ifndef INLAY_SERVE_PREFIXES_KNOWN_STATES_H_
#define INLAY_SERVE_PREFIXES_KNOWN_STATES_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace inlay::serve {

// What is known is forgotten after `lifetime`, so that states in use are stored again, or counted
// as used, before they expire. Safe to use from several threads.
class KnownStates {
 public:
  explicit KnownStates(absl::Duration lifetime) : lifetime_(absl::ToChronoNanoseconds(lifetime)) {}

  // The lengths, ascending, that a state of this root may have, up to `most`.
  std::vector<size_t> Lengths(const std::string& root, size_t most) const;
  // Whether the state is known.
  bool Has(const std::string& root, size_t length, absl::string_view name) const;

  void Add(const std::string& root, size_t length, const std::string& name);
  // Takes no memory.
  void Remove(const std::string& root, size_t length, const std::string& name);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  // Root, length and name.
  using Key = std::tuple<std::string, size_t, std::string>;
  using KeyView = std::tuple<absl::string_view, size_t, absl::string_view>;
  // With more all are forgotten, so that memory is bounded: some 5 MB.
  static constexpr size_t kMost = 1 << 14;

  const Clock::duration lifetime_;
  mutable std::mutex mutex_;                              // guards the next member
  std::map<Key, Clock::time_point, std::less<>> states_;  // when they were added
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PREFIXES_KNOWN_STATES_H_

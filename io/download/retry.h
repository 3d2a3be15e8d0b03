// How often a request is sent again, and when.
#ifndef INLAY_IO_DOWNLOAD_RETRY_H_
#define INLAY_IO_DOWNLOAD_RETRY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "io/download/pull_observer.h"

namespace inlay {

struct RetryPolicy {
  int attempts = 5;                                // without progress in between
  absl::Duration first_wait = absl::Seconds(1);    // doubled after each attempt
  absl::Duration longest_wait = absl::Minutes(1);  // of a server's Retry-After, too
};

// Counts the attempts at one thing.
class Retry {
 public:
  Retry(const RetryPolicy& policy, PullObserver observer)
      : policy_(policy), observer_(std::move(observer)) {}

  // Waits before the next attempt, after an error that may pass: Unavailable. Another error, or the
  // last of the attempts, is returned. `least` is how long the server wants to be left alone; more
  // than the policy's longest_wait ends the attempts. Cancelled when the observer says so.
  absl::Status Wait(const absl::Status& error, absl::Duration least = absl::ZeroDuration());

  // There was progress: the attempts are counted from the start.
  void Reset() { failed_ = 0; }

 private:
  const RetryPolicy policy_;
  const PullObserver observer_;
  int failed_ = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_RETRY_H_

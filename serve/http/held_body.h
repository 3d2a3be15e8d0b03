// How many bytes the bodies of all of a server's requests take together.
#ifndef INLAY_SERVE_HTTP_HELD_BODY_H_
#define INLAY_SERVE_HTTP_HELD_BODY_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace inlay::serve {

// The bytes of one body as part of a sum, from which the destructor takes them again.
class HeldBody {
 public:
  explicit HeldBody(std::shared_ptr<std::atomic<size_t>> sum) : sum_(std::move(sum)) {}
  ~HeldBody() { *sum_ -= bytes_; }
  HeldBody(const HeldBody&) = delete;
  HeldBody& operator=(const HeldBody&) = delete;

  // Counts the body as one of `bytes`, no less than before. Whether the sum is at most `most` then.
  bool GrowTo(size_t bytes, size_t most) {
    const size_t more = bytes - bytes_;
    bytes_ = bytes;
    return sum_->fetch_add(more) + more <= most;
  }

 private:
  const std::shared_ptr<std::atomic<size_t>> sum_;  // requests may outlive their server
  size_t bytes_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HELD_BODY_H_

#include "gemma_like/generation/stop_matcher.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"

namespace inlay {

StopMatcher::StopMatcher(std::vector<std::string> stop_texts) : stop_texts_(std::move(stop_texts)) {
  const auto ignored = [](const std::string& stop) {
    return stop.empty() || (static_cast<uint8_t>(stop[0]) & 0xC0) == 0x80;
  };
  stop_texts_.erase(std::remove_if(stop_texts_.begin(), stop_texts_.end(), ignored),
                    stop_texts_.end());
}

std::string StopMatcher::Push(absl::string_view text) {
  if (stopped_) return "";
  held_.append(text.data(), text.size());
  // The stop text that is complete first, so that the answer does not depend on how the text is
  // split into pushes; of those complete at once the longest.
  size_t first = std::string::npos, first_end = std::string::npos;
  for (const std::string& stop : stop_texts_) {
    const size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end > first_end || (end == first_end && begin > first)) continue;
    first = begin;
    first_end = end;
    found_ = stop;
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string certain = held_.substr(0, first);
    held_.clear();
    return certain;
  }
  // The longest suffix of the text that is a prefix of a stop text.
  size_t keep = 0;
  for (const std::string& stop : stop_texts_) {
    const size_t longest = std::min(stop.size() - 1, held_.size());
    for (size_t n = longest; n > keep; --n) {
      if (absl::EndsWith(held_, absl::string_view(stop).substr(0, n))) {
        keep = n;
        break;
      }
    }
  }
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return certain;
}

std::string StopMatcher::Flush() { return std::exchange(held_, std::string()); }

}  // namespace inlay

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
  size_t first = std::string::npos;
  for (const std::string& stop : stop_texts_) {
    first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string certain = held_.substr(0, first);
    held_.clear();
    return certain;
  }
  // The longest end of the text that a stop text begins with.
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

#include "gemma_like/ranks/rank_message.h"

#include <algorithm>
#include <array>

namespace inlay {
namespace {

// The first broadcast of a message: its size and its first bytes, which most often are all.
struct Start {
  uint64_t size = 0;
  std::array<char, 1016> bytes = {};
};

absl::Span<char> BytesOf(Start& start) { return {reinterpret_cast<char*>(&start), sizeof(start)}; }

}  // namespace

void RankMessage::Send(Ranks& ranks) const {
  Start start;
  start.size = bytes_.size();
  const size_t first = std::min(bytes_.size(), start.bytes.size());
  std::copy_n(bytes_.begin(), first, start.bytes.begin());
  ranks.Broadcast(BytesOf(start), Ranks::Deadline::kNone);
  if (first == bytes_.size()) return;
  std::vector<char> rest(bytes_.begin() + static_cast<ptrdiff_t>(first), bytes_.end());
  ranks.Broadcast(absl::MakeSpan(rest));
}

ReceivedMessage ReceivedMessage::Receive(Ranks& ranks) {
  Start start;
  ranks.Broadcast(BytesOf(start), Ranks::Deadline::kNone);
  ReceivedMessage message;
  message.bytes_.resize(start.size);
  const size_t first = std::min<size_t>(start.size, start.bytes.size());
  std::copy_n(start.bytes.begin(), first, message.bytes_.begin());
  if (first < start.size) {
    ranks.Broadcast(absl::MakeSpan(message.bytes_).subspan(first));
  }
  return message;
}

}  // namespace inlay

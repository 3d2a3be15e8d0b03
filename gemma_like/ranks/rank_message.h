// What the first rank tells the others to do, as bytes.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_MESSAGE_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_MESSAGE_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// A message is a sequence of commands, each with the fields that are named here. Models and
// conversations have numbers, which the first rank assigns. All ranks run the same program, so a
// field is the bytes of a uint64_t, or of an array after its size.
enum class RankCommand : uint64_t {
  kLoad,       // model, path, threads, max_batch, check_tensors
  kUnload,     // model
  kCreate,     // model, conversation, max_length, row type
  kFork,       // conversation, number of the fork
  kRewind,     // conversation, position
  kTrim,       // conversation, rewind
  kReplace,    // conversation, snapshot
  kDrop,       // conversation
  kSaveParts,  // conversation, seed
  kLoadParts,  // unused conversation, seed, tokens, sizes of parts
  kForward,    // model, whether a step that fails ends the batch, steps;
               // of each: conversation, its length, tokens, logit_rows
  kEmbed,      // model, texts; of each: tokens
  kStop,
};

class RankMessage {
 public:
  void Add(RankCommand command) { Add(static_cast<uint64_t>(command)); }
  void Add(uint64_t value) { AddBytes(&value, sizeof(value)); }
  template <class T>
  void AddArray(absl::Span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Add(values.size());
    AddBytes(values.data(), values.size() * sizeof(T));
  }
  void AddText(absl::string_view text) { AddArray(absl::MakeConstSpan(text.data(), text.size())); }
  void Append(const RankMessage& other) { AddBytes(other.bytes_.data(), other.bytes_.size()); }

  // Makes room for so many fields more, so that adding them needs no memory.
  void Reserve(size_t fields) {
    const size_t size = bytes_.size() + fields * sizeof(uint64_t);
    if (size > bytes_.capacity()) bytes_.reserve(std::max(size, 2 * bytes_.capacity()));
  }
  // Keeps the memory.
  void Clear() { bytes_.clear(); }

  // Sends it from the first rank to the others, which wait in Receive for any time.
  void Send(Ranks& ranks) const;

 private:
  void AddBytes(const void* data, size_t size) {
    const char* const bytes = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }

  std::vector<char> bytes_;
};

// A message at a rank that received it.
class ReceivedMessage {
 public:
  static ReceivedMessage Receive(Ranks& ranks);

  bool empty() const { return at_ == bytes_.size(); }
  uint64_t Take() {
    uint64_t value = 0;
    TakeBytes(&value, sizeof(value));
    return value;
  }
  RankCommand TakeCommand() { return static_cast<RankCommand>(Take()); }
  template <class T>
  std::vector<T> TakeArray() {
    std::vector<T> values(Take());
    TakeBytes(values.data(), values.size() * sizeof(T));
    return values;
  }
  std::string TakeText() {
    const std::vector<char> text = TakeArray<char>();
    return std::string(text.begin(), text.end());
  }

 private:
  void TakeBytes(void* data, size_t size) {
    assert(size <= bytes_.size() - at_);
    if (size > 0) std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
  }

  std::vector<char> bytes_;
  size_t at_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_MESSAGE_H_

// A string of which every byte remembers whether the template or a message wrote it.
#ifndef INLAY_IO_TEMPLATE_TEXT_H_
#define INLAY_IO_TEMPLATE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay::jinja {

// Who wrote a byte. Only what the template wrote (or the caller set, as the text of a BOS token)
// may become a control token; what is a message's stays text, whatever it looks like.
enum class Origin : uint8_t { kTemplate, kMessage };

// The bytes from the end of the run before it up to `end` have one origin.
struct OriginRun {
  size_t end;
  Origin origin;

  friend bool operator==(const OriginRun&, const OriginRun&) = default;
};

// Bytes with origins. Adjacent runs have different origins and none is empty, so that equal texts
// have equal runs.
class Text {
 public:
  Text() = default;
  Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
    single_ = {bytes_.size(), origin};
  }

  absl::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // What the text takes in memory beside itself.
  size_t memory() const { return bytes_.size() + runs_.size() * sizeof(OriginRun); }
  absl::Span<const OriginRun> runs() const {
    if (!runs_.empty()) return runs_;
    return absl::Span<const OriginRun>(&single_, bytes_.empty() ? 0 : 1);
  }
  // Whether any byte is a message's.
  bool HasMessage() const;
  // The origin of an empty text is the template.
  Origin OriginAt(size_t byte) const;

  void Append(absl::string_view bytes, Origin origin);
  void Append(const Text& text) { AppendPart(text, 0, text.size()); }
  // The bytes [begin, end) of `text`, which must not be this text itself.
  void AppendPart(const Text& text, size_t begin, size_t end);
  Text Part(size_t begin, size_t end) const;

  std::string TakeBytes() && { return std::move(bytes_); }

 private:
  std::string bytes_;
  OriginRun single_ = {0, Origin::kTemplate};  // when there is one run, as in most texts
  std::vector<OriginRun> runs_;                // when there are more
};

// The origins of a text's bytes from left to right, each at once.
class OriginReader {
 public:
  explicit OriginReader(const Text& text) : runs_(text.runs()) {}

  // `byte` must be in the text and not before that of the last call.
  Origin At(size_t byte) {
    while (runs_[run_].end <= byte) ++run_;
    return runs_[run_].origin;
  }

 private:
  absl::Span<const OriginRun> runs_;
  size_t run_ = 0;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_TEXT_H_

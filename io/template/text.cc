#include "io/template/text.h"

#include <algorithm>
#include <cassert>

namespace inlay::jinja {

bool Text::HasMessage() const {
  const absl::Span<const OriginRun> all = runs();
  return std::any_of(all.begin(), all.end(),
                     [](const OriginRun& run) { return run.origin == Origin::kMessage; });
}

Origin Text::OriginAt(size_t byte) const {
  const absl::Span<const OriginRun> all = runs();
  const auto run = std::upper_bound(all.begin(), all.end(), byte,
                                    [](size_t at, const OriginRun& r) { return at < r.end; });
  return run == all.end() ? Origin::kTemplate : run->origin;
}

void Text::Append(absl::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  const bool first = bytes_.empty();
  bytes_.append(bytes.data(), bytes.size());
  OriginRun& last = runs_.empty() ? single_ : runs_.back();
  if (first || last.origin == origin) {
    last = {bytes_.size(), origin};
    return;
  }
  if (runs_.empty()) runs_.push_back(single_);
  runs_.push_back({bytes_.size(), origin});
}

void Text::AppendPart(const Text& text, size_t begin, size_t end) {
  assert(&text != this && begin <= end && end <= text.size());
  const absl::Span<const OriginRun> all = text.runs();
  auto run = std::upper_bound(all.begin(), all.end(), begin,
                              [](size_t at, const OriginRun& r) { return at < r.end; });
  while (begin < end) {
    const size_t stop = std::min(end, run->end);
    Append(text.bytes().substr(begin, stop - begin), run->origin);
    begin = stop;
    ++run;
  }
}

Text Text::Part(size_t begin, size_t end) const {
  Text part;
  part.AppendPart(*this, begin, end);
  return part;
}

}  // namespace inlay::jinja

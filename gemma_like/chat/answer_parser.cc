#include "gemma_like/chat/answer_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace inlay {

// Turns what a reader finds into events.
class AnswerParser::Sink : public CallSink {
 public:
  explicit Sink(AnswerParser& parser) : parser_(parser) {}
  void Begin(absl::string_view name) override {
    ++parser_.next_call_;
    parser_.Add(AnswerEvent::Kind::kCallBegin, name);
  }
  void Arguments(absl::string_view bytes) override {
    parser_.Add(AnswerEvent::Kind::kCallArguments, bytes);
  }
  void End() override {
    parser_.Add(AnswerEvent::Kind::kCallEnd, "");
    parser_.call_text_.clear();
    parser_.space_.clear();
    parser_.skips_space_ = true;
    ended_ = true;
  }
  bool ended() const { return ended_; }

 private:
  AnswerParser& parser_;
  bool ended_ = false;
};

AnswerParser::AnswerParser(const AnswerFormat& format, AnswerParserOptions options)
    : format_(format),
      options_(std::move(options)),
      thinking_(options_.in_thinking),
      thought_(options_.in_thinking),
      thinking_new_(options_.in_thinking),
      skips_space_(options_.in_thinking) {}

AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

std::vector<AnswerEvent> AnswerParser::Push(absl::string_view piece) {
  for (const char c : piece) Take(c);
  return std::exchange(events_, {});
}

std::vector<AnswerEvent> AnswerParser::Finish() {
  // What is read anew may have another call that is not whole.
  while (reader_ != nullptr) FailCall();
  // Only now it is certain that no marker follows.
  for (const char c : std::exchange(held_, "")) Emit(c);
  const auto kind = thinking_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText;
  Add(kind, std::exchange(space_, ""));
  return std::exchange(events_, {});
}

void AnswerParser::Take(char c) {
  if (reader_ != nullptr) {
    TakeInCall(c);
    return;
  }
  held_.push_back(c);
  while (!held_.empty()) {
    const Marker marker = FindMarker();
    if (marker == Marker::kPart) return;
    if (marker != Marker::kNone) {
      Enter(marker);
      return;
    }
    const char first = held_[0];
    held_.erase(0, 1);
    Emit(first);
  }
}

AnswerParser::Marker AnswerParser::FindMarker() const {
  bool part = false;
  const auto is = [&](absl::string_view marker) {
    if (!absl::StartsWith(marker, held_)) return false;
    part |= marker.size() > held_.size();
    return marker.size() == held_.size();
  };
  if (thinking_) {
    if (is(format_.think_end)) return Marker::kThinkEnd;
    if (thinking_new_ && is(format_.think_begin)) return Marker::kThinkBegin;
    return part ? Marker::kPart : Marker::kNone;
  }
  if ((format_.thinks_anywhere || !text_seen_) && is(format_.think_begin))
    return Marker::kThinkBegin;
  if (thought_ && !text_open_ && is(format_.text_begin)) return Marker::kTextBegin;
  if (text_open_ && is(format_.text_end)) return Marker::kTextEnd;
  if (options_.calls && is(format_.call_begin)) return Marker::kCallBegin;
  if (calls_ended_ && is(format_.call_end)) return Marker::kCallEnd;
  return part ? Marker::kPart : Marker::kNone;
}

void AnswerParser::Enter(Marker marker) {
  if (marker == Marker::kCallBegin) {
    // The white space before it is kept until it is certain that this is a call.
    call_text_ = std::exchange(held_, "");
    reader_ = MakeCallReader(format_, options_.tools);
    calls_ended_ = false;
    return;
  }
  held_.clear();
  space_.clear();
  skips_space_ = true;
  calls_ended_ = false;
  switch (marker) {
    case Marker::kThinkBegin:
      thinking_ = true;
      thinking_new_ = !thought_;
      thought_ = true;
      break;
    case Marker::kThinkEnd:
      thinking_ = false;
      break;
    case Marker::kTextBegin:
    case Marker::kTextEnd:
      text_open_ = marker == Marker::kTextBegin;
      break;
    default:
      break;
  }
}

void AnswerParser::TakeInCall(char c) {
  Sink sink(*this);
  const CallReader::State state = reader_->Push(c, sink);
  if (state == CallReader::State::kRefused) {
    FailCall();
    Take(c);
    return;
  }
  if (!sink.ended()) call_text_.push_back(c);
  if (state == CallReader::State::kMore) return;
  reader_ = nullptr;
  call_text_.clear();
  calls_ended_ = state == CallReader::State::kEnded;
}

void AnswerParser::FailCall() {
  const std::string text = std::exchange(call_text_, "");
  Sink sink(*this);
  const size_t taken = text.size() - reader_->GiveUp(sink);
  reader_ = nullptr;
  size_t size = taken;
  if (!sink.ended()) {
    // Another call may have begun with the last bytes.
    size -= std::min(size, format_.call_begin.size() - 1);
    while (
        !absl::StartsWith(format_.call_begin, absl::string_view(text).substr(size, taken - size)))
      ++size;
    for (const char c : absl::string_view(text).substr(0, size)) Emit(c);
  }
  for (const char c : absl::string_view(text).substr(size)) Take(c);
}

void AnswerParser::Emit(char c) {
  if (absl::ascii_isspace(c)) {
    if (!skips_space_) space_.push_back(c);
    return;
  }
  const auto kind = thinking_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText;
  Add(kind, std::exchange(space_, ""));
  Add(kind, absl::string_view(&c, 1));
  skips_space_ = false;
  calls_ended_ = false;
  if (thinking_) {
    thinking_new_ = false;
  } else {
    text_seen_ = true;
  }
}

void AnswerParser::Add(AnswerEvent::Kind kind, absl::string_view text) {
  const bool of_call = kind != AnswerEvent::Kind::kText && kind != AnswerEvent::Kind::kReasoning;
  const bool grows = kind != AnswerEvent::Kind::kCallBegin && kind != AnswerEvent::Kind::kCallEnd;
  if (grows && text.empty()) return;
  const size_t call = of_call ? next_call_ - 1 : 0;
  if (grows && !events_.empty() && events_.back().kind == kind && events_.back().call == call) {
    absl::StrAppend(&events_.back().text, text);
    return;
  }
  events_.push_back({.kind = kind, .text = std::string(text), .call = call});
}

}  // namespace inlay

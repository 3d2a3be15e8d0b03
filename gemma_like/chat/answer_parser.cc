#include "gemma_like/chat/answer_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemma_like/chat/call_blocks.h"

namespace inlay {
namespace {

// Most bytes of thoughts held back while it is undecided whether they hold calls.
constexpr size_t kMostDraft = size_t{64} << 10;

}  // namespace

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
    if (parser_.thinking_) absl::StrAppend(&parser_.draft_, parser_.space_, parser_.call_text_);
    parser_.call_text_.clear();
    parser_.LeaveOut(std::exchange(parser_.space_, ""));
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
      skips_space_(options_.in_thinking) {
  if (format_.calls == CallSyntax::kTagged && options_.calls)
    functions_ = FunctionNames(options_.tools);
}

AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

std::vector<AnswerEvent> AnswerParser::Push(absl::string_view piece) {
  for (const char c : piece) Take(c);
  return std::exchange(events_, {});
}

std::vector<AnswerEvent> AnswerParser::Finish(bool ended) {
  // What is read anew may have another call that is not whole.
  while (reader_ != nullptr) {
    Sink sink(*this);
    if (!reader_->Finish(sink)) {
      FailCall();
      continue;
    }
    reader_ = nullptr;
    if (thinking_) draft_ += call_text_;
    call_text_.clear();
  }
  // Only now it is certain that no marker follows.
  for (const char c : std::exchange(held_, "")) Emit(c);
  if (!ended) DropDraft();
  const auto kind = thinking_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText;
  Add(kind, std::exchange(space_, ""));
  // The thoughts did not end behind these calls, so that they are no drafts.
  for (AnswerEvent& event : std::exchange(draft_events_, {})) events_.push_back(std::move(event));
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
  } else {
    if ((format_.thinks_anywhere || !text_seen_) && is(format_.think_begin))
      return Marker::kThinkBegin;
    if (thought_ && !text_open_ && is(format_.text_begin)) return Marker::kTextBegin;
    if (text_open_ && is(format_.text_end)) return Marker::kTextEnd;
  }
  if (options_.calls && is(format_.call_begin)) return Marker::kCallBegin;
  if (calls_ended_ && is(format_.call_end)) return Marker::kCallEnd;
  return part ? Marker::kPart : FindBareCall();
}

AnswerParser::Marker AnswerParser::FindBareCall() const {
  if (functions_.empty()) return Marker::kNone;
  absl::string_view name = held_;
  if (!absl::ConsumePrefix(&name, kFunction))
    return absl::StartsWith(kFunction, held_) ? Marker::kPart : Marker::kNone;
  const bool ends = absl::ConsumeSuffix(&name, ">");
  for (const std::string& function : functions_) {
    if (ends && function == name) return Marker::kBareCallBegin;
    if (!ends && absl::StartsWith(function, name)) return Marker::kPart;
  }
  return Marker::kNone;
}

void AnswerParser::Enter(Marker marker) {
  if (marker == Marker::kCallBegin || marker == Marker::kBareCallBegin) {
    // The white space before it is kept until it is certain that this is a call.
    call_text_ = std::exchange(held_, "");
    if (marker == Marker::kCallBegin) {
      reader_ = MakeCallReader(format_, options_.tools);
    } else {
      reader_ = MakeBareCallReader(format_, options_.tools);
      Sink sink(*this);
      for (const char c : call_text_) reader_->Push(c, sink);
    }
    calls_ended_ = false;
    thinking_new_ = false;
    return;
  }
  if (thinking_ && marker == Marker::kCallEnd) draft_ += held_;
  held_.clear();
  LeaveOut(std::exchange(space_, ""));
  skips_space_ = true;
  calls_ended_ = marker == Marker::kCallEnd;
  switch (marker) {
    case Marker::kThinkBegin:
      thinking_ = true;
      thinking_new_ = !thought_;
      thought_ = true;
      break;
    case Marker::kThinkEnd:
      absl::StripTrailingAsciiWhitespace(&draft_);
      DropDraft();
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
  call_text_.push_back(c);
  Sink sink(*this);
  const CallReader::State state = reader_->Push(c, sink);
  if (state == CallReader::State::kRefused) {
    call_text_.pop_back();
    FailCall();
    Take(c);
    return;
  }
  if (state == CallReader::State::kMore) {
    if (thinking_) CheckDraft();
    return;
  }
  reader_ = nullptr;
  calls_ended_ = true;
  const std::string text = std::exchange(call_text_, "");
  if (state == CallReader::State::kEndedBefore) {
    for (const char byte : text) Take(byte);
  } else if (thinking_) {
    draft_ += text;
  }
}

void AnswerParser::FailCall() {
  const std::string text = std::exchange(call_text_, "");
  Sink sink(*this);
  const size_t taken = text.size() - reader_->GiveUp(sink);
  reader_ = nullptr;
  if (!sink.ended()) return TakeAsNoCall(text, taken);
  if (thinking_) draft_ += text.substr(0, taken);
  for (const char c : absl::string_view(text).substr(taken)) Take(c);
}

void AnswerParser::TakeAsNoCall(absl::string_view text, size_t size) {
  // Another marker may have begun with the last bytes.
  const size_t longest = std::max(format_.call_begin.size(), format_.think_end.size());
  size_t plain = size - std::min(size, longest - 1);
  while (plain < size && !MayBeginMarker(text.substr(plain, size - plain))) ++plain;
  for (const char c : text.substr(0, plain)) Emit(c);
  for (const char c : text.substr(plain)) Take(c);
}

bool AnswerParser::MayBeginMarker(absl::string_view text) const {
  const auto begins = [&](absl::string_view marker) {
    return marker.size() > text.size() && absl::StartsWith(marker, text);
  };
  return begins(format_.call_begin) || (thinking_ && begins(format_.think_end));
}

void AnswerParser::CheckDraft() {
  const absl::string_view end = format_.think_end;
  const bool ends = !end.empty() && absl::EndsWith(call_text_, end);
  if (!ends && draft_.size() + call_text_.size() <= kMostDraft) return;
  std::string text = std::exchange(call_text_, "");
  reader_ = nullptr;
  if (!ends) return TakeAsNoCall(text, text.size());
  text.resize(text.size() - end.size());
  for (const char c : text) Emit(c);
  Enter(Marker::kThinkEnd);
}

void AnswerParser::DropDraft() {
  if (draft_.empty() && draft_events_.empty()) return;
  if (!draft_events_.empty()) next_call_ = draft_events_.front().call;
  draft_events_.clear();
  Add(AnswerEvent::Kind::kReasoning, std::exchange(draft_, ""));
}

void AnswerParser::Emit(char c) {
  if (absl::ascii_isspace(c)) {
    if (!skips_space_) {
      space_.push_back(c);
    } else if (!draft_.empty()) {
      draft_.push_back(c);
    } else {
      LeaveOut(absl::string_view(&c, 1));
    }
    return;
  }
  DropDraft();
  const auto kind = thinking_ ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText;
  if (!thinking_) {
    if (text_seen_) Add(kind, gap_);
    gap_.clear();
  }
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

void AnswerParser::LeaveOut(absl::string_view space) {
  if (thinking_ || space.empty()) return;
  if (absl::StrContains(space, '\n')) gap_ = "\n";
  if (gap_.empty()) gap_ = " ";
}

void AnswerParser::Add(AnswerEvent::Kind kind, absl::string_view text) {
  const bool of_call = kind != AnswerEvent::Kind::kText && kind != AnswerEvent::Kind::kReasoning;
  const bool grows = kind != AnswerEvent::Kind::kCallBegin && kind != AnswerEvent::Kind::kCallEnd;
  if (grows && text.empty()) return;
  const size_t call = of_call ? next_call_ - 1 : 0;
  std::vector<AnswerEvent>& events = of_call && thinking_ ? draft_events_ : events_;
  if (grows && !events.empty() && events.back().kind == kind && events.back().call == call) {
    absl::StrAppend(&events.back().text, text);
    return;
  }
  events.push_back({.kind = kind, .text = std::string(text), .call = call});
}

}  // namespace inlay

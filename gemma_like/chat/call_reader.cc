#include "gemma_like/chat/call_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "gemma_like/chat/call_blocks.h"

namespace inlay {
namespace {

// Whether a block ends within a text so far: a marker in quotes is part of the text.
class OpenText {
 public:
  explicit OpenText(const AnswerFormat& format) : format_(format) {}

  // `block` has one byte more than in the last call.
  void Read(absl::string_view block) {
    if (format_.calls == CallSyntax::kPython) {
      ReadPython(block.back());
    } else if (format_.calls == CallSyntax::kEscapedText && absl::EndsWith(block, format_.quote)) {
      open_ = !open_;
    }
  }
  bool open() const { return open_; }

 private:
  void ReadPython(char c) {
    if (!open_) {
      open_ = c == '\'' || c == '"';
      quote_ = c;
    } else if (escaped_ || c == '\\') {
      escaped_ = !escaped_;
    } else {
      open_ = c != quote_;
    }
  }

  const AnswerFormat& format_;
  bool open_ = false;
  char quote_ = '\0';     // of kPython
  bool escaped_ = false;  // after a backslash in kPython
};

class BlockCallReader : public CallReader {
 public:
  BlockCallReader(const AnswerFormat& format, jinja::Value tools)
      : format_(format), tools_(std::move(tools)), head_(HeadOf(format.calls)), text_(format_) {}

  State Push(char c, CallSink& sink) override {
    // What is no call shows at once.
    if (!head_.empty() && (in_head_ || !absl::ascii_isspace(c))) {
      if (c != head_[0]) return State::kRefused;
      head_.remove_prefix(1);
      in_head_ = true;
    }
    block_.push_back(c);
    text_.Read(block_);
    if (!absl::EndsWith(block_, format_.call_end)) return State::kMore;
    const auto body = absl::string_view(block_).substr(0, block_.size() - format_.call_end.size());
    // Text in a call may be about such markers.
    const bool tagged = format_.calls == CallSyntax::kTagged;
    if (tagged && !absl::EndsWith(absl::StripTrailingAsciiWhitespace(body), "</function>"))
      return State::kMore;
    if (format_.calls == CallSyntax::kEscapedText && text_.open()) return State::kMore;
    std::vector<ParsedCall> calls;
    if (!Parse(body, &calls)) {
      // Of Python, where models leave quotes within texts bare, text_ is only a guess: it counts
      // where parsing failed. So few tries keep the time linear.
      constexpr int kMostTries = 16;
      return text_.open() && ++tries_ < kMostTries ? State::kMore : State::kRefused;
    }
    for (const ParsedCall& call : calls) {
      sink.Begin(call.name);
      sink.Arguments(call.arguments);
      sink.End();
    }
    return State::kEndedMarker;
  }

 private:
  static absl::string_view HeadOf(CallSyntax syntax) {
    if (syntax == CallSyntax::kTagged) return "<function=";
    return syntax == CallSyntax::kPython ? "[" : "call:";
  }

  bool Parse(absl::string_view body, std::vector<ParsedCall>* calls) const {
    if (format_.calls == CallSyntax::kTagged) return ParseTaggedCalls(body, tools_, calls);
    if (format_.calls == CallSyntax::kPython) return ParsePythonCalls(body, calls);
    return ParseEscapedCall(body, format_.quote, calls);
  }

  const AnswerFormat format_;
  const jinja::Value tools_;
  absl::string_view head_;  // what the block must go on with
  bool in_head_ = false;
  std::string block_;
  OpenText text_;
  int tries_ = 0;  // that found no call
};

// JSON or the family's own syntax: the first byte of tags tells, and of Python the first two.
class EitherCallReader : public CallReader {
 public:
  EitherCallReader(const AnswerFormat& format, jinja::Value tools)
      : format_(format), tools_(std::move(tools)) {}

  State Push(char c, CallSink& sink) override {
    if (reader_ != nullptr) return reader_->Push(c, sink);
    if (absl::ascii_isspace(c)) return State::kMore;
    const bool python = format_.calls == CallSyntax::kPython;
    if (python && c == '[' && !in_list_) {  // of objects or of Python's calls
      in_list_ = true;
      return State::kMore;
    }
    const bool json = python ? c == '{' : c != '<';
    reader_ = json ? MakeJsonCallReader(/*named=*/false)
                   : MakeBlockCallReader(format_, std::move(tools_));
    if (in_list_) reader_->Push('[', sink);
    return reader_->Push(c, sink);
  }

 private:
  const AnswerFormat format_;
  jinja::Value tools_;
  bool in_list_ = false;
  std::unique_ptr<CallReader> reader_;
};

}  // namespace

std::unique_ptr<CallReader> MakeBlockCallReader(const AnswerFormat& format, jinja::Value tools) {
  return std::make_unique<BlockCallReader>(format, std::move(tools));
}

std::unique_ptr<CallReader> MakeCallReader(const AnswerFormat& format, jinja::Value tools) {
  switch (format.calls) {
    case CallSyntax::kJson:
    case CallSyntax::kNamedJson:
      return MakeJsonCallReader(format.calls == CallSyntax::kNamedJson);
    case CallSyntax::kTagged:
    case CallSyntax::kPython:
      return std::make_unique<EitherCallReader>(format, std::move(tools));
    default:
      return MakeBlockCallReader(format, std::move(tools));
  }
}

}  // namespace inlay

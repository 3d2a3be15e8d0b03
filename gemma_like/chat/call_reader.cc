#include "gemma_like/chat/call_reader.h"

#include <cstddef>
#include <cstdint>
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

  enum class Seen : uint8_t {
    kNothing,
    kText,    // a text of kEscapedText ended before this byte
    kNoText,  // it would have: but this byte cannot follow one, so that a quote is missing
  };

  // `block` has one byte more than in the last call.
  Seen Read(absl::string_view block) {
    if (format_.calls == CallSyntax::kEscapedText) return ReadEscaped(block);
    if (format_.calls == CallSyntax::kPython) ReadPython(block.back());
    return Seen::kNothing;
  }
  bool open() const { return open_; }

 private:
  void ReadPython(char c) {
    if (escaped_ || (open_ && c == '\\')) {
      escaped_ = !escaped_;
      quotes_ = 0;
    } else if (open_ ? c == quote_ : c == '\'' || c == '"') {
      quotes_ = c == quote_ ? quotes_ + 1 : 1;
      quote_ = c;
      TakeQuote();
    } else {
      quotes_ = 0;
    }
  }

  // Two quotes are an empty text, but with a third one they begin a text that three quotes end.
  void TakeQuote() {
    if (three_ && quotes_ < 3) return;
    three_ = !open_ && quotes_ == 3;
    open_ = !open_;
    if (quotes_ == 3) quotes_ = 0;
  }

  Seen ReadEscaped(absl::string_view block) {
    const char c = block.back();
    const bool follows = closed_ && !absl::ascii_isspace(c);
    if (follows) closed_ = false;
    if (absl::EndsWith(block, format_.quote)) {
      closed_ = open_;
      open_ = !open_;
    }
    if (!follows) return Seen::kNothing;
    return absl::StrContains(",:}]", c) ? Seen::kText : Seen::kNoText;
  }

  const AnswerFormat& format_;
  bool open_ = false;
  // Of kPython.
  char quote_ = '\0';
  bool three_ = false;    // three quotes end the text
  int quotes_ = 0;        // how many of them came last
  bool escaped_ = false;  // after a backslash
  bool closed_ = false;   // nothing but white space came since a text of kEscapedText
};

class BlockCallReader : public CallReader {
 public:
  // `bare`: a function of kTagged without markers.
  BlockCallReader(const AnswerFormat& format, jinja::Value tools, bool bare)
      : format_(format),
        tools_(std::move(tools)),
        bare_(bare),
        head_(HeadOf(format.calls)),
        text_(format_) {}

  State Push(char c, CallSink& sink) override {
    // What is no call shows at once.
    if (!head_.empty() && (in_head_ || !absl::ascii_isspace(c))) {
      if (c != head_[0]) return State::kRefused;
      head_.remove_prefix(1);
      in_head_ = true;
    } else if (head_.empty() && format_.calls == CallSyntax::kTagged && !TakeFunction(c)) {
      return State::kRefused;
    }
    block_.push_back(c);
    const OpenText::Seen seen = text_.Read(block_);
    if (seen == OpenText::Seen::kNoText && first_end_ != 0) return Refuse();
    if (seen == OpenText::Seen::kText) first_end_ = 0;
    if (bare_ && absl::EndsWith(block_, format_.call_begin)) return Refuse();
    return absl::EndsWith(block_, End()) ? EndOfBlock(sink) : State::kMore;
  }

  bool Finish(CallSink& sink) override {
    std::vector<ParsedCall> calls;
    bool open = false;  // but no text goes on any more
    if (!Parse(block_, &calls, &open)) return false;
    PassOn(calls, sink);
    return true;
  }

  size_t GiveUp(CallSink& sink) override {
    if (first_end_ == 0) return 0;
    PassOn(first_calls_, sink);
    return block_.size() - first_end_;
  }

 private:
  // Markers at which a whole block is parsed that may go on: of Python, where models leave quotes
  // within texts bare, so that text_ is only a guess, and of tags within a parameter. So few tries
  // keep the time linear.
  static constexpr int kMostTries = 16;

  static absl::string_view HeadOf(CallSyntax syntax) {
    if (syntax == CallSyntax::kTagged) return kFunction;
    return syntax == CallSyntax::kPython ? "[" : "call:";
  }

  // The next byte of tags, after the head: false where it cannot come between the function's name
  // and its first parameter or its end.
  bool TakeFunction(char c) {
    if (in_name_) {
      in_name_ = c != '>';
      return c != '<';
    }
    if (in_body_ || (first_tag_.empty() && absl::ascii_isspace(c))) return true;
    first_tag_.push_back(c);
    in_body_ = first_tag_ == kParameter || first_tag_ == kEndFunction;
    return absl::StartsWith(kParameter, first_tag_) || absl::StartsWith(kEndFunction, first_tag_);
  }

  absl::string_view End() const { return bare_ ? kEndFunction : format_.call_end; }

  static void PassOn(const std::vector<ParsedCall>& calls, CallSink& sink) {
    for (const ParsedCall& call : calls) {
      sink.Begin(call.name);
      sink.Arguments(call.arguments);
      sink.End();
    }
  }

  // The last byte is not taken.
  State Refuse() {
    block_.pop_back();
    return State::kRefused;
  }

  // The block ends with the marker, which may be of a text.
  State EndOfBlock(CallSink& sink) {
    absl::string_view body = block_;
    if (!bare_) body.remove_suffix(End().size());
    if (format_.calls == CallSyntax::kTagged) return EndOfTags(body, sink);
    if (format_.calls == CallSyntax::kEscapedText && text_.open()) {
      if (first_end_ == 0) first_end_ = block_.size();
      return State::kMore;
    }
    std::vector<ParsedCall> calls;
    bool open = false;
    if (!Parse(body, &calls, &open))
      return text_.open() && ++tries_ < kMostTries ? State::kMore : Refuse();
    PassOn(calls, sink);
    return State::kEnded;
  }

  // `open` as of ParseTaggedCalls.
  bool Parse(absl::string_view body, std::vector<ParsedCall>* calls, bool* open) const {
    if (format_.calls == CallSyntax::kPython) return ParsePythonCalls(body, calls);
    if (format_.calls == CallSyntax::kEscapedText)
      return ParseEscapedCall(body, format_.quote, calls);
    const size_t behind = first_end_ == 0 ? 0 : body.size() - first_end_;
    return ParseTaggedCalls(body, tools_, behind, calls, open);
  }

  State EndOfTags(absl::string_view body, CallSink& sink) {
    if (!absl::EndsWith(absl::StripTrailingAsciiWhitespace(body), kEndFunction))
      return State::kMore;
    std::vector<ParsedCall> calls;
    bool open = false;
    const bool parsed = Parse(body, &calls, &open);
    if (open) {
      if (++tries_ == kMostTries) return Refuse();
      if (first_end_ == 0) {
        first_end_ = block_.size();
        if (parsed) first_calls_ = std::move(calls);
      }
      return State::kMore;
    }
    if (!parsed) return Refuse();
    PassOn(calls, sink);
    return State::kEnded;
  }

  const AnswerFormat format_;
  const jinja::Value tools_;
  const bool bare_;
  absl::string_view head_;  // what the block must go on with
  bool in_head_ = false;
  // Of tags: what comes first after the name.
  bool in_name_ = true;
  std::string first_tag_;
  bool in_body_ = false;  // that tag is whole
  std::string block_;
  OpenText text_;
  int tries_ = 0;  // that found no call
  // Behind the first marker in what may be a text of kEscapedText or a parameter of tags; 0: there
  // is none. If that is no text, the block ends there.
  size_t first_end_ = 0;
  std::vector<ParsedCall> first_calls_;  // of the block up to there, in tags
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
    reader_ = json ? MakeJsonCallReader(format_) : MakeBlockCallReader(format_, std::move(tools_));
    if (in_list_) reader_->Push('[', sink);
    return reader_->Push(c, sink);
  }

  bool Finish(CallSink& sink) override { return reader_ != nullptr && reader_->Finish(sink); }
  size_t GiveUp(CallSink& sink) override { return reader_ == nullptr ? 0 : reader_->GiveUp(sink); }

 private:
  const AnswerFormat format_;
  jinja::Value tools_;
  bool in_list_ = false;
  std::unique_ptr<CallReader> reader_;
};

}  // namespace

std::unique_ptr<CallReader> MakeBlockCallReader(const AnswerFormat& format, jinja::Value tools) {
  return std::make_unique<BlockCallReader>(format, std::move(tools), /*bare=*/false);
}

std::unique_ptr<CallReader> MakeBareCallReader(const AnswerFormat& format, jinja::Value tools) {
  return std::make_unique<BlockCallReader>(format, std::move(tools), /*bare=*/true);
}

std::unique_ptr<CallReader> MakeCallReader(const AnswerFormat& format, jinja::Value tools) {
  switch (format.calls) {
    case CallSyntax::kJson:
    case CallSyntax::kNamedJson:
      return MakeJsonCallReader(format);
    case CallSyntax::kTagged:
    case CallSyntax::kPython:
      return std::make_unique<EitherCallReader>(format, std::move(tools));
    default:
      return MakeBlockCallReader(format, std::move(tools));
  }
}

}  // namespace inlay

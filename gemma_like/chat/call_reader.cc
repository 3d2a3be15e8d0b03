#include "gemma_like/chat/call_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "gemma_like/chat/call_blocks.h"

namespace inlay {
namespace {

class BlockCallReader : public CallReader {
 public:
  BlockCallReader(const AnswerFormat& format, jinja::Value tools)
      : format_(format), tools_(std::move(tools)), head_(HeadOf(format.calls)) {}

  State Push(char c, CallSink& sink) override {
    // What is no call shows at once.
    if (!head_.empty() && (in_head_ || !absl::ascii_isspace(c))) {
      if (c != head_[0]) return State::kRefused;
      head_.remove_prefix(1);
      in_head_ = true;
    }
    block_.push_back(c);
    if (!absl::EndsWith(block_, format_.call_end)) return State::kMore;
    const auto body = absl::string_view(block_).substr(0, block_.size() - format_.call_end.size());
    // Text in a call may be about such markers.
    const bool tagged = format_.calls == CallSyntax::kTagged;
    if (tagged && !absl::EndsWith(absl::StripTrailingAsciiWhitespace(body), "</function>"))
      return State::kMore;
    std::vector<ParsedCall> calls;
    if (!Parse(body, &calls)) return State::kRefused;
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
};

// JSON or tags.
class TaggedCallReader : public CallReader {
 public:
  TaggedCallReader(const AnswerFormat& format, jinja::Value tools)
      : format_(format), tools_(std::move(tools)) {}

  State Push(char c, CallSink& sink) override {
    if (reader_ == nullptr) {
      if (absl::ascii_isspace(c)) return State::kMore;
      reader_ = c == '<' ? MakeBlockCallReader(format_, std::move(tools_))
                         : MakeJsonCallReader(/*named=*/false);
    }
    return reader_->Push(c, sink);
  }

 private:
  const AnswerFormat format_;
  jinja::Value tools_;
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
      return std::make_unique<TaggedCallReader>(format, std::move(tools));
    default:
      return MakeBlockCallReader(format, std::move(tools));
  }
}

}  // namespace inlay

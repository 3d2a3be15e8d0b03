// Anthropic: the reply of POST /v1/messages.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "serve/api/reply_parts.h"
#include "serve/api/sealed_reasoning.h"
#include "serve/api/sse.h"

namespace inlay::serve {
namespace {

// Stands by thoughts where the protocol has a signature, which nothing here checks. Clients send
// back only thoughts with one. Thoughts that are not shown are in it themselves.
constexpr char kSignature[] = "inlay";

// Blocks follow each other: each event belongs to the one that is open or begins the next.
class MessagesWriter : public ReplyWriter {
 public:
  MessagesWriter(const Call& call, const ReplyHeader& header) : call_(call), header_(header) {}

  std::string Begin(size_t prompt_tokens, size_t cached_tokens) override {
    usage_.prompt_tokens = prompt_tokens;
    usage_.cached_tokens = cached_tokens;
    return absl::StrCat(Event({{"type", "message_start"}, {"message", Message()}}), Ping());
  }

  std::string Update(const ReplyUpdate& update) override {
    std::string out;
    for (const AnswerEvent& event : update.events) out += Add(event);
    return out;
  }

  std::string End(const ReplyEnd& end) override {
    usage_ = end.usage;
    std::string out = Close();
    stop_reason_ = ReasonOf(end.reason);
    if (end.reason == StopReason::kStopText) stop_sequence_ = end.stop_text;
    return out;
  }

  std::string Finish() override {
    if (!call_.stream) return DumpJson(Message());
    return absl::StrCat(
        Event({{"type", "message_delta"},
               {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
               {"usage", Usage()}}),
        Event({{"type", "message_stop"}}));
  }

  std::string Ping() override { return Event({{"type", "ping"}}); }

  std::string Fail(const absl::Status& status) override {
    return call_.stream ? SseEvent(AnthropicError(status)) : ErrorBody(Protocol::kMessages, status);
  }

 private:
  using Kind = AnswerEvent::Kind;

  std::string Event(const Json& event) const { return call_.stream ? SseEvent(event) : ""; }

  Json Usage() const {
    return {{"input_tokens", usage_.prompt_tokens - usage_.cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", usage_.cached_tokens},
            {"output_tokens", usage_.completion_tokens}};
  }

  // The message so far. Of a streamed one nothing of the content is kept.
  Json Message() const {
    return {{"id", "msg_" + header_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", header_.model},
            {"content", content_},
            {"stop_reason", stop_reason_},
            {"stop_sequence", stop_sequence_},
            {"usage", Usage()},
            {"system_fingerprint", header_.system_fingerprint},
            {"seed", header_.seed}};
  }

  const char* ReasonOf(StopReason reason) const {
    if (reason == StopReason::kStopText) return "stop_sequence";
    if (reason == StopReason::kContextFull) return "model_context_window_exceeded";
    if (IsCut(reason)) return "max_tokens";
    return called_ && !void_ ? "tool_use" : "end_turn";
  }

  std::string Add(const AnswerEvent& event) {
    switch (event.kind) {
      case Kind::kText:
        return AddText(event, {{"type", "text"}, {"text", ""}}, "text_delta", "text");
      case Kind::kReasoning:
        return AddText(event, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}},
                       "thinking_delta", "thinking");
      case Kind::kCallBegin:
        return Open(Kind::kCallBegin, {{"type", "tool_use"},
                                       {"id", CallId("toolu_", header_, 0, event.call)},
                                       {"name", event.text},
                                       {"input", Json::object()}});
      case Kind::kCallArguments:
        if (event.text.empty()) return "";
        if (!call_.stream) arguments_ += event.text;
        return Delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
      case Kind::kCallEnd:
        called_ = true;
        return EndCall();
    }
    return "";
  }

  std::string AddText(const AnswerEvent& event, Json block, const char* type, const char* name) {
    if (event.text.empty()) return "";
    std::string out;
    if (!is_open_ || open_kind_ != event.kind) out = Open(event.kind, std::move(block));
    if (event.kind == Kind::kReasoning && call_.hide_reasoning) {
      hidden_ += event.text;
      return out;
    }
    if (!call_.stream) content_.back()[name].get_ref<std::string&>() += event.text;
    return out + Delta({{"type", type}, {name, event.text}});
  }

  std::string Delta(Json delta) const {
    return Event(
        {{"type", "content_block_delta"}, {"index", opened_ - 1}, {"delta", std::move(delta)}});
  }

  std::string Open(Kind kind, Json block) {
    std::string out = Close();
    is_open_ = true;
    open_kind_ = kind;
    const size_t index = opened_++;
    if (!call_.stream) {
      content_.push_back(std::move(block));
      return out;
    }
    return out + Event({{"type", "content_block_start"},
                        {"index", index},
                        {"content_block", std::move(block)}});
  }

  std::string EndCall() {
    if (!call_.stream) {
      // Arguments that are no object: then there are none.
      const absl::StatusOr<JsonDocument> input = ParseJson("input", std::exchange(arguments_, ""));
      if (input.ok() && (*input)->is_object()) content_.back()["input"] = **input;
    }
    is_open_ = false;
    return BlockStop();
  }

  // Ends the open block, of which nothing more comes: a call that is open still has turned out to
  // be none. A whole reply goes without it, as its text follows; from a stream it cannot be taken
  // back, so that the message must not ask for calls to be made.
  std::string Close() {
    if (!is_open_) return "";
    is_open_ = false;
    std::string out;
    if (open_kind_ == Kind::kCallBegin) {
      arguments_.clear();
      if (!call_.stream) content_.erase(content_.size() - 1);
      void_ = void_ || call_.stream;
    }
    if (open_kind_ == Kind::kReasoning) {
      const std::string signature =
          call_.hide_reasoning ? SealReasoning(std::exchange(hidden_, "")) : kSignature;
      out = Delta({{"type", "signature_delta"}, {"signature", signature}});
      if (!call_.stream) content_.back()["signature"] = signature;
    }
    return out + BlockStop();
  }

  std::string BlockStop() const {
    return Event({{"type", "content_block_stop"}, {"index", opened_ - 1}});
  }

  const Call& call_;
  const ReplyHeader header_;
  ReplyUsage usage_;
  Json content_ = Json::array();  // of a whole reply
  std::string arguments_;         // of the open call of a whole reply
  std::string hidden_;            // of the open thoughts
  size_t opened_ = 0;             // blocks so far
  bool is_open_ = false;          // whether the last of them is
  Kind open_kind_ = Kind::kText;
  bool called_ = false;
  bool void_ = false;  // a call was sent that is none
  Json stop_reason_, stop_sequence_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakeMessagesWriter(const Call& call, const ReplyHeader& header) {
  return std::make_unique<MessagesWriter>(call, header);
}

}  // namespace inlay::serve

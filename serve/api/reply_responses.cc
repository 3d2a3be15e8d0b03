// OpenAI: the reply of POST /v1/responses.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/api/reply_parts.h"
#include "serve/api/sealed_reasoning.h"
#include "serve/api/sse.h"

namespace inlay::serve {
namespace {

// Items follow each other: each event belongs to the one that is open or begins the next.
class ResponsesWriter : public ReplyWriter {
 public:
  ResponsesWriter(const Call& call, const ReplyHeader& header) : call_(call), header_(header) {}

  std::string Begin(size_t, size_t) override {
    std::string out = Event("response.created", {{"response", Response()}});
    out += Event("response.in_progress", {{"response", Response()}});
    return out;
  }

  std::string Update(const ReplyUpdate& update) override {
    std::string out;
    for (const AnswerEvent& event : update.events) out += Add(event);
    return out;
  }

  std::string End(const ReplyEnd& end) override {
    const bool is_cut = IsCut(end.reason);
    std::string out = CloseLast(is_cut ? "incomplete" : "completed");
    status_ = is_cut ? "incomplete" : "completed";
    if (is_cut) incomplete_details_ = {{"reason", "max_output_tokens"}};
    usage_ = {{"input_tokens", end.usage.prompt_tokens},
              {"input_tokens_details", {{"cached_tokens", end.usage.cached_tokens}}},
              {"output_tokens", end.usage.completion_tokens},
              {"output_tokens_details", {{"reasoning_tokens", end.usage.reasoning_tokens}}},
              {"total_tokens", end.usage.prompt_tokens + end.usage.completion_tokens}};
    return out;
  }

  std::string Finish() override {
    if (!call_.stream) return DumpJson(Response());
    return Event(absl::StrCat("response.", status_), {{"response", Response()}});
  }

  std::string Ping() override { return call_.stream ? std::string(kSsePing) : ""; }

  std::string Fail(const absl::Status& status) override {
    if (!call_.stream) return ErrorBody(Protocol::kResponses, status);
    // Clients expect that a response is created before anything becomes of it.
    std::string out = events_ == 0 ? Begin(0, 0) : "";
    status_ = "failed";
    error_ = {{"code", CodeOf(status)}, {"message", std::string(status.message())}};
    return out + Event("response.failed", {{"response", Response()}});
  }

 private:
  using Kind = AnswerEvent::Kind;

  static const char* CodeOf(const absl::Status& status) {
    if (IsTooLong(status)) return "context_length_exceeded";
    if (HttpStatusOf(status) == 429) return "rate_limit_exceeded";
    return HttpStatusOf(status) == 400 ? "invalid_prompt" : "server_error";
  }

  // Events are numbered as they are written: of two, the first must be written first.
  std::string Event(absl::string_view type, const Json& members) {
    if (!call_.stream) return "";
    Json event = {{"type", std::string(type)}, {"sequence_number", events_++}};
    event.update(members);
    return SseEvent(event);
  }

  // An event about the open item.
  std::string ItemEvent(absl::string_view type, const Json& members) {
    if (!call_.stream) return "";
    Json all = {{"item_id", item()["id"]}, {"output_index", output_.size() - 1}};
    all.update(members);
    return Event(type, all);
  }

  // The same about its content, of which there is one part.
  std::string PartEvent(absl::string_view type, const Json& members) {
    Json all = {{"content_index", 0}};
    all.update(members);
    return ItemEvent(type, all);
  }

  // The response so far.
  Json Response() const {
    Json output = Json::array();
    for (size_t i = 0; i < output_.size(); ++i)
      if (!void_.contains(i)) output.push_back(output_[i]);
    Json response = {{"id", "resp_" + header_.id},
                     {"object", "response"},
                     {"created_at", header_.created},
                     {"status", status_},
                     {"background", false},
                     {"error", error_},
                     {"incomplete_details", incomplete_details_},
                     {"model", header_.model},
                     {"output", std::move(output)},
                     {"previous_response_id", nullptr},
                     {"store", false},
                     {"usage", usage_},
                     {"system_fingerprint", header_.system_fingerprint},
                     {"seed", header_.seed}};
    response.update(*call_.repeated);
    return response;
  }

  std::string Add(const AnswerEvent& event) {
    switch (event.kind) {
      case Kind::kText:
        return AddText(event, "response.output_text.delta");
      case Kind::kReasoning:
        return AddText(event, "response.reasoning_text.delta");
      case Kind::kCallBegin:
        return OpenCall(event);
      case Kind::kCallArguments:
        if (event.text.empty()) return "";
        text() += event.text;
        return ItemEvent("response.function_call_arguments.delta", {{"delta", event.text}});
      case Kind::kCallEnd:
        return Close("completed");
    }
    return "";
  }

  std::string AddText(const AnswerEvent& event, absl::string_view type) {
    if (event.text.empty()) return "";
    std::string out;
    if (!is_open_ || open_kind_ != event.kind) out = OpenText(event.kind);
    text() += event.text;
    Json members = {{"delta", event.text}};
    if (event.kind == Kind::kText) members["logprobs"] = Json::array();
    return out + PartEvent(type, members);
  }

  std::string OpenText(Kind kind) {
    Json item, part;
    if (kind == Kind::kText) {
      item = {{"type", "message"}, {"role", "assistant"}, {"content", Json::array()}};
      part = {{"type", "output_text"},
              {"text", ""},
              {"annotations", Json::array()},
              {"logprobs", Json::array()}};
    } else {
      item = {{"type", "reasoning"}, {"summary", Json::array()}, {"content", Json::array()}};
      part = {{"type", "reasoning_text"}, {"text", ""}};
    }
    std::string out = Open(kind, kind == Kind::kText ? "msg_" : "rs_", std::move(item));
    out += PartEvent("response.content_part.added", {{"part", part}});
    this->item()["content"].push_back(std::move(part));
    return out;
  }

  std::string OpenCall(const AnswerEvent& event) {
    Json item = {{"type", "function_call"},
                 {"call_id", CallId("call_", header_, 0, event.call)},
                 {"name", event.text},
                 {"arguments", ""}};
    const auto tool = call_.namespaced_tools.find(event.text);
    if (tool != call_.namespaced_tools.end()) {
      item["name"] = tool->second.name;
      item["namespace"] = tool->second.name_space;
    }
    return Open(Kind::kCallBegin, "fc_", std::move(item));
  }

  std::string Open(Kind kind, absl::string_view prefix, const Json& members) {
    std::string out = CloseLast("completed");
    is_open_ = true;
    open_kind_ = kind;
    Json item = {{"id", absl::StrCat(prefix, header_.id, "_", output_.size())},
                 {"status", "in_progress"}};
    item.update(members);
    output_.push_back(std::move(item));
    return out + Event("response.output_item.added",
                       {{"output_index", output_.size() - 1}, {"item", this->item()}});
  }

  // Ends the open item, of which nothing more comes: a call that is open still has turned out to be
  // none. The response goes without it, as its text follows; from a stream it cannot be taken back,
  // but clients make the calls that they find in the response at its end.
  std::string CloseLast(const char* status) {
    if (!is_open_ || open_kind_ != Kind::kCallBegin) return Close(status);
    is_open_ = false;
    if (!call_.stream) {
      output_.erase(output_.size() - 1);
      return "";
    }
    void_.insert(output_.size() - 1);
    item()["status"] = "incomplete";
    return ItemDone();
  }

  std::string Close(const char* status) {
    if (!is_open_) return "";
    std::string out = CloseContent();
    is_open_ = false;
    item()["status"] = status;
    if (open_kind_ == Kind::kReasoning && call_.sealed_reasoning) {
      const Json& thought = item()["content"][0]["text"];
      item()["encrypted_content"] = SealReasoning(thought.get_ref<const std::string&>());
    }
    return out + ItemDone();
  }

  std::string ItemDone() {
    return Event("response.output_item.done",
                 {{"output_index", output_.size() - 1}, {"item", item()}});
  }

  std::string CloseContent() {
    if (!call_.stream) return "";
    if (open_kind_ == Kind::kCallBegin)
      return ItemEvent("response.function_call_arguments.done",
                       {{"name", item()["name"]}, {"arguments", text()}});
    Json members = {{"text", text()}};
    if (open_kind_ == Kind::kText) members["logprobs"] = Json::array();
    std::string out = PartEvent(
        open_kind_ == Kind::kText ? "response.output_text.done" : "response.reasoning_text.done",
        members);
    out += PartEvent("response.content_part.done", {{"part", item()["content"][0]}});
    return out;
  }

  Json& item() { return output_.back(); }
  // The text that the open item consists of.
  std::string& text() {
    Json& text =
        open_kind_ == Kind::kCallBegin ? item()["arguments"] : item()["content"][0]["text"];
    return text.get_ref<std::string&>();
  }

  const Call& call_;
  const ReplyHeader header_;
  size_t events_ = 0;  // so far
  Json output_ = Json::array();
  std::set<size_t> void_;  // the items of a stream that turned out to be none
  bool is_open_ = false;   // whether the last item is
  Kind open_kind_ = Kind::kText;
  std::string status_ = "in_progress";
  Json error_, incomplete_details_, usage_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakeResponsesWriter(const Call& call, const ReplyHeader& header) {
  return std::make_unique<ResponsesWriter>(call, header);
}

}  // namespace inlay::serve

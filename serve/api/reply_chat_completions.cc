// OpenAI: the reply of POST /v1/chat/completions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/api/reply_choices.h"
#include "serve/api/reply_parts.h"

namespace inlay::serve {
namespace {

Json ChanceJson(const Tokenizer& tokenizer, int32_t token, float logprob) {
  const absl::string_view bytes = tokenizer.TokenBytes(token);
  return {
      {"token", std::string(bytes)}, {"logprob", Logprob(logprob)}, {"bytes", BytesJson(bytes)}};
}

Json ChosenJson(const Tokenizer& tokenizer, const ChosenToken& chosen) {
  Json json = ChanceJson(tokenizer, chosen.token, chosen.logprob);
  Json& top = json["top_logprobs"] = Json::array();
  for (const TokenChance& chance : chosen.top)
    top.push_back(ChanceJson(tokenizer, chance.token, chance.logprob));
  return json;
}

class ChatCompletionsWriter final : public ChoicesWriter {
 public:
  ChatCompletionsWriter(const Call& call, const ReplyHeader& header, const Tokenizer& tokenizer)
      : ChoicesWriter(call, header, call.choices,
                      {.id_prefix = "chatcmpl-",
                       .whole_object = "chat.completion",
                       .chunk_object = "chat.completion.chunk",
                       .protocol = Protocol::kChatCompletions}),
        tokenizer_(tokenizer),
        answers_(call.choices) {}

  std::string Begin(size_t, size_t) override {
    std::string out;
    for (size_t choice = 0; choice < answers_.size(); ++choice)
      out += Chunk(choice, {{"role", "assistant"}, {"content", ""}});
    return out;
  }

  std::string Update(const ReplyUpdate& update) override {
    Answer& answer = answers_[update.choice];
    for (const ChosenToken& chosen : update.tokens)
      answer.logprobs.push_back(ChosenJson(tokenizer_, chosen));
    std::string out;
    for (const AnswerEvent& event : update.events) out += Add(update.choice, event);
    return out;
  }

  std::string End(const ReplyEnd& end) override {
    Answer& answer = answers_[end.choice];
    AddUsage(end);
    const auto is_complete = [](const CallText& made) { return made.complete; };
    // Of a stream a call that is none cannot be taken back: nobody shall make it.
    const bool called =
        call().stream ? !answer.calls.empty() && std::ranges::all_of(answer.calls, is_complete)
                      : std::ranges::any_of(answer.calls, is_complete);
    answer.finish_reason = IsCut(end.reason) ? "length" : called ? "tool_calls" : "stop";
    std::string out;
    // Tokens whose text never came: those of a stop text, say.
    if (call().stream && !answer.logprobs.empty()) out = Chunk(end.choice, Json::object());
    return out + Chunk(end.choice, Json::object(), answer.finish_reason);
  }

 protected:
  Json WholeChoice(size_t choice) override {
    Answer& answer = answers_[choice];
    Json logprobs;
    if (call().logprobs) logprobs = {{"content", std::move(answer.logprobs)}, {"refusal", nullptr}};
    return {{"index", choice},
            {"message", Message(answer)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", answer.finish_reason}};
  }

 private:
  struct Answer {
    std::string text, reasoning;    // of a whole reply
    std::vector<CallText> calls;    // of a streamed one, without arguments
    Json logprobs = Json::array();  // of a streamed one, those that were not sent yet
    std::string finish_reason;
  };

  // Takes up one event; the bytes to send of it.
  std::string Add(size_t choice, const AnswerEvent& event) {
    Answer& answer = answers_[choice];
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        return AddText(choice, "content", event.text, &answer.text);
      case AnswerEvent::Kind::kReasoning:
        return AddText(choice, "reasoning_content", event.text, &answer.reasoning);
      case AnswerEvent::Kind::kCallBegin: {
        const CallText& call = answer.calls.emplace_back(
            CallText{CallId("call_", header(), choice, event.call), event.text, "", false});
        return CallChunk(choice, {{"index", event.call},
                                  {"id", call.id},
                                  {"type", "function"},
                                  {"function", {{"name", call.name}, {"arguments", ""}}}});
      }
      case AnswerEvent::Kind::kCallArguments:
        if (!call().stream) answer.calls[event.call].arguments += event.text;
        if (event.text.empty()) return "";
        return CallChunk(choice,
                         {{"index", event.call}, {"function", {{"arguments", event.text}}}});
      case AnswerEvent::Kind::kCallEnd:
        answer.calls[event.call].complete = true;
        return "";
    }
    return "";
  }

  std::string AddText(size_t choice, const char* name, const std::string& text, std::string* all) {
    if (text.empty()) return "";
    if (!call().stream) *all += text;
    return Chunk(choice, {{name, text}});
  }

  std::string CallChunk(size_t choice, Json call) {
    Json delta = Json::object();
    delta["tool_calls"].push_back(std::move(call));
    return Chunk(choice, std::move(delta));
  }

  // A chunk with one change; all logprobs that wait go along.
  std::string Chunk(size_t choice, Json delta, const Json& finish_reason = nullptr) {
    if (!call().stream) return "";
    Json logprobs;
    Json& waiting = answers_[choice].logprobs;
    if (!waiting.empty()) logprobs = {{"content", std::move(waiting)}, {"refusal", nullptr}};
    waiting = Json::array();
    return ChunkOf({{"index", choice},
                    {"delta", std::move(delta)},
                    {"logprobs", std::move(logprobs)},
                    {"finish_reason", finish_reason}});
  }

  Json Message(Answer& answer) const {
    // One without an end has turned out to be no call: its text follows.
    std::erase_if(answer.calls, [](const CallText& call) { return !call.complete; });
    const bool is_null = answer.text.empty() && !answer.calls.empty();
    Json message = {{"role", "assistant"},
                    {"content", is_null ? Json() : Json(std::move(answer.text))},
                    {"refusal", nullptr}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = std::move(answer.reasoning);
    for (CallText& call : answer.calls) {
      message["tool_calls"].push_back(
          {{"id", call.id},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", std::move(call.arguments)}}}});
    }
    return message;
  }

  const Tokenizer& tokenizer_;
  std::vector<Answer> answers_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakeChatCompletionsWriter(const Call& call, const ReplyHeader& header,
                                                       const Tokenizer& tokenizer) {
  return std::make_unique<ChatCompletionsWriter>(call, header, tokenizer);
}

}  // namespace inlay::serve

// OpenAI: the reply of POST /v1/completions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "serve/api/reply_choices.h"
#include "serve/api/reply_parts.h"

namespace inlay::serve {
namespace {

// UTF-8's characters in bytes that need not be whole characters: those that begin there.
size_t Characters(absl::string_view bytes) {
  return static_cast<size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

class CompletionsWriter final : public ChoicesWriter {
 public:
  CompletionsWriter(const Call& call, const ReplyHeader& header, const Tokenizer& tokenizer)
      : ChoicesWriter(call, header, call.prompts.size() * call.choices,
                      {.id_prefix = "cmpl-",
                       .whole_object = "text_completion",
                       .chunk_object = "text_completion",
                       .protocol = Protocol::kCompletions}),
        tokenizer_(tokenizer),
        answers_(choices()) {}

  std::string Begin(size_t, size_t) override {
    std::string out;
    for (size_t choice = 0; call().echo && choice < answers_.size(); ++choice)
      out += AddText(choice, Prompt(choice));
    return out;
  }

  // An answer here is text, all of it.
  std::string Update(const ReplyUpdate& update) override {
    for (const ChosenToken& chosen : update.tokens) AddToken(answers_[update.choice], chosen);
    std::string out;
    for (const AnswerEvent& event : update.events) out += AddText(update.choice, event.text);
    return out;
  }

  std::string End(const ReplyEnd& end) override {
    AddUsage(end);
    Answer& answer = answers_[end.choice];
    answer.finish_reason = IsCut(end.reason) ? "length" : "stop";
    return Chunk(end.choice, "", answer.finish_reason);
  }

 protected:
  Json WholeChoice(size_t choice) override {
    Answer& answer = answers_[choice];
    return {{"text", std::move(answer.text)},
            {"index", choice},
            {"logprobs", TakeLogprobs(answer)},
            {"finish_reason", answer.finish_reason}};
  }

 private:
  struct Logprobs {
    Json tokens = Json::array(), token_logprobs = Json::array(), top_logprobs = Json::array(),
         text_offset = Json::array();
  };
  struct Answer {
    std::string text;   // of a whole reply
    Logprobs logprobs;  // of a streamed one, those that were not sent yet
    size_t offset = 0;  // of the next token in the text, in characters
    std::string finish_reason;
  };

  std::string Prompt(size_t choice) const {
    const auto& prompt = call().prompts[choice / call().choices];
    if (const auto* const text = std::get_if<std::string>(&prompt)) return *text;
    return tokenizer_.Decode(std::get<std::vector<int32_t>>(prompt));
  }

  void AddToken(Answer& answer, const ChosenToken& chosen) {
    const absl::string_view bytes = TokenBytes(tokenizer_, chosen.token);
    Logprobs& logprobs = answer.logprobs;
    logprobs.tokens.push_back(std::string(bytes));
    logprobs.token_logprobs.push_back(Logprob(chosen.logprob));
    logprobs.text_offset.push_back(answer.offset);
    // Characters of pieces: of what a token does not show, nothing counts.
    answer.offset += Characters(tokenizer_.Piece(chosen.token));
    Json top = Json::object();
    // Of tokens with the same text the likeliest, which comes first, stays.
    for (const TokenChance& chance : chosen.top)
      top.emplace(std::string(TokenBytes(tokenizer_, chance.token)), Logprob(chance.logprob));
    logprobs.top_logprobs.push_back(std::move(top));
  }

  Json TakeLogprobs(Answer& answer) {
    if (!call().logprobs) return nullptr;
    Logprobs taken = std::exchange(answer.logprobs, {});
    return {{"tokens", std::move(taken.tokens)},
            {"token_logprobs", std::move(taken.token_logprobs)},
            {"top_logprobs", std::move(taken.top_logprobs)},
            {"text_offset", std::move(taken.text_offset)}};
  }

  std::string AddText(size_t choice, const std::string& text) {
    if (text.empty()) return "";
    if (!call().stream) answers_[choice].text += text;
    return Chunk(choice, text);
  }

  std::string Chunk(size_t choice, const std::string& text, const Json& finish_reason = nullptr) {
    if (!call().stream) return "";
    return ChunkOf({{"text", text},
                    {"index", choice},
                    {"logprobs", TakeLogprobs(answers_[choice])},
                    {"finish_reason", finish_reason}});
  }

  const Tokenizer& tokenizer_;
  std::vector<Answer> answers_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakeCompletionsWriter(const Call& call, const ReplyHeader& header,
                                                   const Tokenizer& tokenizer) {
  return std::make_unique<CompletionsWriter>(call, header, tokenizer);
}

}  // namespace inlay::serve

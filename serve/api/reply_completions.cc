// OpenAI: the reply of POST /v1/completions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/utf8_stream.h"
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

  std::string Begin(size_t, size_t) override { return ""; }

  // An answer here is text, all of it.
  std::string Update(const ReplyUpdate& update) override {
    absl::Span<const ChosenToken> tokens = update.tokens;
    std::string out = Echo(update.choice, &tokens);
    for (const ChosenToken& chosen : tokens) AddAnswerToken(answers_[update.choice], chosen);
    for (const AnswerEvent& event : update.events) out += AddText(update.choice, event.text);
    return out;
  }

  std::string End(const ReplyEnd& end) override {
    AddUsage(end);
    absl::Span<const ChosenToken> none;
    const std::string echo = Echo(end.choice, &none);
    Answer& answer = answers_[end.choice];
    answer.finish_reason = IsCut(end.reason) ? "length" : "stop";
    return echo + Chunk(end.choice, "", answer.finish_reason);
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
    std::string text;     // of a whole reply
    Logprobs logprobs;    // of a streamed one, those that were not sent yet
    size_t offset = 0;    // of the next token in the text, in characters
    bool echoed = false;  // where the prompt is to be
    std::string finish_reason;
  };

  std::string Prompt(size_t choice) const {
    const auto& prompt = call().prompts[choice / call().choices];
    if (const auto* const text = std::get_if<std::string>(&prompt)) return *text;
    return tokenizer_.Decode(std::get<std::vector<int32_t>>(prompt));
  }

  // Before anything else of an answer: the prompt, if it is asked for, and its tokens, which are
  // the first of `tokens` and are taken from there.
  std::string Echo(size_t choice, absl::Span<const ChosenToken>* tokens) {
    Answer& answer = answers_[choice];
    if (!call().echo || std::exchange(answer.echoed, true)) return "";
    const std::string text = Prompt(choice);
    if (call().logprobs) {
      const std::vector<int32_t>& prompt = call().prompt_tokens[choice / call().choices];
      absl::string_view left = text;
      for (size_t i = 0; i < prompt.size() && i <= tokens->size(); ++i) {
        // Nothing comes before the first one.
        AddToken(answer, prompt[i], i == 0 ? nullptr : &(*tokens)[i - 1]);
        answer.offset += Characters(Skip(prompt[i], &left));
      }
      tokens->remove_prefix(std::min(tokens->size(), prompt.size() - 1));
      answer.offset = Characters(text);
    }
    return AddText(choice, text);
  }

  // Removes what stands for the token at the front of `text`, and returns it: the token's piece,
  // without the space that some vocabularies put in front of a text.
  absl::string_view Skip(int32_t token, absl::string_view* text) const {
    absl::string_view piece = tokenizer_.Piece(token);
    if (!absl::StartsWith(*text, piece)) absl::ConsumePrefix(&piece, " ");
    return absl::ConsumePrefix(text, piece) ? piece : absl::string_view();
  }

  void AddAnswerToken(Answer& answer, const ChosenToken& chosen) {
    AddToken(answer, chosen.token, &chosen);
    // Characters of pieces: of what a token does not show, nothing counts.
    answer.offset += Characters(tokenizer_.Piece(chosen.token));
  }

  // `chances`: null where there are none.
  void AddToken(Answer& answer, int32_t token, const ChosenToken* chances) {
    Logprobs& logprobs = answer.logprobs;
    logprobs.tokens.push_back(std::string(tokenizer_.TokenBytes(token)));
    logprobs.text_offset.push_back(answer.offset);
    logprobs.token_logprobs.push_back(chances == nullptr ? Json()
                                                         : Json(Logprob(chances->logprob)));
    Json& top = logprobs.top_logprobs.emplace_back();
    if (chances == nullptr) return;
    top = Json::object();
    // Of tokens with the same text the most likely one, which comes first, stays.
    for (const TokenChance& chance : chances->top) {
      // As it will read: bytes of different tokens that are no characters become the same.
      Utf8Stream characters;
      std::string text = characters.Push(tokenizer_.TokenBytes(chance.token));
      text += characters.Flush();
      top.emplace(std::move(text), Logprob(chance.logprob));
    }
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

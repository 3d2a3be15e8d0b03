#include "gemma_like/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/out_of_memory.h"
#include "gemma_like/speculate.h"
#include "gemma_like/stop_matcher.h"
#include "io/status_macros.h"
#include "io/utf8_stream.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Turns tokens into text that may be shown: whole characters, before any stop text.
class TextOut {
 public:
  TextOut(const std::vector<std::string>& stop_texts, const TextCallback& on_text, std::string& all)
      : stop_(stop_texts), on_text_(on_text), all_(all) {}

  void Push(absl::string_view bytes) { Give(stop_.Push(characters_.Push(bytes))); }
  void Finish() {
    Give(stop_.Push(characters_.Flush()));
    if (!stop_.stopped()) Give(stop_.Flush());
  }
  bool stopped() const { return stop_.stopped(); }

 private:
  void Give(const std::string& text) {
    if (text.empty()) return;
    all_ += text;
    if (on_text_) on_text_(text);
  }

  Utf8Stream characters_;
  StopMatcher stop_;
  const TextCallback& on_text_;
  std::string& all_;
};

}  // namespace

absl::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kMaxTokens:
      return "length";
    case StopReason::kEndOfGeneration:
      return "end";
    case StopReason::kStopText:
      return "stop";
    case StopReason::kContextFull:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "";
}

absl::Status CheckPrompt(const KVCache& cache, absl::Span<const int32_t> tokens) {
  if (tokens.empty()) return absl::InvalidArgumentError("the prompt is empty");
  if (tokens.size() <= cache.max_length() - cache.length()) return absl::OkStatus();
  return PromptTooLong(cache, tokens.size());
}

absl::Status PromptTooLong(const KVCache& cache, size_t tokens, absl::string_view qualifier) {
  return absl::OutOfRangeError(
      absl::StrCat("the prompt has ", qualifier, tokens, " tokens, but of the context of ",
                   cache.max_length(), " only ", cache.max_length() - cache.length(), " are left"));
}

absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel) {
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, tokens));
  const size_t most = std::min(engine.info().max_batch, cache.max_append());
  // One batch is a transaction already. Several become one by way of a snapshot to go back to.
  std::unique_ptr<KVCache> snapshot;
  if (tokens.size() > most) {
    INLAY_RETURN_IF_ERROR(OrOutOfMemory("a snapshot", [&] {
      snapshot = cache.Fork();
      return absl::OkStatus();
    }));
  }
  while (!tokens.empty()) {
    const size_t n = std::min(most, tokens.size());
    const bool last = n == tokens.size();
    const SequenceStep step{
        .cache = &cache, .tokens = tokens.first(n), .logit_rows = last ? logits.rows : size_t{0}};
    absl::Status status =
        engine.Forward({&step, 1}, last ? logits : FloatRows(nullptr, 0, logits.cols), cancel);
    if (!status.ok()) {
      if (snapshot != nullptr) status.Update(cache.Restore(std::move(*snapshot)));
      return status;
    }
    tokens.remove_prefix(n);
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<GenerateResult> GenerateAll(Engine& engine, const Tokenizer& tokenizer,
                                           KVCache& cache, absl::Span<const int32_t> prompt,
                                           const GenerateOptions& options,
                                           const TextCallback& on_text, const CancelCheck& cancel) {
  GenerateResult result;
  result.prompt_tokens = prompt.size();
  PromptLookup lookup;
  DraftedDecoder decoder(engine, cache, &lookup, options.draft);

  const Clock::time_point start = Clock::now();
  INLAY_RETURN_IF_ERROR(Prefill(engine, cache, prompt, decoder.logits(), cancel));
  decoder.Synchronize();
  result.prompt_seconds = SecondsSince(start);

  const Clock::time_point decode_start = Clock::now();
  Sampler sampler(options.sampling);
  TextOut out(options.stop_texts, on_text, result.text);
  const auto next_stop = [&]() -> absl::StatusOr<StopReason> {
    while (true) {
      if (result.tokens.size() >= options.max_tokens) return StopReason::kMaxTokens;
      if (decoder.tokens().size() >= cache.max_length()) return StopReason::kContextFull;
      if (cancel && cancel()) return StopReason::kCancelled;
      INLAY_ASSIGN_OR_RETURN(const int32_t token,
                             sampler.Sample(decoder.logits_after_last(), decoder.tokens()));
      if (!options.ignore_eos && tokenizer.IsEndOfGeneration(token))
        return StopReason::kEndOfGeneration;
      result.tokens.push_back(token);
      out.Push(tokenizer.Piece(token));  // before the next pass, so that it is seen sooner
      // Not cancelled half-way: what was shown is in the conversation.
      INLAY_RETURN_IF_ERROR(decoder.Append(token));
      if (out.stopped()) return StopReason::kStopText;
    }
  };
  INLAY_ASSIGN_OR_RETURN(result.stop_reason, next_stop());
  out.Finish();
  if (out.stopped()) result.stop_reason = StopReason::kStopText;
  result.decode_seconds = SecondsSince(decode_start);
  result.drafted_tokens = decoder.drafted();
  result.accepted_tokens = decoder.accepted();
  return result;
}

}  // namespace

absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options, const TextCallback& on_text,
                                        const CancelCheck& cancel) {
  INLAY_RETURN_IF_ERROR(CheckSampling(options.sampling));
  if (options.draft > DraftedDecoder::kMaxDraft) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a draft of ", options.draft, " tokens is more than ", DraftedDecoder::kMaxDraft));
  }
  return OrOutOfMemory("this answer", [&] {
    return GenerateAll(engine, tokenizer, cache, prompt, options, on_text, cancel);
  });
}

}  // namespace inlay

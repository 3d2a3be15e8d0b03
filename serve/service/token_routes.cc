#include "serve/service/token_routes.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/token_ids.h"
#include "gemma_like/embed.h"
#include "serve/api/embeddings.h"
#include "serve/api/token_requests.h"

namespace inlay::serve {

void ReplyTokens(const Tokenizer& tokenizer, const Visit& visit) {
  const absl::StatusOr<TokenizeRequest> request = ParseTokenize(visit.request.body);
  if (!request.ok()) return visit.Fail(request.status());
  EncodeOptions options;
  options.parse_special = request->parse_special;
  if (!request->add_special) options.add_bos = false;
  const auto tokens = tokenizer.Encode(request->content, options);
  if (!tokens.ok()) return visit.Fail(tokens.status());
  visit.SendText(TokenizeBody(*request, *tokens, tokenizer));
}

void ReplyText(const Tokenizer& tokenizer, const Visit& visit) {
  const absl::StatusOr<DetokenizeRequest> request = ParseDetokenize(visit.request.body);
  if (!request.ok()) return visit.Fail(request.status());
  if (const auto status = CheckIds(request->tokens, tokenizer.size(), " of tokens"); !status.ok())
    return visit.Fail(status);
  visit.SendText(DetokenizeBody(tokenizer.Decode(request->tokens)));
}

namespace {

absl::StatusOr<std::vector<int32_t>> TokensToEmbed(const LoadedModel& model,
                                                   const TextOrTokens& input) {
  const EngineInfo& info = model.engine->info();
  const auto* const ids = std::get_if<std::vector<int32_t>>(&input);
  if (ids == nullptr)
    return EncodeToEmbed(*model.tokenizer, std::get<std::string>(input), info.context_length);
  if (ids->size() > info.context_length) {
    return absl::OutOfRangeError(absl::StrCat(
        ids->size(), " tokens are more than the model's context of ", info.context_length));
  }
  for (const int32_t id : *ids) {
    if (id < 0 || static_cast<size_t>(id) >= info.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no token ", id, " among the ", info.vocab_size));
    }
  }
  return *ids;
}

absl::Status TryEmbeddings(const LoadedModel& model, absl::string_view name,
                           const std::atomic<bool>& drained, EmbeddingCounts& counts,
                           const Visit& visit) {
  Engine& engine = *model.engine;
  const size_t dim = engine.info().embedding_dim;
  if (dim == 0) return absl::UnimplementedError("this model generates text and embeds none");
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  visit.reply->OnGone([gone] { *gone = true; });
  const auto why_ended = [&]() -> absl::Status {
    if (*gone) return absl::CancelledError("the request was cancelled");
    if (drained) return absl::UnavailableError("the server is shutting down");
    if (SteadyNow() > visit.deadline)
      return absl::DeadlineExceededError("the request's deadline has passed");
    return absl::OkStatus();
  };
  INLAY_RETURN_IF_ERROR(why_ended());  // while it waited
  INLAY_ASSIGN_OR_RETURN(const EmbeddingsRequest request, ParseEmbeddings(visit.request.body));
  INLAY_RETURN_IF_ERROR(CheckDimensions(request, dim));
  std::vector<std::vector<int32_t>> texts;
  size_t tokens = 0;
  // All of them first: nothing is computed for a request that is refused.
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    absl::StatusOr<std::vector<int32_t>> text = TokensToEmbed(model, request.inputs[i]);
    if (!text.ok()) {
      return MarkTooLong(absl::Status(text.status().code(),
                                      absl::StrCat("input[", i, "]: ", text.status().message())));
    }
    tokens += text->size();
    texts.push_back(*std::move(text));
  }
  const absl::StatusOr<std::vector<std::vector<float>>> vectors =
      EmbedTexts(engine, texts, [&] { return !why_ended().ok(); });
  if (absl::IsCancelled(vectors.status())) INLAY_RETURN_IF_ERROR(why_ended());
  INLAY_RETURN_IF_ERROR(vectors.status());
  counts.tokens += tokens;
  if (visit.access != nullptr) visit.access->AddTokens({.prompt = tokens});
  visit.SendText(EmbeddingsBody(request, name, *vectors, tokens));
  return absl::OkStatus();
}

}  // namespace

void ReplyEmbeddings(const LoadedModel& model, absl::string_view name,
                     const std::atomic<bool>& drained, EmbeddingCounts& counts,
                     const Visit& visit) {
  const absl::Status status = TryEmbeddings(model, name, drained, counts, visit);
  if (status.ok()) return;
  ++counts.failed;
  visit.Fail(status);
}

}  // namespace inlay::serve

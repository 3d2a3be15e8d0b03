// POST /tokenize, /detokenize and /v1/embeddings: what needs the model's tokens, but no answer.
#ifndef INLAY_SERVE_SERVICE_TOKEN_ROUTES_H_
#define INLAY_SERVE_SERVICE_TOKEN_ROUTES_H_

#include <atomic>

#include "absl/strings/string_view.h"
#include "gemma_like/load_model.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/service/service_stats.h"
#include "serve/service/visit.h"

namespace inlay::serve {

// /tokenize
void ReplyTokens(const Tokenizer& tokenizer, const Visit& visit);
// /detokenize
void ReplyText(const Tokenizer& tokenizer, const Visit& visit);
// /v1/embeddings, where the model gives them; else 501. `name`: what the model is called. Once
// `drained` is true it ends at the next layer, with Unavailable. It counts failures and tokens.
void ReplyEmbeddings(const LoadedModel& model, absl::string_view name,
                     const std::atomic<bool>& drained, EmbeddingCounts& counts, const Visit& visit);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_TOKEN_ROUTES_H_

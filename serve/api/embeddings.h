// OpenAI: POST /v1/embeddings, request and reply.
#ifndef INLAY_SERVE_API_EMBEDDINGS_H_
#define INLAY_SERVE_API_EMBEDDINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "serve/api/text_or_tokens.h"

namespace inlay::serve {

// The most inputs of one request.
inline constexpr size_t kMostEmbeddingInputs = 2048;

struct EmbeddingsRequest {
  std::string model;
  std::vector<TextOrTokens> inputs;  // 1 to kMostEmbeddingInputs
  bool base64 = false;               // else lists of numbers
  std::optional<size_t> dimensions;  // must be the model's
};

// InvalidArgument with a sentence that names the field, also for fields that are not known.
absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(absl::string_view body);

// InvalidArgument where a request wants vectors of other than `dimensions` numbers.
absl::Status CheckDimensions(const EmbeddingsRequest& request, size_t dimensions);

// The reply with one vector for each input, in their order. In base64, a vector is its numbers as
// 32-bit floats, little-endian.
std::string EmbeddingsBody(const EmbeddingsRequest& request, absl::string_view model,
                           absl::Span<const std::vector<float>> vectors, size_t prompt_tokens);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_EMBEDDINGS_H_

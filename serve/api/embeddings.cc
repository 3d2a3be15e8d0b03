#include "serve/api/embeddings.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
#include "serve/api/field_reader.h"
#include "serve/api/request_json.h"

namespace inlay::serve {
namespace {

constexpr int64_t kMostDimensions = 1 << 20;

std::string Base64Floats(absl::Span<const float> vector) {
  std::string bytes;
  bytes.reserve(vector.size() * sizeof(float));
  for (const float value : vector) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  return absl::Base64Escape(bytes);
}

}  // namespace

absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(absl::string_view body) {
  return OrOutOfMemory("reading a request", [&]() -> absl::StatusOr<EmbeddingsRequest> {
    INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", body));
    absl::Status error;
    FieldReader reader(*json, "", &error);
    EmbeddingsRequest request;
    request.model = reader.Text("model").value_or("");
    request.inputs = ReadTextsOrTokens(reader, "input", kMostEmbeddingInputs);
    request.base64 = reader.Choice("encoding_format", {"float", "base64"}) == "base64";
    const auto dimensions = reader.Integer("dimensions", 1, kMostDimensions);
    if (dimensions.has_value()) request.dimensions = static_cast<size_t>(*dimensions);
    reader.NoEffect({"user"});
    reader.Finish();
    if (!error.ok()) return error;
    return request;
  });
}

absl::Status CheckDimensions(const EmbeddingsRequest& request, size_t dimensions) {
  if (request.dimensions.value_or(dimensions) == dimensions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("dimensions must be ", dimensions,
                                                 ", which this model's vectors have, not ",
                                                 *request.dimensions));
}

std::string EmbeddingsBody(const EmbeddingsRequest& request, absl::string_view model,
                           absl::Span<const std::vector<float>> vectors, size_t prompt_tokens) {
  Json data = Json::array();
  for (const std::vector<float>& vector : vectors) {
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", request.base64 ? Json(Base64Floats(vector)) : Json(vector)}});
  }
  return DumpJson({{"object", "list"},
                   {"data", std::move(data)},
                   {"model", std::string(model)},
                   {"usage", {{"prompt_tokens", prompt_tokens}, {"total_tokens", prompt_tokens}}}});
}

}  // namespace inlay::serve

// Texts to tokens and back in the C API.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/token_ids.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/embed.h"
#include "gemma_like/inlay_c.h"

namespace inlay::c_api {
namespace {

absl::StatusOr<std::vector<int32_t>> Tokenize(const SharedModel& model, absl::string_view text,
                                              const inlay_tokenize_options* options) {
  INLAY_ASSIGN_OR_RETURN(
      const inlay_tokenize_options o,
      Complete("inlay_tokenize_options", options,
               {sizeof(inlay_tokenize_options), /*add_bos=*/-1, /*parse_special=*/0,
                /*to_embed=*/0}));
  if (o.add_bos < -1 || o.add_bos > 1) {
    return absl::InvalidArgumentError(absl::StrCat("add_bos is ", o.add_bos, ", not -1, 0 or 1"));
  }
  if (o.to_embed != 0) {
    if (o.add_bos != -1 || o.parse_special != 0) {
      return absl::InvalidArgumentError("texts to embed have no other options");
    }
    return EncodeToEmbed(model.tokenizer(), text, model.engine().info().context_length);
  }
  EncodeOptions encode;
  encode.parse_special = o.parse_special != 0;
  if (o.add_bos >= 0) encode.add_bos = o.add_bos == 1;
  return model.tokenizer().Encode(text, encode);
}

}  // namespace
}  // namespace inlay::c_api

using inlay::CheckIds;
using inlay::c_api::Call;
using inlay::c_api::CheckArray;
using inlay::c_api::CheckNotNull;
using inlay::c_api::CopyOut;

inlay_status inlay_tokenize(const inlay_model* model, const char* text, size_t size,
                            int32_t* tokens, size_t capacity, size_t* count) {
  return inlay_tokenize_with(model, text, size, nullptr, tokens, capacity, count);
}

inlay_status inlay_tokenize_with(const inlay_model* model, const char* text, size_t size,
                                 const inlay_tokenize_options* options, int32_t* tokens,
                                 size_t capacity, size_t* count) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"count", count}}));
    INLAY_RETURN_IF_ERROR(CheckArray("text", text, size));
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                           inlay::c_api::Tokenize(*model->shared, {text, size}, options));
    return CopyOut<int32_t>("tokens", ids, tokens, capacity, count);
  });
}

inlay_status inlay_detokenize(const inlay_model* model, const int32_t* tokens, size_t count,
                              char* text, size_t capacity, size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"size", size}}));
    INLAY_RETURN_IF_ERROR(CheckArray("tokens", tokens, count));
    INLAY_RETURN_IF_ERROR(CheckIds({tokens, count}, inlay_vocabulary_size(model)));
    const std::string decoded = model->shared->tokenizer().Decode({tokens, count});
    return CopyOut<char>("bytes of text", decoded, text, capacity, size);
  });
}

inlay_status inlay_token_text(const inlay_model* model, int32_t token, int form, char* text,
                              size_t capacity, size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"size", size}}));
    INLAY_RETURN_IF_ERROR(CheckIds({&token, 1}, inlay_vocabulary_size(model)));
    if (form != INLAY_TOKEN_BYTES && form != INLAY_TOKEN_NAME) {
      return absl::InvalidArgumentError(
          absl::StrCat("form is ", form, ", not an inlay_token_form"));
    }
    const inlay::Tokenizer& tokenizer = model->shared->tokenizer();
    const absl::string_view found =
        form == INLAY_TOKEN_NAME ? tokenizer.TokenText(token) : tokenizer.Piece(token);
    return CopyOut<char>("bytes of text", found, text, capacity, size);
  });
}

int inlay_kind_of_token(const inlay_model* model, int32_t token) {
  if (model == nullptr) return 0;
  const inlay::Tokenizer& tokenizer = model->shared->tokenizer();
  if (token < 0 || static_cast<size_t>(token) >= tokenizer.size()) return 0;
  const absl::Span<const int32_t> suppressed = tokenizer.suppressed();
  const bool never = std::binary_search(suppressed.begin(), suppressed.end(), token);
  return (tokenizer.IsControl(token) ? INLAY_TOKEN_CONTROL : 0) |
         (tokenizer.IsEndOfGeneration(token) ? INLAY_TOKEN_END : 0) |
         (never ? INLAY_TOKEN_SUPPRESSED : 0);
}

#include "gemma_like/embed.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "ops/row_kernels.h"
#include "ops/views.h"

namespace inlay {
namespace {

absl::Status TextTooLong(size_t tokens, absl::string_view qualifier, size_t most) {
  return absl::OutOfRangeError(
      absl::StrCat("the text has ", qualifier, tokens, " tokens, but the context holds ", most));
}

// Embeds texts that are one batch, and appends their vectors.
absl::Status EmbedBatch(Engine& engine, absl::Span<const std::vector<int32_t>> texts,
                        const CancelCheck& cancel, std::vector<std::vector<float>>& vectors) {
  const size_t dim = engine.info().embedding_dim;
  const std::vector<absl::Span<const int32_t>> batch(texts.begin(), texts.end());
  std::vector<float> rows(texts.size() * dim);
  INLAY_RETURN_IF_ERROR(engine.Embed(batch, FloatRows(rows.data(), texts.size(), dim), cancel));
  for (size_t i = 0; i < texts.size(); ++i) {
    const float* const row = rows.data() + i * dim;
    if (!AllFinite(row, dim)) {
      return absl::DataLossError(absl::StrCat("the embedding of text ", vectors.size(),
                                              " is not finite: the model's weights are damaged"));
    }
    vectors.emplace_back(row, row + dim);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> EncodeToEmbed(const Tokenizer& tokenizer,
                                                   absl::string_view text, size_t most) {
  EncodeOptions options;
  options.max_tokens = most;
  auto ids = tokenizer.Encode(text, options);
  if (absl::IsOutOfRange(ids.status())) return TextTooLong(most + 1, "at least ", most);
  if (!ids.ok()) return ids;
  if (tokenizer.adds_eos().value_or(true) && tokenizer.eos().has_value()) {
    ids->push_back(*tokenizer.eos());
  }
  if (ids->size() > most) return TextTooLong(ids->size(), "", most);
  return ids;
}

absl::StatusOr<std::vector<std::vector<float>>> EmbedTexts(
    Engine& engine, absl::Span<const std::vector<int32_t>> texts, const CancelCheck& cancel) {
  return OrOutOfMemory("this batch", [&]() -> absl::StatusOr<std::vector<std::vector<float>>> {
    std::vector<std::vector<float>> vectors;
    vectors.reserve(texts.size());
    for (size_t begin = 0; begin < texts.size();) {
      // A text that is too long is a batch of its own, which Embed refuses.
      size_t end = begin, tokens = 0;
      do {
        tokens += texts[end++].size();
      } while (end < texts.size() && end - begin < kMostTexts &&
               tokens + texts[end].size() <= engine.info().max_batch);
      INLAY_RETURN_IF_ERROR(EmbedBatch(engine, texts.subspan(begin, end - begin), cancel, vectors));
      begin = end;
    }
    return vectors;
  });
}

absl::StatusOr<std::vector<float>> EmbedText(Engine& engine, std::vector<int32_t> text,
                                             const CancelCheck& cancel) {
  INLAY_ASSIGN_OR_RETURN(std::vector<std::vector<float>> vectors,
                         EmbedTexts(engine, {&text, 1}, cancel));
  return std::move(vectors.front());
}

}  // namespace inlay

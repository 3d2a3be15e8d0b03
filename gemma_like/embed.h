// Texts as vectors, by models that embed texts: those whose EngineInfo has an embedding_dim.
#ifndef INLAY_GEMMA_LIKE_EMBED_H_
#define INLAY_GEMMA_LIKE_EMBED_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/engine.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The tokens of a text to embed: those of Encode, then EOS, unless the vocabulary says otherwise.
// Fails as Encode does, and with OutOfRange for a text with more than `most` tokens.
absl::StatusOr<std::vector<int32_t>> EncodeToEmbed(const Tokenizer& tokenizer,
                                                   absl::string_view text, size_t most);

// A vector [embedding_dim] of length 1 for each text, in as few batches as hold them. DataLoss for
// one that is not finite; other errors are those of Engine::Embed.
absl::StatusOr<std::vector<std::vector<float>>> EmbedTexts(
    Engine& engine, absl::Span<const std::vector<int32_t>> texts,
    const CancelCheck& cancel = nullptr);

// The same for one text.
absl::StatusOr<std::vector<float>> EmbedText(Engine& engine, std::vector<int32_t> text,
                                             const CancelCheck& cancel = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_EMBED_H_

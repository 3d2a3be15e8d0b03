#include "io/tokenizer/vocabulary.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

constexpr absl::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr absl::string_view kTypesKey = "tokenizer.ggml.token_type";

absl::Status ReadTypes(const GgufFile& file, Vocabulary* vocabulary) {
  const size_t size = vocabulary->size();
  const GgufValue* const value = file.Find(kTypesKey);
  if (value == nullptr) {
    vocabulary->types.assign(size, TokenType::kNormal);
    return absl::OkStatus();
  }
  if (value->is_array() && value->size() != size) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kTypesKey, "' has ",
                                                   value->size(), " elements, but there are ", size,
                                                   " tokens"));
  }
  INLAY_ASSIGN_OR_RETURN(const std::vector<int64_t> types, file.GetInts(kTypesKey));
  vocabulary->types.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    if (types[i] < 1 || types[i] > 6) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": token ", i, " has type ",
                                                     types[i], " in '", kTypesKey,
                                                     "', outside 1 to 6"));
    }
    vocabulary->types.push_back(static_cast<TokenType>(types[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadId(const GgufFile& file, absl::string_view key, size_t size,
                    std::optional<int32_t>* id) {
  if (file.Find(key) == nullptr) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const uint64_t value, file.GetUint(key));
  // Some files write "none" as the largest uint32.
  if (value == std::numeric_limits<uint32_t>::max()) return absl::OkStatus();
  if (value >= size) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", key, "' is ", value,
                                                   ", but there are only ", size, " tokens"));
  }
  *id = static_cast<int32_t>(value);
  return absl::OkStatus();
}

// In files that do not name the end-of-turn token, it has one of these texts.
std::optional<int32_t> FindEndOfTurn(const Vocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const absl::string_view text = vocabulary.texts[i];
    if (vocabulary.types[i] == TokenType::kControl &&
        (text == "<end_of_turn>" || text == "<|eot_id|>" || text == "<|im_end|>")) {
      return static_cast<int32_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Load(const GgufFile& file) {
  Vocabulary vocabulary;
  INLAY_ASSIGN_OR_RETURN(const GgufStrings tokens, file.GetStrings(kTokensKey));
  // Ids are int32; half of that range is left for symbols that are no tokens.
  constexpr size_t kMostTokens = size_t{1} << 30;
  if (tokens.empty() || tokens.size() > kMostTokens) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kTokensKey, "' has ",
                                                   tokens.size(), " tokens, outside 1 to ",
                                                   kMostTokens));
  }
  size_t bytes = 0;
  size_t i = 0;
  for (const absl::string_view token : tokens) {
    if (token.size() > kLongestToken) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": token ", i, " in '",
                                                     kTokensKey, "' is ", token.size(),
                                                     " bytes long, more than ", kLongestToken));
    }
    bytes += token.size();
    ++i;
  }
  vocabulary.texts.Reserve(tokens.size(), bytes);
  for (const absl::string_view token : tokens) vocabulary.texts.Add(token);
  INLAY_RETURN_IF_ERROR(ReadTypes(file, &vocabulary));
  const size_t size = vocabulary.size();
  INLAY_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.bos_token_id", size, &vocabulary.bos));
  INLAY_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eos_token_id", size, &vocabulary.eos));
  INLAY_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.unknown_token_id", size, &vocabulary.unk));
  INLAY_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eot_token_id", size, &vocabulary.eot));
  if (!vocabulary.eot.has_value()) vocabulary.eot = FindEndOfTurn(vocabulary);
  if (file.Find("tokenizer.ggml.add_bos_token") != nullptr) {
    INLAY_ASSIGN_OR_RETURN(vocabulary.add_bos, file.GetBool("tokenizer.ggml.add_bos_token"));
  }
  return vocabulary;
}

}  // namespace inlay

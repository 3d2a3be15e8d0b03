#include "io/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

constexpr absl::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr absl::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr absl::string_view kEosKey = "tokenizer.ggml.eos_token_id";
constexpr absl::string_view kSentenceEnd = "</s>";
// The texts of tokens that end a generation, if they are control or user-defined tokens.
constexpr std::array<absl::string_view, 5> kSpecialEndTexts = {
    // Generated where a tool's result must follow: of Gemma 4, whose converter makes it
    // user-defined, and of FunctionGemma, whose files do not name it as an end.
    "<|tool_response>",
    "<start_function_response>",
    // Generated after a middle that was asked for by its prefix and suffix, where another file
    // would follow; some converters make the latter two user-defined.
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

// The texts of control tokens of the families that are known here. Some files give them another
// type: "normal" in Google's QAT files of Gemma 3, in exports of fine-tuned models and for <eos> in
// files of Gemma 4, "user-defined" where a converter took an added token for a word. Then a chat
// template's turn would be spelled in letters, or a user could type it.
constexpr std::array<absl::string_view, 17> kControlTexts = {
    "<bos>",
    "<eos>",
    "<start_of_turn>",  // Gemma to 3
    "<end_of_turn>",
    "<|turn>",  // Gemma 4
    "<turn|>",
    "<|im_start|>",  // ChatML
    "<|im_end|>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<|start_of_role|>",  // Granite
    "<|end_of_role|>",
    "<|end_of_text|>",
    "<|start_header_id|>",  // Llama 3
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
};

// The texts of tokens that end a generation, if they are control tokens.
constexpr std::array<absl::string_view, 9> kEndTexts = {
    "<eos>",      "<end_of_turn>",   "<turn|>",    "<|im_end|>", "<|endoftext|>",
    "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", kSentenceEnd,
};

// The ids of such tokens.
constexpr std::array<absl::string_view, 7> kEndKeys = {
    kEosKey,
    "tokenizer.ggml.eos_token_ids",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

template <size_t kCount>
bool Contains(const std::array<absl::string_view, kCount>& texts, absl::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

absl::Status ReadTypes(const GgufFile& file, Vocabulary* vocabulary) {
  const size_t size = vocabulary->size();
  const GgufValue* const value = file.Find(kTypesKey);
  if (value == nullptr) {
    vocabulary->types.assign(size, TokenType::kNormal);
    return absl::OkStatus();
  }
  if (value->size() != vocabulary->listed) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kTypesKey, "' has ",
                                                   value->size(), " elements, but there are ",
                                                   vocabulary->listed, " tokens"));
  }
  INLAY_ASSIGN_OR_RETURN(const std::vector<int64_t> types, file.GetInts(kTypesKey));
  vocabulary->types.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    // Some writers leave the type of tokens at 0, "undefined".
    if (types[i] < 0 || types[i] > 6) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": token ", i, " has type ",
                                                     types[i], " in '", kTypesKey,
                                                     "', outside 0 to 6"));
    }
    vocabulary->types.push_back(types[i] == 0 ? TokenType::kNormal
                                              : static_cast<TokenType>(types[i]));
  }
  return absl::OkStatus();
}

// Makes a token with one of kControlTexts a control token, unless another one with this text is.
// Tokens of other types than normal and user-defined are never matched in a text anyway.
void CorrectTypes(Vocabulary* vocabulary) {
  std::array<std::vector<size_t>, kControlTexts.size()> found;
  std::bitset<kControlTexts.size()> has_control;
  for (size_t i = 0; i < vocabulary->size(); ++i) {
    const absl::string_view text = vocabulary->texts[i];
    if (text.empty() || text[0] != '<') continue;
    const auto known = std::find(kControlTexts.begin(), kControlTexts.end(), text);
    if (known == kControlTexts.end()) continue;
    const size_t index = static_cast<size_t>(known - kControlTexts.begin());
    const TokenType type = vocabulary->types[i];
    if (type == TokenType::kControl) has_control.set(index);
    if (type == TokenType::kNormal || type == TokenType::kUserDefined) found[index].push_back(i);
  }
  for (size_t index = 0; index < found.size(); ++index) {
    if (has_control[index]) continue;
    for (const size_t i : found[index]) vocabulary->types[i] = TokenType::kControl;
  }
}

// What becomes of an id of no token.
enum class NoToken { kRefused, kLeftOut };

// Appends to `ids` the value, or all values, of a key, if it is there. Always left out: 2^32 - 1,
// as some files write "none", and tokens without a row in the embedding.
absl::Status ReadIds(const GgufFile& file, absl::string_view key, const Vocabulary& vocabulary,
                     NoToken no_token, std::vector<int32_t>* ids) {
  if (file.Find(key) == nullptr) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const std::vector<int64_t> values, file.GetInts(key));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i];
    if (value >= 0 && static_cast<uint64_t>(value) < vocabulary.listed) {
      if (static_cast<uint64_t>(value) < vocabulary.size())
        ids->push_back(static_cast<int32_t>(value));
    } else if (no_token == NoToken::kRefused && value != std::numeric_limits<uint32_t>::max()) {
      const std::string element = values.size() == 1 ? "" : absl::StrCat(" in element ", i);
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", key, "' is ", value,
                                                     element, ", but there are only ",
                                                     vocabulary.listed, " tokens"));
    }
  }
  return absl::OkStatus();
}

// For a role that only this key gives.
absl::Status ReadId(const GgufFile& file, absl::string_view key, const Vocabulary& vocabulary,
                    std::optional<int32_t>* id) {
  std::vector<int32_t> ids;
  INLAY_RETURN_IF_ERROR(ReadIds(file, key, vocabulary, NoToken::kRefused, &ids));
  if (!ids.empty()) *id = ids[0];
  return absl::OkStatus();
}

// Ascending, each id once.
void SortOnce(std::vector<int32_t>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

// Ids of no token are never generated, so those of ends and of suppressed tokens are left out.
absl::Status ReadEnds(const GgufFile& file, Vocabulary* vocabulary) {
  std::vector<int32_t>& ends = vocabulary->ends;
  for (const absl::string_view key : kEndKeys)
    INLAY_RETURN_IF_ERROR(ReadIds(file, key, *vocabulary, NoToken::kLeftOut, &ends));
  // In vocabularies with <eos>, Gemma's, </s> closes an HTML element.
  bool has_eos = false;
  for (size_t i = 0; i < vocabulary->size(); ++i) has_eos |= vocabulary->texts[i] == "<eos>";
  for (size_t i = 0; i < vocabulary->size(); ++i) {
    const absl::string_view text = vocabulary->texts[i];
    const bool ends_turn = vocabulary->types[i] == TokenType::kControl &&
                           Contains(kEndTexts, text) && !(has_eos && text == kSentenceEnd);
    const bool special = vocabulary->types[i] == TokenType::kControl ||
                         vocabulary->types[i] == TokenType::kUserDefined;
    if (ends_turn || (special && Contains(kSpecialEndTexts, text)))
      ends.push_back(static_cast<int32_t>(i));
  }
  SortOnce(&ends);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::LoadRoles(const GgufFile& file) {
  Vocabulary vocabulary;
  INLAY_ASSIGN_OR_RETURN(const GgufStrings tokens, file.GetStrings(kTokensKey));
  // Ids are int32; half of that range is left for symbols that are no tokens.
  constexpr size_t kMostTokens = size_t{1} << 30;
  if (tokens.empty() || tokens.size() > kMostTokens) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kTokensKey, "' has ",
                                                   tokens.size(), " tokens, outside 1 to ",
                                                   kMostTokens));
  }
  vocabulary.listed = tokens.size();
  const GgufTensor* const embedding = file.FindTensor("token_embd.weight");
  const uint64_t rows = embedding == nullptr ? tokens.size() : embedding->dims[1];
  vocabulary.count = static_cast<size_t>(std::min<uint64_t>(tokens.size(), rows));
  INLAY_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.bos_token_id", vocabulary, &vocabulary.bos));
  INLAY_RETURN_IF_ERROR(ReadId(file, kEosKey, vocabulary, &vocabulary.eos));
  INLAY_RETURN_IF_ERROR(
      ReadId(file, "tokenizer.ggml.unknown_token_id", vocabulary, &vocabulary.unk));
  INLAY_RETURN_IF_ERROR(ReadIds(file, "tokenizer.ggml.suppress_tokens", vocabulary,
                                NoToken::kLeftOut, &vocabulary.suppressed));
  SortOnce(&vocabulary.suppressed);
  if (file.Find("tokenizer.ggml.add_bos_token") != nullptr) {
    INLAY_ASSIGN_OR_RETURN(vocabulary.add_bos, file.GetBool("tokenizer.ggml.add_bos_token"));
  }
  if (file.Find("tokenizer.ggml.add_eos_token") != nullptr) {
    INLAY_ASSIGN_OR_RETURN(vocabulary.add_eos, file.GetBool("tokenizer.ggml.add_eos_token"));
  }
  return vocabulary;
}

absl::StatusOr<Vocabulary> Vocabulary::Load(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(Vocabulary vocabulary, LoadRoles(file));
  INLAY_ASSIGN_OR_RETURN(const GgufStrings tokens, file.GetStrings(kTokensKey));
  size_t bytes = 0;
  size_t i = 0;
  for (const absl::string_view token : tokens) {
    if (i == vocabulary.size()) break;
    if (token.size() > kLongestToken) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": token ", i, " in '",
                                                     kTokensKey, "' is ", token.size(),
                                                     " bytes long, more than ", kLongestToken));
    }
    bytes += token.size();
    ++i;
  }
  if (bytes > StringTable::kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": the tokens in '", kTokensKey,
                                                   "' have ", bytes, " bytes together, more than ",
                                                   StringTable::kMostBytes));
  }
  vocabulary.texts.Reserve(vocabulary.size(), bytes);
  i = 0;
  for (const absl::string_view token : tokens) {
    if (i++ == vocabulary.size()) break;
    vocabulary.texts.Add(token);
  }
  INLAY_RETURN_IF_ERROR(ReadTypes(file, &vocabulary));
  CorrectTypes(&vocabulary);
  INLAY_RETURN_IF_ERROR(ReadEnds(file, &vocabulary));
  return vocabulary;
}

bool Vocabulary::ArraysAreValid() const {
  const auto is_type = [](TokenType type) {
    return type >= TokenType::kNormal && type <= TokenType::kByte;
  };
  return texts.size() == size() && texts.IsValid() && types.size() == size() &&
         std::all_of(types.begin(), types.end(), is_type) &&
         std::all_of(ends.begin(), ends.end(), [this](int32_t id) { return Contains(id); }) &&
         std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) == ends.end();
}

}  // namespace inlay

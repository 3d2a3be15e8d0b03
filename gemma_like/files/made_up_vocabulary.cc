#include "gemma_like/files/made_up_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/format.h"
#include "gemma_like/chat/chat.h"

namespace inlay {
namespace {

// Token types of GGUF files.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;

constexpr absl::string_view kSpace = "\u2581";
constexpr size_t kRoles = 3, kBytes = 256, kLetters = 27;

// Numbers words in the order of their length, then of their letters: 1 is "a", 27 a space, 28 "aa".
std::string Word(size_t number) {
  std::vector<size_t> letters;
  for (; number > 0; number = (number - 1) / kLetters) letters.push_back((number - 1) % kLetters);
  std::string word;
  for (auto letter = letters.rbegin(); letter != letters.rend(); ++letter) {
    if (*letter == kLetters - 1) {
      absl::StrAppend(&word, kSpace);
    } else {
      word.push_back(static_cast<char>('a' + *letter));
    }
  }
  return word;
}

}  // namespace

absl::Status AddMadeUpVocabulary(SynthModel& model) {
  const uint64_t rows = model.tensors.front().dims[1];  // the embedding is listed first
  const absl::Span<const char* const> of_chats =
      FixedChatFormat::ControlTokens(model.chat_template);
  const size_t least = kRoles + kBytes + kLetters + of_chats.size();
  if (rows < least) {
    return absl::InvalidArgumentError(absl::StrCat("a made-up vocabulary has at least ", least,
                                                   " tokens, but the model has ", rows));
  }
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {kUnknown, kControl, kControl};
  for (size_t byte = 0; byte < kBytes; ++byte) {
    tokens.push_back(Format("<0x%02X>", byte));
    types.push_back(kByte);
  }
  std::vector<float> scores(tokens.size(), 0.0f);
  for (size_t number = 1; tokens.size() < rows - of_chats.size(); ++number) {
    tokens.push_back(Word(number));
    types.push_back(kNormal);
    scores.push_back(-static_cast<float>(number));
  }
  for (const char* token : of_chats) {
    tokens.push_back(token);
    types.push_back(kControl);
    scores.push_back(0);
  }
  GgufWriter& metadata = *model.metadata;
  metadata.SetString("tokenizer.ggml.model", "llama");
  metadata.SetStrings("tokenizer.ggml.tokens", tokens);
  metadata.SetFloat32s("tokenizer.ggml.scores", scores);
  metadata.SetInt32s("tokenizer.ggml.token_type", types);
  metadata.SetUint32("tokenizer.ggml.unknown_token_id", 0);
  metadata.SetUint32("tokenizer.ggml.bos_token_id", 1);
  metadata.SetUint32("tokenizer.ggml.eos_token_id", 2);
  metadata.SetBool("tokenizer.ggml.add_bos_token", false);
  metadata.SetBool("tokenizer.ggml.add_space_prefix", false);
  return absl::OkStatus();
}

}  // namespace inlay

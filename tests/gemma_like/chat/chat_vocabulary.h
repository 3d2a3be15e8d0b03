// Vocabularies with the control tokens of chats, and tokens shown as text.
#ifndef INLAY_TESTS_GEMMA_LIKE_CHAT_CHAT_VOCABULARY_H_
#define INLAY_TESTS_GEMMA_LIKE_CHAT_CHAT_VOCABULARY_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay {

inline constexpr int32_t kControl = 3;

inline std::unique_ptr<Tokenizer> MustLoad(const TestVocabulary& vocabulary) {
  auto tokenizer = vocabulary.Load();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

inline std::unique_ptr<Tokenizer> GemmaTokenizer() {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("<start_of_turn>", kControl);
  vocabulary.Add("<end_of_turn>", kControl);
  vocabulary.flags = {{"add_bos_token", true}, {"add_space_prefix", false}};
  return MustLoad(vocabulary);
}

inline std::unique_ptr<Tokenizer> GraniteTokenizer() {
  TestVocabulary vocabulary = BpeBase("dbrx");
  for (const char* token : {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"})
    vocabulary.Add(token, kControl);
  vocabulary.flags = {{"add_bos_token", false}};
  return MustLoad(vocabulary);
}

// The tokens as text, control tokens in brackets so that plain text of the same letters differs.
inline std::string Show(const Tokenizer& tokenizer,
                        const absl::StatusOr<std::vector<int32_t>>& tokens) {
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  std::string text;
  for (int32_t token : *tokens) {
    if (tokenizer.IsControl(token)) {
      absl::StrAppend(&text, "[", tokenizer.TokenText(token), "]");
    } else {
      text += std::string(tokenizer.Piece(token));
    }
  }
  return text;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_CHAT_CHAT_VOCABULARY_H_

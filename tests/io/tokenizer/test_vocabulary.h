// Small vocabularies as GGUF bytes, each part of which a test can spoil.
#ifndef INLAY_TESTS_IO_TEST_VOCABULARY_H_
#define INLAY_TESTS_IO_TEST_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

struct TestVocabulary {
  std::string model = "llama";
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::optional<std::vector<float>> scores;
  std::optional<std::vector<std::string>> merges;
  std::optional<std::string> pre;
  std::vector<std::pair<std::string, uint32_t>> ids;                    // "bos_token_id", ...
  std::vector<std::pair<std::string, std::vector<uint32_t>>> id_lists;  // "eos_token_ids", ...
  std::vector<std::pair<std::string, bool>> flags;                      // "add_bos_token", ...
  std::string architecture = {};           // of the model; no such key when empty
  std::optional<uint64_t> embedding_rows;  // of token_embd.weight, where there is one

  void Add(const std::string& text, int32_t type, float score = 0) {
    tokens.push_back(text);
    types.push_back(type);
    if (scores.has_value()) scores->push_back(score);
  }

  // A GGUF file without other tensors.
  std::string Bytes() const;
  absl::StatusOr<std::unique_ptr<Tokenizer>> Load() const;
};

// <unk>, <s>, </s>, and the 256 byte tokens: ids 0, 1, 2 and 3 + byte. BOS is 1, EOS 2.
TestVocabulary SpmBase();

// <|endoftext|> (control, BOS and EOS) and the 256 bytes as normal tokens: ids 0 and 1 + byte.
TestVocabulary BpeBase(const std::string& pre);

// How byte-level BPE writes bytes.
std::string ByteLevel(const std::string& bytes);

}  // namespace inlay

#endif  // INLAY_TESTS_IO_TEST_VOCABULARY_H_

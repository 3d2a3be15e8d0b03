#include "tests/io/tokenizer/test_vocabulary.h"

#include <cstdio>

#include "base/utf8.h"
#include "io/tokenizer/load_tokenizer.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {

std::string TestVocabulary::Bytes() const {
  const uint64_t keys = 3 + scores.has_value() + merges.has_value() + pre.has_value() + ids.size() +
                        id_lists.size() + flags.size() + !architecture.empty();
  const std::string prefix = "tokenizer.ggml.";
  GgufBytes bytes;
  bytes.Header(embedding_rows.has_value(), keys);
  if (!architecture.empty())
    bytes.Key("general.architecture", GgufType::kString).Text(architecture);
  bytes.Key(prefix + "model", GgufType::kString).Text(model);
  bytes.Array(prefix + "tokens", GgufType::kString, tokens.size());
  for (const std::string& token : tokens) bytes.Text(token);
  bytes.Array(prefix + "token_type", GgufType::kInt32, types.size());
  for (const int32_t type : types) bytes.Put(type);
  if (scores.has_value()) {
    bytes.Array(prefix + "scores", GgufType::kFloat32, scores->size());
    for (const float score : *scores) bytes.Put(score);
  }
  if (merges.has_value()) {
    bytes.Array(prefix + "merges", GgufType::kString, merges->size());
    for (const std::string& merge : *merges) bytes.Text(merge);
  }
  if (pre.has_value()) bytes.Key(prefix + "pre", GgufType::kString).Text(*pre);
  for (const auto& [name, id] : ids) bytes.Key(prefix + name, GgufType::kUint32).U32(id);
  for (const auto& [name, list] : id_lists) {
    bytes.Array(prefix + name, GgufType::kUint32, list.size());
    for (const uint32_t id : list) bytes.U32(id);
  }
  for (const auto& [name, flag] : flags) {
    bytes.Key(prefix + name, GgufType::kBool).Put<uint8_t>(flag);
  }
  if (embedding_rows.has_value()) {
    bytes.Tensor("token_embd.weight", {1, *embedding_rows}, /*type=*/0, /*offset=*/0)
        .PadTo(32)
        .Zeros(4 * *embedding_rows);
  }
  return bytes.bytes();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TestVocabulary::Load() const {
  const ParsedBytes parsed = ParseCopy(Bytes());
  if (!parsed.file.ok()) return parsed.file.status();
  return LoadTokenizer(*parsed.file);
}

TestVocabulary SpmBase() {
  TestVocabulary vocabulary;
  vocabulary.scores.emplace();
  vocabulary.Add("<unk>", 2);
  vocabulary.Add("<s>", 3);
  vocabulary.Add("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    vocabulary.Add(text, 6);
  }
  vocabulary.ids = {{"bos_token_id", 1}, {"eos_token_id", 2}, {"unknown_token_id", 0}};
  return vocabulary;
}

std::string ByteLevel(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    // The bytes that are not printable in Latin-1 are numbered from U+0100 on: 0x00 to 0x20,
    // 0x7F to 0xA0, 0xAD.
    char32_t code_point = byte;
    if (byte <= 0x20) code_point = 0x100 + byte;
    if (byte >= 0x7F && byte <= 0xA0) code_point = 0x121 + (byte - 0x7F);
    if (byte == 0xAD) code_point = 0x143;
    AppendUtf8(code_point, &out);
  }
  return out;
}

TestVocabulary BpeBase(const std::string& pre) {
  TestVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  vocabulary.merges.emplace();
  vocabulary.Add("<|endoftext|>", 3);
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.Add(ByteLevel(std::string(1, static_cast<char>(byte))), 1);
  }
  vocabulary.ids = {{"bos_token_id", 0}, {"eos_token_id", 0}};
  return vocabulary;
}

}  // namespace inlay

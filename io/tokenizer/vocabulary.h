// The tokens of a GGUF file, checked and copied: texts, types, and the ids with a role.
#ifndef INLAY_IO_TOKENIZER_VOCABULARY_H_
#define INLAY_IO_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/gguf/gguf.h"

namespace inlay {

// Many strings in one allocation.
class StringPool {
 public:
  // Reserves memory for `count` strings of `bytes` bytes in total.
  void Reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  void Add(absl::string_view text) {
    bytes_.append(text.data(), text.size());
    ends_.push_back(bytes_.size());
  }
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return bytes_.size(); }
  // Valid until the next Add and while the object stays where it is.
  absl::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// The values are those of `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Vocabulary {
  // Longest token, in bytes; it bounds the time that encoding takes per byte of text.
  static constexpr size_t kLongestToken = 4096;

  // Reads tokens, token_type (all normal when the key is missing) and the ids with a role. Fails
  // when there is no token, a token is too long, lengths differ, a type is unknown, or an id is
  // outside the vocabulary.
  static absl::StatusOr<Vocabulary> Load(const GgufFile& file);

  size_t size() const { return texts.size(); }
  bool Contains(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < size(); }

  // Whether `unk` is set and of type kUnknown: some files name a control token as the unknown one,
  // but no text may turn into a control token.
  bool has_unknown() const { return unk.has_value() && types[*unk] == TokenType::kUnknown; }

  StringPool texts;  // as in the file
  std::vector<TokenType> types;
  std::optional<int32_t> bos, eos, unk, eot;
  std::optional<bool> add_bos;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_VOCABULARY_H_

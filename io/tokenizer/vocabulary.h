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
  //
  // Where token_embd.weight has fewer rows than there are tokens, those without a row are left out:
  // a model can neither read nor produce them.
  //
  // Several tokens may have the same text. The one with the least id stands for it, among normal
  // tokens and among those that are matched verbatim.
  static absl::StatusOr<Vocabulary> Load(const GgufFile& file);

  size_t size() const { return texts.size(); }
  bool Contains(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < size(); }

  // Whether `unk` is set and of type kUnknown: some files name a control token as the unknown one,
  // but no text may turn into a control token.
  bool has_unknown() const { return unk.has_value() && types[*unk] == TokenType::kUnknown; }

  StringPool texts;              // as in the file
  std::vector<TokenType> types;  // as in the file, except for control tokens of another type
  size_t listed = 0;             // tokens in the file, at least size()
  std::optional<int32_t> bos, eos, unk;
  // The tokens after which a model generates nothing: those that the file names, and control tokens
  // with one of the usual texts, since many files name only one of several. Ascending.
  std::vector<int32_t> ends;
  std::vector<int32_t> suppressed;  // those that the file says are never generated, ascending
  std::optional<bool> add_bos, add_eos;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_VOCABULARY_H_

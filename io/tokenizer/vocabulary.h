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
#include "io/tokenizer/string_table.h"

namespace inlay {

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

  // Reads tokens, token_type (normal where it is 0 or the key is missing) and the ids with a role.
  // Fails when there is no token, a token or all together are too long, lengths differ, a type is
  // unknown, or the id of bos, eos or unk is outside the vocabulary.
  //
  // Where token_embd.weight has fewer rows than there are tokens, those without a row are left out:
  // a model can neither read nor produce them.
  //
  // Several tokens may have the same text. The one with the least id stands for it, among normal
  // tokens and among those that are matched verbatim.
  static absl::StatusOr<Vocabulary> Load(const GgufFile& file);
  // The same without what VisitArrays visits, which must follow.
  static absl::StatusOr<Vocabulary> LoadRoles(const GgufFile& file);

  // Calls `visit` with the arrays that a packed file holds ready.
  template <class Self, class Visit>
  static void VisitArrays(Self& self, Visit& visit) {
    StringTable::VisitArrays(self.texts, visit);
    visit(self.types);
    visit(self.ends);
  }
  // Whether the arrays belong together, as they may not when they come from a file.
  bool ArraysAreValid() const;

  size_t size() const { return count; }
  bool Contains(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < size(); }

  // Whether `unk` is set and of type kUnknown: some files name a control token as the unknown one,
  // but no text may turn into a control token.
  bool has_unknown() const { return unk.has_value() && types[*unk] == TokenType::kUnknown; }

  size_t listed = 0;  // tokens in the file
  size_t count = 0;   // of these, those that have a row in the embedding
  StringTable texts;  // as in the file
  // As in the file, except for the type 0, which is normal, and control tokens of another type.
  std::vector<TokenType> types;
  std::optional<int32_t> bos, eos, unk;
  // The tokens after which a model generates nothing: those that the file names, and control tokens
  // with one of the usual texts, since many files name only one of several. Ascending, without ids
  // of no token.
  std::vector<int32_t> ends;
  std::vector<int32_t> suppressed;  // likewise those that the file says are never generated
  std::optional<bool> add_bos, add_eos;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_VOCABULARY_H_

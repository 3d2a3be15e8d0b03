// What tokenizers with a vocabulary have in common: roles of ids, special tokens, decoding.
#ifndef INLAY_IO_TOKENIZER_VOCABULARY_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_VOCABULARY_TOKENIZER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/ready_arrays.h"
#include "io/tokenizer/string_table.h"
#include "io/tokenizer/token_matcher.h"
#include "io/tokenizer/tokenizer.h"
#include "io/tokenizer/vocabulary.h"

namespace inlay {

// User-defined tokens are cut out of a text first, and control tokens too if the caller trusts it.
// The sections between them are encoded by the derived class.
class VocabularyTokenizer : public Tokenizer {
 public:
  using Tokenizer::Decode;
  absl::StatusOr<std::vector<int32_t>> EncodeMarked(absl::string_view text,
                                                    absl::Span<const TrustRun> runs) const override;
  absl::StatusOr<std::unique_ptr<TokenStream>> StartEncoding(const EncodeOptions& options,
                                                             size_t piece) const override;
  std::string Decode(absl::Span<const int32_t> ids, bool* starts_section) const override;
  absl::string_view Piece(int32_t id) const override;
  absl::string_view TokenText(int32_t id) const override;
  size_t size() const override { return vocabulary_.size(); }
  std::optional<int32_t> bos() const override { return vocabulary_.bos; }
  std::optional<int32_t> eos() const override { return vocabulary_.eos; }
  std::optional<int32_t> unk() const override { return vocabulary_.unk; }
  absl::Span<const int32_t> ends() const override { return vocabulary_.ends; }
  absl::Span<const int32_t> suppressed() const override { return vocabulary_.suppressed; }
  bool adds_bos() const override { return adds_bos_; }
  std::optional<bool> adds_eos() const override { return vocabulary_.add_eos; }
  bool IsControl(int32_t id) const override;
  std::optional<int32_t> FindSpecial(absl::string_view text) const override;

 protected:
  // `pieces`: what each token contributes to a text. With `space_prefix`, each section of a text
  // gets a space in front, which decoding removes. Init must follow.
  VocabularyTokenizer(Vocabulary vocabulary, StringTable pieces, bool adds_bos, bool space_prefix,
                      bool to_nfc);

  // Fails when there are too many special tokens to search for; the message names `file`.
  absl::Status Init(absl::string_view file);

  // Reads what a packed file holds ready, and the roles of ids. Fails where that is missing or
  // tables.AreValid(vocabulary, args...) says no. `file` is not needed any more then.
  template <class Tables, class... Args>
  static absl::Status LoadReady(const GgufFile& file, Vocabulary& vocabulary, StringTable& pieces,
                                Tables& tables, const Args&... args) {
    INLAY_RETURN_IF_ERROR(CheckReady(file));
    INLAY_ASSIGN_OR_RETURN(vocabulary, Vocabulary::LoadRoles(file));
    const bool valid = ReadArrays(file.tokenizer_tables(), vocabulary, pieces, tables) &&
                       vocabulary.ArraysAreValid() && pieces.size() == vocabulary.size() &&
                       pieces.IsValid() && tables.AreValid(vocabulary, args...);
    file.Forget(file.tokenizer_tables());
    return valid ? absl::OkStatus() : DamagedTables(file);
  }

  // Appends the ids of the words at the beginning of `text`, and returns how many bytes these words
  // have. Each word is encoded by itself, and where a word ends does not depend on the text before
  // it. With `last` these are all words; otherwise `text` continues in a way that is not known yet,
  // so these are the words whose end does not depend on it. `text` has at most kLongestText bytes
  // and no special tokens.
  virtual size_t EncodeWords(absl::string_view text, bool last,
                             std::vector<int32_t>* ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const StringTable& pieces() const { return pieces_; }

 private:
  class Stream;

  static absl::Status CheckReady(const GgufFile& file);
  static absl::Status DamagedTables(const GgufFile& file);

  Vocabulary vocabulary_;
  StringTable pieces_;
  bool adds_bos_;
  bool space_prefix_;
  bool to_nfc_;  // text between special tokens is normalized
  // The most bytes of a text that one token may stand for: the longest piece, or an unknown
  // character.
  size_t longest_piece_ = 4;
  TokenMatcher special_;  // user-defined tokens in any text, control tokens in trusted ones
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_VOCABULARY_TOKENIZER_H_

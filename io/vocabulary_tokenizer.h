// What tokenizers with a vocabulary have in common: roles of ids, special tokens, decoding.
#ifndef INLAY_IO_VOCABULARY_TOKENIZER_H_
#define INLAY_IO_VOCABULARY_TOKENIZER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/token_matcher.h"
#include "io/tokenizer.h"
#include "io/vocabulary.h"

namespace inlay {

// User-defined tokens are cut out of a text first, and control tokens too where the caller trusts
// it; what lies between goes to the derived class.
class VocabularyTokenizer : public Tokenizer {
 public:
  using Tokenizer::Encode;
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                              const EncodeOptions& options) const override;
  std::string Decode(absl::Span<const int32_t> ids) const override;
  absl::string_view Piece(int32_t id) const override;
  absl::string_view TokenText(int32_t id) const override;
  size_t size() const override { return vocabulary_.size(); }
  std::optional<int32_t> bos() const override { return vocabulary_.bos; }
  std::optional<int32_t> eos() const override { return vocabulary_.eos; }
  std::optional<int32_t> unk() const override { return vocabulary_.unk; }
  std::optional<int32_t> eot() const override { return vocabulary_.eot; }
  bool adds_bos() const override { return adds_bos_; }
  bool IsControl(int32_t id) const override;
  std::optional<int32_t> FindSpecial(absl::string_view text) const override;

 protected:
  // `pieces`: what each token contributes to a text. With `space_prefix`, the derived class puts
  // a space in front of each part of a text, and decoding takes it away.
  VocabularyTokenizer(Vocabulary vocabulary, StringPool pieces, bool adds_bos, bool space_prefix);

  // Appends the ids of a part without special tokens, 1 to kLongestText bytes.
  virtual void EncodePart(absl::string_view part, std::vector<int32_t>* ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const StringPool& pieces() const { return pieces_; }

 private:
  Vocabulary vocabulary_;
  StringPool pieces_;
  bool adds_bos_;
  bool space_prefix_;
  TokenMatcher user_defined_;
  TokenMatcher special_;  // user-defined and control
};

}  // namespace inlay

#endif  // INLAY_IO_VOCABULARY_TOKENIZER_H_

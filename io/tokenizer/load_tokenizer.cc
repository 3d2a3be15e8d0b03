#include "io/tokenizer/load_tokenizer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/tokenizer/bpe_tokenizer.h"
#include "io/tokenizer/spm_tokenizer.h"

namespace inlay {
namespace {

constexpr absl::string_view kModelKey = "tokenizer.ggml.model";

// For files that hold no vocabulary: the input and output of such a model are ids only.
class NoTokenizer : public Tokenizer {
 public:
  explicit NoTokenizer(std::string file) : file_(std::move(file)) {}

  absl::StatusOr<std::unique_ptr<TokenStream>> StartEncoding(const EncodeOptions&,
                                                             size_t) const override {
    return NoVocabulary();
  }
  absl::StatusOr<std::vector<int32_t>> EncodeMarked(absl::string_view,
                                                    absl::Span<const TrustRun>) const override {
    return NoVocabulary();
  }
  std::string Decode(absl::Span<const int32_t>, bool*) const override { return ""; }
  absl::string_view Piece(int32_t) const override { return ""; }
  absl::string_view TokenText(int32_t) const override { return ""; }
  size_t size() const override { return 0; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  std::optional<int32_t> eos() const override { return std::nullopt; }
  std::optional<int32_t> unk() const override { return std::nullopt; }
  absl::Span<const int32_t> ends() const override { return {}; }
  bool adds_bos() const override { return false; }
  std::optional<bool> adds_eos() const override { return std::nullopt; }
  bool IsControl(int32_t) const override { return false; }
  std::optional<int32_t> FindSpecial(absl::string_view) const override { return std::nullopt; }

 private:
  absl::Status NoVocabulary() const {
    return absl::FailedPreconditionError(
        absl::StrCat(file_, ": key '", kModelKey, "' is 'no_vocab', so text cannot be encoded"));
  }

  std::string file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const absl::string_view model, file.GetString(kModelKey));
  if (model == "llama" || model == "gemma4") return SpmTokenizer::Load(file);
  if (model == "gpt2") return BpeTokenizer::Load(file);
  if (model == "no_vocab") return std::unique_ptr<Tokenizer>(new NoTokenizer(file.name()));
  return absl::UnimplementedError(
      absl::StrCat(file.name(), ": key '", kModelKey, "' is ", QuoteForMessage(model),
                   ", but must be 'llama', 'gpt2', 'gemma4' or 'no_vocab'"));
}

}  // namespace inlay

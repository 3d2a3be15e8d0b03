// Text to token ids and back.
#ifndef INLAY_IO_TOKENIZER_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// The bytes of a text from the end of the run before it up to `end`, and whether the caller trusts
// them.
struct TrustRun {
  size_t end;
  bool trusted;
};

struct EncodeOptions {
  // Whether the ids start with BOS; without a value, as the vocabulary says. A trusted text that
  // begins with BOS itself gets no second one.
  std::optional<bool> add_bos;
  // Whether the text of a control token in the input, "<end_of_turn>", becomes that token. Only
  // for text that the caller trusts, such as a chat template's; otherwise it stays plain text.
  bool parse_special = false;
  // Whether the text goes on within another one: no space is put in front of it, as some
  // vocabularies put one in front of a text.
  bool continues = false;
  // A TokenStream fails with OutOfRange once it knows that there are more. Finish does not check:
  // it encodes what is left of the text, at most TokenStream::kPiece bytes or one word.
  size_t max_tokens = std::numeric_limits<size_t>::max();
};

// Encodes one text after the other. A text may be passed in pieces of any size; its tokens are the
// same as those of the whole text. Bytes whose tokens the next piece may still change are buffered:
// about kPiece of them, or a longer word. After an error the stream can only be destroyed.
class TokenStream {
 public:
  static constexpr size_t kPiece = size_t{1} << 16;

  virtual ~TokenStream() = default;

  // Appends to `ids` the tokens of the text so far that are certain. OutOfRange beyond
  // EncodeOptions::max_tokens, InvalidArgument for a word longer than Tokenizer::kLongestText.
  virtual absl::Status Push(absl::string_view piece, std::vector<int32_t>* ids) = 0;

  // Ends the text and appends its last tokens. The next Push begins another text.
  virtual absl::Status Finish(std::vector<int32_t>* ids) = 0;
};

// Immutable once loaded, so one object may be used by many threads at the same time.
class Tokenizer {
 public:
  // Longest text that Encode accepts, in bytes.
  static constexpr size_t kLongestText = size_t{1} << 30;

  virtual ~Tokenizer() = default;

  // Any bytes are accepted: what is not UTF-8 is encoded byte by byte. Fails for a text longer
  // than kLongestText, when the file holds no vocabulary, and with ResourceExhausted without
  // memory.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                              const EncodeOptions& options) const;
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const {
    return Encode(text, EncodeOptions());
  }

  // The same for a text of which only some bytes are trusted: the text of a control token becomes
  // that token where all its bytes are. `runs` cover the text from left to right. Otherwise the ids
  // are those of the whole text: what is no special token is encoded across the ends of runs. BOS
  // as in Encode. Unlike Encode it throws std::bad_alloc without memory.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeMarked(
      absl::string_view text, absl::Span<const TrustRun> runs) const = 0;

  // For texts that arrive in pieces; the tokenizer must outlive the result. Text is encoded in
  // steps of `piece` bytes, which only tests set. Fails when the file holds no vocabulary.
  virtual absl::StatusOr<std::unique_ptr<TokenStream>> StartEncoding(
      const EncodeOptions& options, size_t piece = TokenStream::kPiece) const = 0;

  // The bytes that `ids` stand for: Decode(Encode(x)) == x, unless x needs the unknown token.
  // Control tokens and ids outside the vocabulary contribute nothing. Where the vocabulary puts a
  // space in front of a text, that space is removed again.
  std::string Decode(absl::Span<const int32_t> ids) const {
    bool starts_section = true;
    return Decode(ids, &starts_section);
  }
  // The same for ids that arrive in pieces: `starts_section` must be true before the first call,
  // and carries its state from call to call.
  virtual std::string Decode(absl::Span<const int32_t> ids, bool* starts_section) const = 0;

  // The bytes that one id contributes within a text, for streaming (see Utf8Stream: they need not
  // be whole characters); empty for control tokens and ids outside the vocabulary.
  virtual absl::string_view Piece(int32_t id) const = 0;

  // The token as the vocabulary writes it, "<eos>"; empty for ids outside the vocabulary.
  virtual absl::string_view TokenText(int32_t id) const = 0;

  // What stands for the token where each one is shown: its Piece, or its TokenText where that is
  // empty.
  absl::string_view TokenBytes(int32_t id) const {
    const absl::string_view piece = Piece(id);
    return piece.empty() ? TokenText(id) : piece;
  }

  // Number of tokens; 0 when the file holds no vocabulary.
  virtual size_t size() const = 0;

  // Beginning of sequence, end of sequence, unknown: what the file names.
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  virtual std::optional<int32_t> unk() const = 0;

  // Whether Encode starts with BOS by default.
  virtual bool adds_bos() const = 0;

  // Whether the file says that texts end with EOS; no value where it says nothing. It means texts
  // to embed: Encode does not add EOS.
  virtual std::optional<bool> adds_eos() const = 0;

  virtual bool IsControl(int32_t id) const = 0;

  // What a packed file holds of the tokenizer, so that loading it computes nothing: a multiple of 4
  // bytes, empty where there is no vocabulary. See io/tokenizer/ready_arrays.h.
  virtual std::string ReadyArrays() const { return ""; }

  // The control or user-defined token with exactly this text.
  virtual std::optional<int32_t> FindSpecial(absl::string_view text) const = 0;

  // The tokens that end a generation, ascending: end of sequence, of a turn or of a message, as the
  // file names them or by their usual texts. There may be several, and none.
  virtual absl::Span<const int32_t> ends() const = 0;
  // The tokens that the file says are never to be generated, ascending: those of pictures and
  // sounds, say.
  virtual absl::Span<const int32_t> suppressed() const { return {}; }
  // Whether a model that generates `id` has finished.
  bool IsEndOfGeneration(int32_t id) const;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_TOKENIZER_H_

// inlay tokenize: texts to token ids and back, with nothing but a file's vocabulary.
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8_stream.h"
#include "io/file/file_kind.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

struct TokenizeFlags {
  ModelFlags model;
  std::string file = "-";
  bool null = false;
  bool decode = false;
  std::optional<bool> bos;
  bool special = false;
  bool json = false;
};

// Writes results one after another, each piece by piece: as lines (or ended by NULs), or as one
// JSON array. Begin() and End() enclose the pieces of each result.
class ResultWriter {
 public:
  // Texts are written as their exact bytes, so that they can be tokenized again.
  ResultWriter(bool json, char end)
      : json_(json), end_(end), out_(STDOUT_FILENO, Output::Form::kRawUnlessShown) {}

  void Begin(absl::string_view json_begin) {
    if (json_) out_.Write(absl::StrCat(first_ ? "[\n" : ",\n", json_begin));
    first_ = false;
  }
  void Write(absl::string_view piece) { out_.Write(piece); }
  void End(absl::string_view json_end) {
    out_.Write(json_ ? json_end : absl::string_view(&end_, 1));
  }

  absl::Status Finish() {
    if (json_) out_.Write(first_ ? "[]\n" : "\n]\n");
    return out_.Finish();
  }

  bool json() const { return json_; }
  bool ok() const { return out_.ok(); }

 private:
  bool json_;
  char end_;
  bool first_ = true;
  Output out_;
};

// Converts one text after the other to ids.
class Encoder {
 public:
  Encoder(const TokenizeFlags& flags, std::unique_ptr<TokenStream> stream)
      : stream_(std::move(stream)), results_(flags.json, '\n') {}

  absl::Status Push(absl::string_view piece) {
    Begin();
    INLAY_RETURN_IF_ERROR(stream_->Push(piece, &ids_));
    WriteIds();
    return absl::OkStatus();
  }

  absl::Status EndText() {
    Begin();
    INLAY_RETURN_IF_ERROR(stream_->Finish(&ids_));
    WriteIds();
    results_.End("]");
    in_text_ = false;
    return absl::OkStatus();
  }

  ResultWriter& results() { return results_; }

 private:
  void Begin() {
    if (!in_text_) results_.Begin("[");
    if (!in_text_) first_id_ = true;
    in_text_ = true;
  }

  void WriteIds() {
    for (const int32_t id : ids_) {
      if (!first_id_) results_.Write(results_.json() ? "," : " ");
      results_.Write(absl::AlphaNum(id).Piece());
      first_id_ = false;
    }
    ids_.clear();
  }

  std::unique_ptr<TokenStream> stream_;
  std::vector<int32_t> ids_;
  ResultWriter results_;
  bool in_text_ = false;
  bool first_id_ = true;
};

// Converts one line of ids after the other to its text.
class Decoder {
 public:
  Decoder(const TokenizeFlags& flags, const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), results_(flags.json, flags.null ? '\0' : '\n') {}

  absl::Status Push(absl::string_view piece) {
    Begin();
    while (!piece.empty()) {
      const size_t end = piece.find_first_of(kSeparators);
      absl::StrAppend(&word_, piece.substr(0, end));
      if (end == absl::string_view::npos) break;
      INLAY_RETURN_IF_ERROR(EndWord());
      piece.remove_prefix(end + 1);
    }
    // A number has far fewer digits: a longer word is refused, not collected.
    if (word_.size() > kLongestWord) return NoId();
    return absl::OkStatus();
  }

  absl::Status EndText() {
    Begin();
    INLAY_RETURN_IF_ERROR(EndWord());
    if (results_.json()) WriteJson(characters_.Flush());
    results_.End("\"");
    in_text_ = false;
    return absl::OkStatus();
  }

  ResultWriter& results() { return results_; }

 private:
  static constexpr absl::string_view kSeparators = " \t\r,";
  static constexpr size_t kLongestWord = 1000;

  void Begin() {
    if (in_text_) return;
    in_text_ = starts_part_ = true;
    ++line_;
    results_.Begin("\"");
  }

  absl::Status EndWord() {
    if (word_.empty()) return absl::OkStatus();
    int32_t id = -1;
    if (!absl::SimpleAtoi(word_, &id) || id < 0 || static_cast<size_t>(id) >= tokenizer_.size())
      return NoId();
    word_.clear();
    const std::string text = tokenizer_.Decode({&id, 1}, &starts_part_);
    if (results_.json()) {
      WriteJson(characters_.Push(text));
    } else {
      results_.Write(text);
    }
    return absl::OkStatus();
  }

  // Whole characters, so that the pieces of the string are escaped as the whole would be.
  void WriteJson(const std::string& text) {
    const std::string quoted = JsonText(text, -1);  // and a newline
    results_.Write(absl::string_view(quoted).substr(1, quoted.size() - 3));
  }

  absl::Status NoId() const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", QuoteForMessage(word_),
                                                   " is not a token id from 0 to ",
                                                   tokenizer_.size() - 1));
  }

  const Tokenizer& tokenizer_;
  ResultWriter results_;
  size_t line_ = 0;
  std::string word_;  // the incomplete word at the end of the pieces so far
  Utf8Stream characters_;
  bool in_text_ = false;
  bool starts_part_ = true;
};

// Passes the texts of the input, each of which ends with `end` (the last may lack it), to an
// Encoder or Decoder as they are read.
template <class Converter>
absl::Status Convert(Input& input, char end, Converter& converter) {
  bool in_text = false;
  while (converter.results().ok()) {
    INLAY_ASSIGN_OR_RETURN(absl::string_view piece, input.Next());
    if (piece.empty()) {
      if (in_text) INLAY_RETURN_IF_ERROR(converter.EndText());
      break;
    }
    for (size_t at; (at = piece.find(end)) != absl::string_view::npos;) {
      INLAY_RETURN_IF_ERROR(converter.Push(piece.substr(0, at)));
      INLAY_RETURN_IF_ERROR(converter.EndText());
      piece.remove_prefix(at + 1);
      in_text = false;
    }
    if (piece.empty()) continue;
    INLAY_RETURN_IF_ERROR(converter.Push(piece));
    in_text = true;
  }
  return converter.results().Finish();
}

absl::Status Run(const TokenizeFlags& flags) {
  if (const auto kind = KindOfFile(flags.file); kind.ok() && *kind == FileKind::kModel) {
    return UsageError(absl::StrCat(QuoteForMessage(flags.file),
                                   " is a model, which -m names: inlay tokenize -m MODEL FILE"));
  }
  // Before the model: --sandbox lets no other file be opened after that.
  INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.file));
  if (flags.file == "-" && isatty(STDIN_FILENO) == 1) {
    WriteNote(absl::StrCat("reading ", flags.decode ? "token ids" : "texts",
                           " from this terminal, one ", flags.decode ? "list" : "text",
                           " a line; Ctrl-D ends them\n"));
  }
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(file));
  if (tokenizer->size() == 0)
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no vocabulary"));
  if (flags.decode) {
    Decoder decoder(flags, *tokenizer);
    return Convert(input, '\n', decoder);
  }
  EncodeOptions options;
  options.add_bos = flags.bos;
  options.parse_special = flags.special;
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<TokenStream> stream, tokenizer->StartEncoding(options));
  Encoder encoder(flags, std::move(stream));
  return Convert(input, flags.null ? '\0' : '\n', encoder);
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<TokenizeFlags>();
  CLI::App& command =
      *app.add_subcommand("tokenize", "Prints the token ids of texts, one text per line.");
  AddModelFlag(command, flags->model);
  command
      .add_option("FILE", flags->file, "a file with one text per line; -: standard input (default)")
      ->type_name("FILE");
  CLI::Option* decode =
      command.add_flag("--decode", flags->decode, "convert lines of ids to texts instead");
  command.add_flag("--null", flags->null, "texts end with a NUL byte instead of a newline");
  CLI::Option* bos = command
                         .add_flag_callback(
                             "--bos", [flags] { flags->bos = true; },
                             "start each text with BOS (default: as the vocabulary says)")
                         ->excludes(decode);
  command
      .add_flag_callback(
          "--no-bos", [flags] { flags->bos = false; }, "start no text with BOS")
      ->excludes(decode)
      ->excludes(bos);
  command
      .add_flag("--special", flags->special,
                "parse the texts of control tokens, as <end_of_turn>, as these tokens")
      ->excludes(decode);
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

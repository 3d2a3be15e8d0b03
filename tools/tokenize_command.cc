// inlay tokenize: texts to token ids and back, with nothing but a file's vocabulary.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "io/gguf.h"
#include "io/status_macros.h"
#include "io/tokenizer.h"
#include "tools/commands.h"
#include "tools/json_text.h"
#include "tools/model_flags.h"
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

// The pieces that `end` ends; the last may lack it.
std::vector<absl::string_view> SplitTexts(absl::string_view all, char end) {
  std::vector<absl::string_view> texts = absl::StrSplit(all, end);
  if (texts.back().empty()) texts.pop_back();
  return texts;
}

absl::StatusOr<std::vector<int32_t>> ParseIds(absl::string_view line, size_t number, size_t bound) {
  std::vector<int32_t> ids;
  for (absl::string_view word :
       absl::StrSplit(line, absl::ByAnyChar(" \t\r,"), absl::SkipEmpty())) {
    int32_t id = -1;
    if (!absl::SimpleAtoi(word, &id) || id < 0 || static_cast<size_t>(id) >= bound) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", QuoteForMessage(word),
                                                     " is not a token id from 0 to ", bound - 1));
    }
    ids.push_back(id);
  }
  return ids;
}

// Writes results one after another: as lines (or each with a NUL), or as one JSON array.
class ResultWriter {
 public:
  // Texts are written as their exact bytes, so that they can be tokenized again.
  ResultWriter(bool json, char end)
      : json_(json), end_(end), out_(STDOUT_FILENO, Output::Form::kRawUnlessShown) {}

  void Add(absl::string_view text, const nlohmann::ordered_json& json) {
    if (json_) {
      out_.Write(absl::StrCat(first_ ? "[\n" : ",\n", absl::StripSuffix(JsonText(json, -1), "\n")));
    } else {
      out_.Write(text);
      out_.Write(absl::string_view(&end_, 1));
    }
    first_ = false;
  }

  absl::Status Finish() {
    if (json_) out_.Write(first_ ? "[]\n" : "\n]\n");
    return out_.Finish();
  }

  bool ok() const { return out_.ok(); }

 private:
  bool json_;
  char end_;
  bool first_ = true;
  Output out_;
};

absl::Status Encode(const TokenizeFlags& flags, const Tokenizer& tokenizer,
                    absl::string_view input) {
  ResultWriter results(flags.json, '\n');
  for (absl::string_view text : SplitTexts(input, flags.null ? '\0' : '\n')) {
    INLAY_ASSIGN_OR_RETURN(
        const std::vector<int32_t> ids,
        tokenizer.Encode(text, {.add_bos = flags.bos, .parse_special = flags.special}));
    results.Add(absl::StrJoin(ids, " "), ids);
    if (!results.ok()) break;
  }
  return results.Finish();
}

absl::Status Decode(const TokenizeFlags& flags, const Tokenizer& tokenizer,
                    absl::string_view input) {
  ResultWriter results(flags.json, flags.null ? '\0' : '\n');
  size_t number = 0;
  for (absl::string_view line : SplitTexts(input, '\n')) {
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                           ParseIds(line, ++number, tokenizer.size()));
    const std::string text = tokenizer.Decode(ids);
    results.Add(text, text);
    if (!results.ok()) break;
  }
  return results.Finish();
}

absl::Status Run(const TokenizeFlags& flags) {
  // Before the model: --sandbox lets no other file be read after that.
  INLAY_ASSIGN_OR_RETURN(const std::string input, ReadInput(flags.file));
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(file));
  if (tokenizer->size() == 0)
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no vocabulary"));
  return flags.decode ? Decode(flags, *tokenizer, input) : Encode(flags, *tokenizer, input);
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<TokenizeFlags>();
  CLI::App& command =
      *app.add_subcommand("tokenize", "Prints the token ids of texts, a line each.");
  AddModelFlag(command, flags->model);
  command.add_option("FILE", flags->file, "texts, a line each; -: standard input (default)");
  CLI::Option* decode =
      command.add_flag("--decode", flags->decode, "the reverse: a line of ids each, to texts");
  command.add_flag("--null", flags->null, "texts end with a NUL byte instead of a newline");
  CLI::Option* bos = command
                         .add_flag_callback(
                             "--bos", [flags] { flags->bos = true; },
                             "begin each text with BOS (default: as the vocabulary says)")
                         ->excludes(decode);
  command.add_flag_callback(
             "--no-bos", [flags] { flags->bos = false; }, "begin no text with BOS")
      ->excludes(decode)
      ->excludes(bos);
  command
      .add_flag("--special", flags->special,
                "the text of a control token, as <end_of_turn>, becomes that token")
      ->excludes(decode);
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

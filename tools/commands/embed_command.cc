// inlay embed: texts as vectors.
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "gemma_like/embed.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/vocabulary.h"
#include "tools/commands/commands.h"
#include "tools/flags/list_flag.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_writer.h"
#include "tools/output.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

struct EmbedFlags {
  ModelFlags model;
  std::vector<std::string> texts;
  std::vector<int32_t> tokens;
  bool json = false;
};

// Embeds texts, a batch at a time, and writes their vectors in order: each as a line, or all as one
// JSON object.
class Embedder {
 public:
  Embedder(const LoadedModel& model, bool json)
      : model_(model), most_(model.engine->info().context_length), json_(json) {}

  absl::Status Add(absl::string_view text) {
    auto ids = EncodeToEmbed(*model_.tokenizer, text, most_);
    if (!ids.ok()) return InText(ids.status());
    return Add(*std::move(ids));
  }

  // The tokens of a text. A batch is embedded once it is full.
  absl::Status Add(std::vector<int32_t> ids) {
    if (ids.empty()) return InText(absl::InvalidArgumentError("there are no tokens"));
    if (ids.size() > most_) {
      return InText(absl::OutOfRangeError(
          absl::StrCat(ids.size(), " tokens are more than the context of ", most_, " holds")));
    }
    const size_t tokens = pending_tokens_ + ids.size();
    if (tokens > model_.engine->info().max_batch || pending_.size() == kMostTexts) {
      INLAY_RETURN_IF_ERROR(Flush());
    }
    pending_tokens_ += ids.size();
    pending_.push_back(std::move(ids));
    return absl::OkStatus();
  }

  // Writes what was added, also after an error, which takes nothing from the texts before it.
  // Returns that error, or else the first one here. Call last.
  absl::Status Finish(absl::Status status) {
    const absl::Status flushed = Flush();
    if (status.ok()) status = flushed;
    if (json_ && (status.ok() || written_ > 0)) {
      BeginJson();
      writer_.End();
      writer_.Key("complete");
      writer_.Value(status.ok());
      writer_.End();
    }
    const absl::Status written = out_.Finish();
    return written.ok() ? status : written;  // output that fails is what cancels, too
  }

  // The longest line that may still be a text of the context's length.
  size_t MostBytes() const { return most_ * Vocabulary::kLongestToken; }

  // The error with the number of the text after those that were added, counted from 1.
  absl::Status InText(const absl::Status& error) const {
    return About(absl::StrCat("text ", written_ + pending_.size() + 1), error);
  }

 private:
  // Once there is a vector, or at the end, so that an error about the first text is all there is.
  void BeginJson() {
    if (std::exchange(begun_, true)) return;
    writer_.BeginObject();
    writer_.Key("model");
    writer_.Value(model_.file->name());
    writer_.Key("embeddings");
    writer_.BeginArray();
  }

  absl::Status Flush() {
    const std::vector<std::vector<int32_t>> texts = std::exchange(pending_, {});
    pending_tokens_ = 0;
    if (texts.empty()) return absl::OkStatus();
    const auto vectors =
        EmbedTexts(*model_.engine, texts, [&] { return interrupt_.requested() || !out_.ok(); });
    if (absl::IsCancelled(vectors.status()))
      return InterruptedError("interrupted before all texts were embedded");
    INLAY_RETURN_IF_ERROR(vectors.status());
    for (const std::vector<float>& vector : *vectors) {
      const std::string array = absl::StrCat("[", absl::StrJoin(vector, ",", AppendFloat), "]");
      if (json_) {
        BeginJson();
        writer_.Text(array);
      } else {
        out_.Write(absl::StrCat(array, "\n"));
      }
      ++written_;
    }
    out_.Flush();
    return absl::OkStatus();
  }

  const LoadedModel& model_;
  const size_t most_;  // tokens of a text
  const bool json_;
  std::vector<std::vector<int32_t>> pending_;
  size_t pending_tokens_ = 0;
  size_t written_ = 0;  // texts
  const InterruptWatch interrupt_;
  Output out_;
  JsonWriter writer_{out_};
  bool begun_ = false;  // the JSON object
};

// Each line is a text; the last one may lack its newline. In a file from Windows that is two bytes.
absl::Status AddLines(Input& input, Embedder& embedder) {
  std::string line;
  bool in_line = false;
  const auto add_line = [&] { return embedder.Add(absl::StripSuffix(line, "\r")); };
  while (true) {
    INLAY_ASSIGN_OR_RETURN(absl::string_view piece, input.Next());
    if (piece.empty()) break;
    for (size_t at; (at = piece.find('\n')) != absl::string_view::npos;) {
      line.append(piece.data(), at);
      INLAY_RETURN_IF_ERROR(add_line());
      line.clear();
      in_line = false;
      piece.remove_prefix(at + 1);
    }
    line.append(piece.data(), piece.size());
    in_line = in_line || !piece.empty();
    if (line.size() > embedder.MostBytes()) {
      return embedder.InText(absl::OutOfRangeError(
          absl::StrCat("the line has more than ", embedder.MostBytes(),
                       " bytes, which are more tokens than the context holds")));
    }
  }
  return in_line ? add_line() : absl::OkStatus();
}

absl::Status Run(const EmbedFlags& flags) {
  const bool lines =
      flags.texts.empty() ? flags.tokens.empty() : flags.texts == std::vector<std::string>{"-"};
  if (lines && flags.texts.empty() && isatty(STDIN_FILENO) != 0) {
    return UsageError("texts are needed: TEXT..., --tokens, or one a line on standard input");
  }
  // Before the model: --sandbox lets no other file be opened after that.
  std::optional<Input> input;
  if (lines) {
    INLAY_ASSIGN_OR_RETURN(Input opened, Input::Open("-"));
    input.emplace(std::move(opened));
  }
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model));
  Embedder embedder(model, flags.json);
  absl::Status status;
  if (lines) {
    status = AddLines(*input, embedder);
  } else if (!flags.tokens.empty()) {
    status = embedder.Add(flags.tokens);
  } else {
    for (size_t i = 0; i < flags.texts.size() && status.ok(); ++i)
      status = embedder.Add(flags.texts[i]);
  }
  return embedder.Finish(std::move(status));
}

}  // namespace

void AddEmbed(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<EmbedFlags>();
  flags->model.embeds = true;
  CLI::App& command = *app.add_subcommand(
      "embed", "Prints the embeddings of texts: for each a vector of length 1, as a JSON array.");
  AddEngineFlags(command, flags->model);
  CLI::Option* texts = command.add_option("TEXT", flags->texts,
                                          "the texts; -: one per line of standard input (default)");
  AddListFlag(command, "--tokens", flags->tokens,
              "the token ids of one text, as 2,17,1; used as given, without BOS and EOS",
              int32_t{0}, std::numeric_limits<int32_t>::max())
      ->excludes(texts);
  AddFormatFlag(command, flags->json);
  command.footer(
      "Each line of the output is one text's vector; with -o json, \"embeddings\" is the array of "
      "all vectors. A text that is too long ends the command; \"complete\" then is false. A "
      "model's prefixes (\"task: search result | query: \") are part of the text.\n"
      "For many texts: inlay batch with requests to /v1/embeddings, each with a result or error of "
      "its own, which goes on after an interruption.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

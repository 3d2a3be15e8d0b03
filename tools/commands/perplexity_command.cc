// inlay perplexity: how well a model predicts a text.
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "gemma_like/perplexity.h"
#include "io/gguf/gguf.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

struct PerplexityFlags {
  ModelFlags model;
  std::string file;
  PerplexityOptions options;
  bool special = false;
  std::optional<size_t> chunks;
  bool json = false;
};

std::string SumText(const LikelihoodSum& sum, size_t chunks, size_t chunk, size_t left_out) {
  const std::string rest =
      left_out > 0 ? absl::StrCat(", ", Plural(left_out, "token"), " at the end left out") : "";
  return Format("perplexity %.4f +/- %.4f, NLL %.12f +/- %.6f nats (%s of %d, %s scored%s)\n",
                sum.perplexity(), sum.perplexity_error(), sum.mean(), sum.mean_error(),
                Plural(chunks, "chunk"), chunk, Plural(sum.count(), "token"), rest);
}

// Fails beyond Tokenizer::kLongestText bytes, so that an endless file is refused.
absl::StatusOr<std::vector<int32_t>> EncodeAll(const Tokenizer& tokenizer, bool special,
                                               Input& input) {
  EncodeOptions options;
  options.parse_special = special;
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<TokenStream> stream,
                         tokenizer.StartEncoding(options));
  std::vector<int32_t> ids;
  size_t bytes = 0;
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, input.Next());
    if (piece.empty()) break;
    bytes += piece.size();
    if (bytes > Tokenizer::kLongestText) {
      return absl::OutOfRangeError(
          absl::StrCat(input.name(), " has more than ", Tokenizer::kLongestText, " bytes"));
    }
    INLAY_RETURN_IF_ERROR(stream->Push(piece, &ids));
  }
  INLAY_RETURN_IF_ERROR(stream->Finish(&ids));
  return ids;
}

absl::Status Run(const PerplexityFlags& flags) {
  // Before the model: --sandbox lets no other file be opened after that.
  INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.file));
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model));
  const Tokenizer& tokenizer = *model.tokenizer;
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeAll(tokenizer, flags.special, input));
  if (flags.chunks.has_value())
    tokens.resize(std::min(tokens.size(), *flags.chunks * flags.options.chunk));
  const size_t chunk = flags.options.chunk;
  if (tokens.size() < chunk) {
    return absl::InvalidArgumentError(absl::StrCat(
        input.name(), " has ", Plural(tokens.size(), "token"), ", and a chunk has ", chunk,
        tokens.size() < kSmallestChunk
            ? ": give a longer text"
            : absl::StrCat(": give a longer text, or -c ", tokens.size(), " or less")));
  }
  const size_t left_out = tokens.size() % chunk;
  const int32_t first = tokenizer.adds_bos() ? tokenizer.bos().value_or(-1) : -1;
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                         CreateCache(flags.model, *model.engine, flags.options.chunk));

  Output out;
  // On a terminal a bar has the perplexity so far; elsewhere a list grows. The bar is on standard
  // error: under mpirun standard output alone is a terminal.
  const bool bar_shows = isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  const bool lists = !flags.json && !bar_shows;
  ProgressBar bar("perplexity", tokens.size() / chunk * chunk, ProgressUnit::kTokens);
  LikelihoodSum sum;  // of the chunks so far
  std::vector<double> after_chunk;
  const auto on_chunk = [&](const LikelihoodSum& so_far) {
    sum = so_far;
    after_chunk.push_back(sum.perplexity());
    bar.Rename(
        Format("perplexity %.4f after %s", sum.perplexity(), Plural(after_chunk.size(), "chunk")));
    if (!lists) return;
    out.Write(Format("[%d]%.4f,", after_chunk.size(), sum.perplexity()));
    out.Flush();
  };
  const InterruptWatch interrupt;
  absl::Status status =
      Perplexity(*model.engine, *cache, tokens, first, flags.options, on_chunk, [&] {
        // With --rewind a chunk is evaluated more than once, so only whole chunks count.
        bar.Update(after_chunk.size() * chunk + (flags.options.rewind ? 0 : cache->length()));
        return interrupt.requested() || !out.ok();
      }).status();
  bar.Clear();
  if (absl::IsCancelled(status))
    status = InterruptedError("interrupted before the end of the text");
  // An error takes nothing from what was computed before it.
  if (flags.json && sum.count() > 0) {
    out.Write(JsonText({{"model", model.file->name()},
                        {"file", flags.file},
                        {"ctx", flags.options.chunk},
                        {"tokens", tokens.size()},
                        {"left_out", left_out},
                        {"complete", status.ok()},
                        {"chunks", after_chunk.size()},
                        {"scored", sum.count()},
                        {"mean_nll", sum.mean()},
                        {"mean_nll_error", sum.mean_error()},
                        {"perplexity", sum.perplexity()},
                        {"perplexity_error", sum.perplexity_error()},
                        {"perplexity_after_chunk", after_chunk}}));
  } else if (sum.count() > 0) {
    if (lists) out.Write("\n");
    out.Write(SumText(sum, after_chunk.size(), chunk, left_out));
  }
  const absl::Status written = out.Finish();
  return written.ok() ? status : written;  // output that fails is what cancels, too
}

}  // namespace

void AddPerplexity(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PerplexityFlags>();
  CLI::App& command =
      *app.add_subcommand("perplexity", "Scores how well the model predicts a text.");
  AddModelArgument(command, AddEngineFlags(command, flags->model), flags->model);
  command.add_option("-f,--file", flags->file, "the text; -: standard input")
      ->type_name("FILE")
      ->required();
  command
      .add_option("-c,--ctx-size", flags->options.chunk,
                  "tokens per chunk (default: 256), of which the second half is scored")
      ->check(Between(kSmallestChunk, std::numeric_limits<int32_t>::max()));
  command
      .add_option("--chunks", flags->chunks,
                  "evaluate only this many chunks, the first ones (default: all)")
      ->check(Between(1, std::numeric_limits<int32_t>::max()));
  command.add_flag("--special", flags->special,
                   "parse the texts of control tokens, as <end_of_turn>, as these tokens");
  AddCacheTypeFlag(command, flags->model);
  AddCacheLimitFlag(command, flags->model);
  command.add_flag("--rewind", flags->options.rewind,
                   "evaluate each chunk again after rewinding; the numbers must not change");
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

// inlay generate: text from a prompt.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prompt_steps.h"
#include "gemma_like/generation/speculate.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/sessions/session.h"
#include "io/file/file_lock.h"
#include "io/gguf/gguf.h"
#include "io/store/state_store.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/sampling_flags.h"
#include "tools/flags/shape_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/footer.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  ShapeFlags shape;
  std::optional<std::string> prompt;
  std::string file;
  bool escapes = false;
  int64_t max_tokens = 256;  // -1: no limit
  std::vector<std::string> stop_texts;
  bool ignore_eos = false;
  bool no_echo = false;
  bool json = false;
  std::string session;
  bool exact = false;
  size_t draft = 0;
};

// Writes each \xff as \377: abseil reads any number of hexadecimal digits, but at most three octal
// ones.
std::string WithOctalEscapes(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t size = text[0] == '\\' ? std::min<size_t>(2, text.size()) : 1;
    const bool is_hex = size == 2 && text[1] == 'x';
    while (is_hex && size < std::min<size_t>(4, text.size()) && absl::ascii_isxdigit(text[size]))
      ++size;
    int byte = 0;
    if (is_hex && absl::SimpleHexAtoi(text.substr(2, size - 2), &byte)) {
      AppendFormat(&out, "\\%03o", byte);
    } else {
      out.append(text.data(), size);
    }
    text.remove_prefix(size);
  }
  return out;
}

absl::Status Unescape(const char* flag, std::string& text) {
  std::string plain;
  std::string error;
  if (!absl::CUnescape(WithOctalEscapes(text), &plain, &error))
    return UsageError(absl::StrCat(flag, ": ", error));
  text = plain;
  return absl::OkStatus();
}

struct Prompt {
  std::string text;            // the text read so far
  std::optional<Input> input;  // the rest of it
};

// Reads the first piece, and leaves the rest for EncodePrompt: how much of it the context can hold
// is known only once there is a model. The file is opened before that, since --sandbox lets no
// other file be opened after it.
absl::StatusOr<Prompt> OpenPrompt(const GenerateFlags& flags) {
  Prompt prompt;
  if (flags.prompt.has_value()) {
    prompt.text = *flags.prompt;
    if (flags.escapes) INLAY_RETURN_IF_ERROR(Unescape("-p", prompt.text));
  } else if (!flags.file.empty() || isatty(STDIN_FILENO) == 0) {
    INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.file.empty() ? "-" : flags.file));
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, input.Next());
    prompt.text = std::string(piece);
    prompt.input.emplace(std::move(input));
  } else {
    return UsageError(
        "a prompt is needed: inlay generate \"To be\", -p TEXT, -f FILE, or text on standard "
        "input");
  }
  if (prompt.text.empty())
    return absl::InvalidArgumentError("the prompt is empty; it must have at least one byte");
  return prompt;
}

// The tokens of the prompt. Reads the rest of its text while the conversation has room for it.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Tokenizer& tokenizer, const KVCache& cache,
                                                  Prompt& prompt) {
  EncodeOptions options;
  if (cache.length() > 0) options.add_bos = false;  // BOS only at the start of a conversation
  options.max_tokens = cache.max_length() - cache.length();
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<TokenStream> stream,
                         tokenizer.StartEncoding(options));
  std::vector<int32_t> ids;
  absl::Status status = stream->Push(prompt.text, &ids);
  while (status.ok() && prompt.input.has_value()) {
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, prompt.input->Next());
    if (piece.empty()) break;
    absl::StrAppend(&prompt.text, piece);
    status = stream->Push(piece, &ids);
  }
  if (status.ok()) status = stream->Finish(&ids);
  if (absl::IsOutOfRange(status)) return PromptTooLong(cache, options.max_tokens + 1, "at least ");
  if (!status.ok()) return status;
  return ids;
}

std::string ResultJson(const std::string& prompt, const GenerateResult& result,
                       const LoadedModel& model, uint64_t seed, double load_seconds) {
  return JsonText({{"model", model.file->name()},
                   {"prompt", prompt},
                   {"text", result.text},
                   {"tokens", result.tokens},
                   {"stop_reason", std::string(StopReasonName(result.stop_reason))},
                   {"seed", seed},
                   {"timings", TimingsJson(result, load_seconds)}});
}

// Continues the session in the file if there is one, and prints a note if it is computed again.
absl::Status ResumeSession(const std::string& path, bool exact, Engine& engine, KVCache& cache) {
  auto reader = ReadStateFile(path);
  if (absl::IsNotFound(reader.status())) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(reader.status());
  const InterruptWatch interrupt;
  const absl::Status status =
      LoadSession(engine, **reader, cache,
                  {.exact = exact,
                   .on_recompute =
                       [&](absl::string_view why, size_t tokens) {
                         WriteNote(absl::StrCat(path, ": computing its ", Plural(tokens, "token"),
                                                " again, since ", why, "\n"));
                       },
                   .cancel = [&] { return interrupt.requested(); }});
  return About(path, status);
}

absl::Status KeepSession(const std::string& path, Engine& engine, const KVCache& cache) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer,
                         WriteStateFile(path, FileKind::kSession));
  return SaveSession(engine, cache, *writer);
}

GenerateOptions OptionsOf(const GenerateFlags& flags, const EngineInfo& info) {
  GenerateOptions options{.sampling = ResolveSampling(flags.sampling, info.sampling),
                          .stop_texts = flags.stop_texts,
                          .ignore_eos = flags.ignore_eos,
                          .draft = flags.draft};
  if (flags.max_tokens >= 0) options.max_tokens = static_cast<size_t>(flags.max_tokens);
  return options;
}

absl::Status Run(GenerateFlags flags) {
  INLAY_ASSIGN_OR_RETURN(Prompt prompt, OpenPrompt(flags));
  if (flags.escapes) {
    for (std::string& stop : flags.stop_texts) INLAY_RETURN_IF_ERROR(Unescape("--stop", stop));
  }
  INLAY_ASSIGN_OR_RETURN(const std::optional<AnswerShape> shape, ShapeOf(flags.shape));
  const auto start = std::chrono::steady_clock::now();
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model,
                         LoadModel(flags.model, /*hash_weights=*/!flags.session.empty()));
  // One snapshot: if a long prompt after a session fails, the session is restored.
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                         CreateCache(flags.model, *model.engine,
                                     ContextSize(flags.model, model.engine->info().context_length),
                                     flags.session.empty() ? 0 : 1));
  // Held until the answer is saved: of two processes that continue one conversation, the later
  // would overwrite the other's answer.
  std::optional<FileLock> lock;
  if (!flags.session.empty()) {
    INLAY_ASSIGN_OR_RETURN(lock, FileLock::Acquire(flags.session));
    INLAY_RETURN_IF_ERROR(ResumeSession(flags.session, flags.exact, *model.engine, *cache));
  }
  INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         EncodePrompt(*model.tokenizer, *cache, prompt));
  const double load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  GenerateOptions options = OptionsOf(flags, model.engine->info());
  AnswerGrammars grammars(*model.tokenizer);
  if (shape.has_value()) {
    INLAY_ASSIGN_OR_RETURN(options.grammar, grammars.Get(*shape));
  }

  Output out(STDOUT_FILENO, Output::Form::kRawUnlessShown);
  bool echo = !flags.no_echo && !flags.json;
  // The prompt is printed with the start of the answer, not before: one that is refused leaves no
  // output.
  const auto show = [&](absl::string_view text) {
    if (flags.json) return;
    if (echo) out.Write(prompt.text);
    echo = false;
    out.Write(text);
    out.Flush();
  };
  const InterruptWatch interrupt;
  auto result = Generate(*model.engine, *model.tokenizer, *cache, ids, options, show,
                         [&] { return interrupt.requested() || !out.ok(); });
  if (absl::IsCancelled(result.status()))
    return absl::CancelledError("interrupted before the prompt was read");
  if (!result.ok()) return result.status();
  if (!flags.session.empty()) {
    INLAY_RETURN_IF_ERROR(KeepSession(flags.session, *model.engine, *cache));
  }

  if (flags.json) {
    out.Write(ResultJson(prompt.text, *result, model, options.sampling.seed, load_seconds));
    return out.Finish();
  }
  show("\n");
  INLAY_RETURN_IF_ERROR(out.Finish());
  Output err(STDERR_FILENO);
  err.WriteDimmed(TimingsFooter(*result, options.sampling.seed, load_seconds));
  err.Flush();
  return absl::OkStatus();
}

}  // namespace

void AddGenerate(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<GenerateFlags>();
  CLI::App& command = *app.add_subcommand(
      "generate", "Continues a text: prints the prompt and the model's continuation.");
  AddEngineFlags(command, flags->model);
  AddCacheFlags(command, flags->model);
  AddCacheLimitFlag(command, flags->model);
  CLI::Option* const bare = command.add_option_function<std::string>(
      "PROMPT",
      [flags](const std::string& text) {
        if (text == "-") {
          flags->file = text;
        } else {
          flags->prompt = text;
        }
      },
      "the same as -p PROMPT; -: standard input");
  CLI::Option* const prompt =
      command.add_option("-p,--prompt", flags->prompt, "the text to continue")->excludes(bare);
  command
      .add_option("-f,--file", flags->file,
                  "a file with the text, used unchanged; -: standard input (default without -p)")
      ->excludes(prompt)
      ->excludes(bare);
  command.add_flag("-e,--escape", flags->escapes, "read \\n, \\t, \\xff... in -p and --stop");
  command
      .add_option("-n,--predict", flags->max_tokens,
                  "maximum tokens to generate (default: 256); -1: until the model stops or the "
                  "context is full")
      ->check(Between(-1, std::numeric_limits<int32_t>::max()));
  command.add_option("--stop", flags->stop_texts, "end before this text; may be given repeatedly")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", flags->ignore_eos, "continue after an end-of-generation token");
  command.add_flag("--no-echo", flags->no_echo, "do not print the prompt");
  command.add_option("--session", flags->session,
                     "a file for the conversation: continued if it exists, then saved");
  command.add_flag(
      "--exact", flags->exact,
      "refuse a --session that would have to be computed again: one of another version of this "
      "program, other weights, another CPU target or --cache-type");
  command
      .add_option("--draft", flags->draft,
                  "tokens to draft at once by prompt lookup (default: 0); the answer is the same")
      ->check(Between(0, DraftedTokens::kMost));
  AddFormatFlag(command, flags->json);
  AddSamplingFlags(command, flags->sampling);
  AddShapeFlags(command, flags->shape);
  command.footer("Ctrl-C stops the text, a second one the program. Timings go to standard error.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

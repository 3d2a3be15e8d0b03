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
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prompt_steps.h"
#include "gemma_like/generation/speculate.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/sessions/session.h"
#include "io/file/file_kind.h"
#include "io/file/file_lock.h"
#include "io/gguf/gguf.h"
#include "io/store/state_store.h"
#include "io/store/state_store_file.h"
#include "io/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tools/commands/commands.h"
#include "tools/flags/draft_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/sampling_flags.h"
#include "tools/flags/session_store_flag.h"
#include "tools/flags/shape_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/footer.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/load_options.h"
#include "tools/output.h"
#include "tools/prompt_progress.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  ShapeFlags shape;
  std::optional<std::string> prompt;
  bool bare_prompt = false;  // without -p
  std::string file;
  bool escapes = false;
  int64_t max_tokens = 256;  // -1: no limit
  std::vector<std::string> stop_texts;
  bool ignore_eos = false;
  bool special = false;
  bool no_echo = false;
  std::string format = "text";  // json, jsonl
  std::optional<int> logprobs;
  std::string session;
  std::string store;  // "": the session is a file
  bool exact = false;
  DraftFlags draft;
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
  const bool may_be_empty = !flags.session.empty();  // which then goes on by itself
  if (flags.bare_prompt) {
    if (const auto kind = KindOfFile(*flags.prompt); kind.ok() && *kind == FileKind::kModel) {
      return UsageError(absl::StrCat(QuoteForMessage(*flags.prompt),
                                     " is a model, which -m names: inlay generate -m FILE PROMPT"));
    }
  }
  if (flags.prompt.has_value()) {
    prompt.text = *flags.prompt;
    if (flags.escapes) INLAY_RETURN_IF_ERROR(Unescape("-p", prompt.text));
  } else if (!flags.file.empty() || isatty(STDIN_FILENO) == 0) {
    INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.file.empty() ? "-" : flags.file));
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, input.Next());
    prompt.text = std::string(piece);
    prompt.input.emplace(std::move(input));
  } else if (!may_be_empty) {
    return UsageError(
        "a prompt is needed: inlay generate \"To be\", -p TEXT, -f FILE, or text on standard "
        "input");
  }
  if (prompt.text.empty() && !may_be_empty)
    return absl::InvalidArgumentError("the prompt is empty; it must have at least one byte");
  return prompt;
}

// The tokens of the prompt. Reads the rest of its text while the conversation has room for it.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Tokenizer& tokenizer, const KVCache& cache,
                                                  bool special, Prompt& prompt) {
  EncodeOptions options;
  options.parse_special = special;
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

// A note where the prompt's text so far holds that of a control token: it is no token without
// --special, which is easily mistaken for a model that does not answer.
void NoteControlText(const Tokenizer& tokenizer, absl::string_view text) {
  constexpr size_t kMost = size_t{1} << 16;  // bytes that are looked at
  EncodeOptions options;
  options.add_bos = false;
  options.parse_special = true;
  const auto ids = tokenizer.Encode(text.substr(0, kMost), options);
  if (!ids.ok()) return;  // the prompt's own error comes
  const auto found =
      std::find_if(ids->begin(), ids->end(), [&](int32_t id) { return tokenizer.IsControl(id); });
  if (found == ids->end()) return;
  WriteNote(absl::StrCat("inlay: ", PrintableName(tokenizer.TokenText(*found)),
                         " in the prompt is read as letters; --special reads it as the control "
                         "token, and inlay chat writes these tokens itself\n"));
}

// llama.cpp's programs read escapes unless they are told not to.
void NoteUnreadEscapes(const GenerateFlags& flags) {
  if (flags.escapes || !flags.prompt.has_value() || !absl::StrContains(*flags.prompt, "\\n"))
    return;
  WriteNote("inlay: \\n in the prompt is read as two characters; -e reads it as a line break\n");
}

// Where the conversation of --session is kept: a file, or a state of --store.
class SessionPlace {
 public:
  // Finds out before anything is computed whether the session can be written, and keeps others from
  // going on with it at the same time: the later of two would overwrite the other's answer. On
  // Redis nothing is locked.
  static absl::StatusOr<SessionPlace> Open(const GenerateFlags& flags) {
    SessionPlace place;
    place.name_ = flags.session;
    std::string locked = flags.session;
    if (!flags.store.empty()) {
      INLAY_ASSIGN_OR_RETURN(place.store_, OpenStore(flags.store, "--store"));
      if (const absl::Status key = CheckStateKey(flags.session); !key.ok())
        return UsageError(absl::StrCat("--session: ", key.message()));
      if (IsRedis(flags.store)) return place;
      locked = absl::StrCat(flags.store, "/", flags.session);
    }
    INLAY_ASSIGN_OR_RETURN(place.lock_, FileLock::Acquire(locked));
    INLAY_ASSIGN_OR_RETURN(place.writer_, place.Put());
    return place;
  }

  // Continues the session if there is one, and prints a note if it is computed again.
  absl::Status Resume(bool exact, Engine& engine, KVCache& cache) const {
    auto reader = store_ != nullptr ? store_->Get(name_) : ReadStateFile(name_);
    if (absl::IsNotFound(reader.status())) return absl::OkStatus();
    INLAY_RETURN_IF_ERROR(reader.status());
    const InterruptWatch interrupt;
    return About(name_, LoadSession(engine, **reader, cache, ShownLoad(name_, exact, interrupt)));
  }

  absl::Status Keep(Engine& engine, const KVCache& cache) {
    if (writer_ == nullptr) {
      INLAY_ASSIGN_OR_RETURN(writer_, Put());
    }
    return SaveSession(engine, cache, *writer_);
  }

 private:
  absl::StatusOr<std::unique_ptr<StateWriter>> Put() const {
    return store_ != nullptr ? store_->Put(name_) : WriteStateFile(name_, FileKind::kSession);
  }

  std::string name_;
  std::shared_ptr<StateStore> store_;  // null: a file
  std::optional<FileLock> lock_;
  std::unique_ptr<StateWriter> writer_;
};

// The members about tokens' probabilities, natural logarithms.
nlohmann::ordered_json TokenJson(const Tokenizer& tokenizer, int32_t token, float logprob) {
  return {{"id", token}, {"text", std::string(tokenizer.TokenBytes(token))}, {"logprob", logprob}};
}

nlohmann::ordered_json ChosenJson(const Tokenizer& tokenizer, const ChosenToken& chosen) {
  nlohmann::ordered_json json = TokenJson(tokenizer, chosen.token, chosen.logprob);
  if (chosen.top.empty()) return json;
  json["top"] = nlohmann::ordered_json::array();
  for (const TokenChance& chance : chosen.top)
    json["top"].push_back(TokenJson(tokenizer, chance.token, chance.logprob));
  return json;
}

nlohmann::ordered_json ResultJson(const std::string& prompt, const GenerateResult& result,
                                  const LoadedModel& model, uint64_t seed, double load_seconds) {
  return {{"model", model.file->name()},
          {"prompt", prompt},
          {"text", result.text},
          {"tokens", result.tokens},
          {"stop_reason", std::string(StopReasonName(result.stop_reason))},
          {"seed", seed},
          {"timings", TimingsJson(result, load_seconds)}};
}

GenerateOptions OptionsOf(const GenerateFlags& flags, const EngineInfo& info) {
  GenerateOptions options{.sampling = ResolveSampling(flags.sampling, info.sampling),
                          .stop_texts = flags.stop_texts,
                          .ignore_eos = flags.ignore_eos};
  if (flags.format == "jsonl") options.top_chances = 0;
  if (flags.logprobs.has_value()) options.top_chances = static_cast<size_t>(*flags.logprobs);
  if (flags.max_tokens >= 0) options.max_tokens = static_cast<size_t>(flags.max_tokens);
  return options;
}

// For a session that goes on without new text: its last token, computed once more, which gives the
// same bits.
absl::StatusOr<std::vector<int32_t>> TakeLastToken(KVCache& cache, const std::string& session) {
  if (cache.length() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the prompt is empty, and the session ",
                                                   QuoteForMessage(session), " has no text yet"));
  }
  std::vector<int32_t> last = {cache.tokens().back()};
  INLAY_RETURN_IF_ERROR(cache.Rewind(cache.length() - 1));
  return last;
}

absl::Status Run(GenerateFlags flags) {
  const bool json = flags.format == "json", jsonl = flags.format == "jsonl";
  if (flags.logprobs.has_value() && !json && !jsonl)
    return UsageError("--logprobs is for -o json and -o jsonl");
  if (!flags.store.empty() && flags.session.empty())
    return UsageError("--store needs the session's name there: --session NAME");
  INLAY_ASSIGN_OR_RETURN(Prompt prompt, OpenPrompt(flags));
  if (flags.escapes) {
    for (std::string& stop : flags.stop_texts) INLAY_RETURN_IF_ERROR(Unescape("--stop", stop));
  }
  INLAY_ASSIGN_OR_RETURN(const std::optional<AnswerShape> shape, ShapeOf(flags.shape));
  if (flags.model.sandbox && !flags.session.empty()) {
    return UsageError(
        absl::StrCat("--sandbox does not permit that --session ", flags.session, " is written"));
  }
  std::optional<SessionPlace> session;
  if (!flags.session.empty()) {
    INLAY_ASSIGN_OR_RETURN(session, SessionPlace::Open(flags));
  }
  const auto start = std::chrono::steady_clock::now();
  INLAY_ASSIGN_OR_RETURN(
      const LoadedModels models,
      LoadModels(flags.draft, flags.model, /*hash_weights=*/!flags.session.empty()));
  const LoadedModel& model = models.model;
  // One snapshot: if a long prompt after a session fails, the session is restored.
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                         CreateCache(flags.model, *model.engine,
                                     ContextSize(flags.model, model.engine->info().context_length),
                                     flags.session.empty() ? 0 : 1));
  if (session.has_value())
    INLAY_RETURN_IF_ERROR(session->Resume(flags.exact, *model.engine, *cache));
  if (!flags.special) NoteControlText(*model.tokenizer, prompt.text);
  NoteUnreadEscapes(flags);
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                         EncodePrompt(*model.tokenizer, *cache, flags.special, prompt));
  if (prompt.text.empty()) {
    INLAY_ASSIGN_OR_RETURN(ids, TakeLastToken(*cache, flags.session));
  }
  const double load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  GenerateOptions options = OptionsOf(flags, model.engine->info());
  INLAY_RETURN_IF_ERROR(SetDrafts(flags.draft, flags.model, models, *cache, options));
  AnswerGrammars grammars(*model.tokenizer);
  if (shape.has_value()) {
    INLAY_ASSIGN_OR_RETURN(options.grammar, grammars.Get(*shape));
  }

  Output out(STDOUT_FILENO, Output::Form::kRawUnlessShown);
  bool echo = !flags.no_echo && !json && !jsonl;
  PromptProgress progress;
  // The prompt is printed with the start of the answer, not before: one that is refused leaves no
  // output.
  const auto show = [&](absl::string_view text) {
    progress.End();
    if (json || jsonl) return;
    if (echo) out.Write(prompt.text);
    echo = false;
    out.Write(text);
    out.Flush();
  };
  size_t shown = 0;  // tokens
  const auto show_tokens = [&](const Generation& generation) {
    progress.End();
    const std::vector<ChosenToken>& chosen = generation.chosen();
    for (; jsonl && shown < chosen.size(); ++shown)
      out.Write(JsonText(ChosenJson(*model.tokenizer, chosen[shown]), -1));
    out.Flush();
  };
  const size_t before = cache->length();
  const InterruptWatch interrupt;
  auto result = Generate(
      *model.engine, *model.tokenizer, *cache, ids, options, show,
      [&] {
        progress.Update(cache->length() - before, ids.size());
        return interrupt.requested() || !out.ok();
      },
      show_tokens);
  progress.End();
  if (absl::IsCancelled(result.status()))
    return InterruptedError("interrupted before the prompt was read");
  if (!result.ok()) return result.status();
  if (session.has_value()) INLAY_RETURN_IF_ERROR(session->Keep(*model.engine, *cache));

  if (json || jsonl) {
    nlohmann::ordered_json last =
        ResultJson(prompt.text, *result, model, options.sampling.seed, load_seconds);
    for (const ChosenToken& chosen : result->chosen) {
      if (json) last["logprobs"].push_back(ChosenJson(*model.tokenizer, chosen));
    }
    out.Write(JsonText(last, jsonl ? -1 : 2));
    INLAY_RETURN_IF_ERROR(out.Finish());
  } else {
    show("\n");
    INLAY_RETURN_IF_ERROR(out.Finish());
    WriteDimmedNote(TimingsFooter(*result, options.sampling.seed, load_seconds));
  }
  return interrupt.requested() ? InterruptedError("") : absl::OkStatus();
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
          flags->bare_prompt = true;
        }
      },
      "the same as -p PROMPT; -: standard input");
  CLI::Option* const prompt =
      command.add_option("-p,--prompt", flags->prompt, "the text to continue")->excludes(bare);
  command
      .add_option("-f,--file", flags->file,
                  "a file with the text, used unchanged; -: standard input (default without -p)")
      ->type_name("FILE")
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
  command.add_flag("--special", flags->special,
                   "parse the texts of control tokens, as <end_of_turn>, as these tokens");
  command.add_flag("--no-echo", flags->no_echo, "do not print the prompt");
  command
      .add_option("--session", flags->session,
                  "a file for the conversation: continued if it exists, then saved; without a "
                  "prompt it goes on where it ended")
      ->type_name("FILE");
  command
      .add_option("--store", flags->store,
                  "keep the --session, which is then a name, in this folder or on "
                  "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]")
      ->type_name("FOLDER|URL");
  command.add_flag(
      "--exact", flags->exact,
      "refuse a --session that would have to be computed again: one of another version of this "
      "program, other weights, another instruction set or --cache-type");
  AddDraftFlags(command, flags->draft, /*usual=*/0);
  AllowOneOf(*command.add_option(
                 "-o,--output", flags->format,
                 "text (default), json, or jsonl: a line for each token as it comes, with its id, "
                 "text and log probability, and a last one with the result"),
             {"text", "json", "jsonl"});
  command
      .add_option("--logprobs", flags->logprobs,
                  "add to -o json and jsonl the log probabilities of the tokens, and of this many "
                  "of the likeliest in the place of each")
      ->check(Between(0, 100));
  AddSamplingFlags(command, flags->sampling);
  AddShapeFlags(command, flags->shape);
  command.footer(
      "Ctrl-C stops the text, which is printed and kept as far as it is, and the program ends with "
      "status 130; a second one ends it at once. Timings go to standard error.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

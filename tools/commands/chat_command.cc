// inlay chat: a conversation in the family's own template.
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
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/about.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "cache/cache_plan.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/chat/template_chat.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/store/state_store.h"
#include "io/template/json_input.h"
#include "io/template/value.h"
#include "tools/commands/commands.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/sampling_flags.h"
#include "tools/flags/validators.h"
#include "tools/footer.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/line_reader.h"
#include "tools/output.h"
#include "tools/overwrite.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

constexpr int64_t kTemplatelessTokens = 128;  // without a template nothing else ends an answer

constexpr char kHelp[] =
    "/regen       regenerate the last answer\n"
    "/rewind [N]  remove the last turn, or the last N\n"
    "/fork        keep a copy of the conversation, under a number\n"
    "/fork N      continue from fork N\n"
    "/save FILE   save the conversation to a file; /save! replaces an existing one\n"
    "/load FILE   continue the conversation in a file\n"
    "/clear       remove all turns\n"
    "/stats       show length, memory and speed\n"
    "/exit        quit (as does Ctrl-D)\n"
    "//text       send /text; a line that ends with \\ continues on the next\n";

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string system;
  std::string chat_template;          // a built-in format or a file; "": the model's own
  std::optional<int64_t> max_tokens;  // -1: no limit
  std::vector<std::string> stop_texts;
  bool exact = false;
  std::optional<bool> think;  // none: as the template decides
  std::string tools;          // a file with definitions; "": none
};

// What the flags give the chat template.
struct TemplateInputs {
  jinja::Value tools = jinja::Value::None();
  jinja::Value variables = jinja::Value::None();

  // The file of tools is read at once, as that of a template.
  static absl::StatusOr<TemplateInputs> Read(const ChatFlags& flags) {
    TemplateInputs inputs;
    if (flags.think.has_value()) {
      const absl::string_view json =
          *flags.think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}";
      INLAY_ASSIGN_OR_RETURN(inputs.variables, jinja::ParseJson(json));
    }
    if (flags.tools.empty()) return inputs;
    INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(flags.tools));
    INLAY_ASSIGN_OR_RETURN(const std::string json, file.ReadAll());
    const auto tools = jinja::ParseJson(json);
    if (!tools.ok()) return About(file.name(), tools.status());
    if (!tools->is_sequence(jinja::SequenceKind::kList)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.name(), " holds no JSON list: [{\"type\": \"function\", ...}] is expected"));
    }
    inputs.tools = *tools;
    return inputs;
  }
};

struct Command {
  std::string name;              // "/fork"
  std::optional<size_t> number;  // its argument: a number
  std::string file;              // or a file
};

absl::StatusOr<Command> ParseCommand(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  Command command{.name = words[0], .number = std::nullopt, .file = ""};
  if (command.name == "/save" || command.name == "/save!" || command.name == "/load") {
    // The rest of the line, whatever it holds.
    command.file = std::string(absl::StripAsciiWhitespace(line.substr(command.name.size())));
    if (!command.file.empty()) return command;
    return absl::InvalidArgumentError(absl::StrCat(command.name, " needs a file"));
  }
  if (words.size() == 1) return command;
  size_t number = 0;
  const bool numbered = command.name == "/rewind" || command.name == "/fork";
  if (!numbered || words.size() > 2 || !absl::SimpleAtoi(words[1], &number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.name, numbered ? " accepts one number, not " : " accepts no argument such as ",
        QuoteForMessage(words.back())));
  }
  command.number = number;
  return command;
}

// Shows an answer: thoughts dimmed, calls as lines.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(Output& out) : out_(out) {}

  void Print(const std::vector<AnswerEvent>& events) {
    using Kind = AnswerEvent::Kind;
    for (const AnswerEvent& event : events) {
      if (event.kind != last_ && last_ == Kind::kReasoning) Break();
      last_ = event.kind;
      if (event.kind == Kind::kText) {
        Write(event.text);
      } else if (event.kind == Kind::kReasoning) {
        out_.WriteDimmed(event.text);
        in_line_ = true;
        empty_ = false;
      } else if (event.kind == Kind::kCallBegin) {
        call_ = absl::StrCat("[calls ", event.text, " ");
      } else if (event.kind == Kind::kCallArguments) {
        call_ += event.text;
      } else {
        if (in_line_) out_.Write("\n");
        Write(absl::StrCat(call_, "]\n"));
      }
    }
    out_.Flush();
  }

  // At the end: an answer is at least one line.
  void EndLine() {
    if (in_line_ || empty_) out_.Write("\n");
    out_.Flush();
  }

 private:
  void Write(absl::string_view text) {
    out_.Write(text);
    in_line_ = text.back() != '\n';
    empty_ = false;
  }

  // Ends the line and leaves one empty.
  void Break() {
    out_.Write(in_line_ ? "\n\n" : "\n");
    in_line_ = false;
  }

  Output& out_;
  AnswerEvent::Kind last_ = AnswerEvent::Kind::kText;
  bool empty_ = true;
  bool in_line_ = false;
  std::string call_;
};

// Reads lines, answers messages and runs commands.
class ChatLoop {
 public:
  ChatLoop(ChatSession session, bool exact) : session_(std::move(session)), exact_(exact) {}

  // Where no user can react, the first error ends the chat.
  absl::Status Run() {
    if (reader_.interactive()) WriteNote("Say something; /help lists the commands.\n");
    while (!done_) {
      const std::optional<std::string> line = reader_.Next("> ");
      if (!line.has_value()) break;
      const absl::Status status = OrOutOfMemory("this", [&] { return Handle(*line); });
      if (!out_.ok()) break;
      if (status.ok()) continue;
      if (!reader_.interactive()) return status;
      WriteNote(absl::StrCat("inlay: ", status.message(), "\n"));
    }
    return out_.Finish();
  }

 private:
  absl::Status Handle(const std::string& line) {
    if (line.empty()) return absl::OkStatus();
    if (line[0] != '/') return Answer([&](auto... how) { return session_.Say(line, how...); });
    if (line.size() > 1 && line[1] == '/') {
      const std::string text = line.substr(1);
      return Answer([&](auto... how) { return session_.Say(text, how...); });
    }
    INLAY_ASSIGN_OR_RETURN(const Command command, ParseCommand(line));
    INLAY_ASSIGN_OR_RETURN(const std::string note, RunCommand(command));
    WriteNote(note);
    return absl::OkStatus();
  }

  // Runs a command; returns the note to show.
  absl::StatusOr<std::string> RunCommand(const Command& command) {
    const auto& [name, number, file] = command;
    if (name == "/help") return kHelp;
    if (name == "/stats") return Stats();
    if (name == "/exit" || name == "/quit") {
      done_ = true;
      return "";
    }
    if (name == "/regen") {
      INLAY_RETURN_IF_ERROR(Answer([&](auto... how) { return session_.Regenerate(how...); }));
      return "";
    }
    if (name == "/save" || name == "/save!") {
      INLAY_RETURN_IF_ERROR(Save(file, name == "/save!"));
      return absl::StrCat("saved ", Plural(session_.turns().size(), "turn"), "\n");
    }
    if (name == "/load") {
      INLAY_RETURN_IF_ERROR(Load(file));
      return absl::StrCat("after turn ", session_.turns().size(), ", ",
                          Plural(session_.cache().length(), "token"), "\n");
    }
    if (name == "/clear") {
      INLAY_RETURN_IF_ERROR(session_.Clear());
      return "removed all turns\n";
    }
    if (name == "/rewind") {
      INLAY_RETURN_IF_ERROR(session_.Rewind(number.value_or(1)));
      return absl::StrCat("back after turn ", session_.turns().size(), "\n");
    }
    if (name == "/fork" && number.has_value()) {
      INLAY_RETURN_IF_ERROR(session_.SwitchTo(*number));
      return absl::StrCat("at fork ", *number, ", after turn ", session_.turns().size(), "\n");
    }
    if (name == "/fork") {
      INLAY_ASSIGN_OR_RETURN(const size_t fork, session_.Fork());
      return absl::StrCat("kept; /fork ", fork, " continues from here\n");
    }
    return absl::InvalidArgumentError(
        absl::StrCat(QuoteForMessage(name), " is not a command; /help lists them"));
  }

  template <class Ask>
  absl::Status Answer(const Ask& ask) {
    const InterruptWatch interrupt;
    AnswerPrinter printer(out_);
    std::optional<AnswerParser> parser;
    const TextCallback show = [&](absl::string_view text) {
      if (!parser.has_value()) parser = session_.StartAnswer();
      printer.Print(parser->Push(text));
    };
    auto result = ask(show, CancelCheck([&] { return interrupt.requested() || !out_.ok(); }));
    if (absl::IsCancelled(result.status()))
      return absl::CancelledError("interrupted before the answer began");
    if (!result.ok()) return result.status();
    if (parser.has_value()) printer.Print(parser->Finish());
    printer.EndLine();
    last_ = *std::move(result);
    if (last_.stop_reason == StopReason::kContextFull) {
      WriteNote(absl::StrCat("the context of ", Plural(session_.cache().max_length(), "token"),
                             " is full; /rewind or /clear makes room\n"));
    }
    return absl::OkStatus();
  }

  absl::Status Save(const std::string& file, bool force) {
    // A line of its own, since line editing breaks a long prompt where the terminal ends.
    const auto ask = [&](const std::string& fact, const char* question) {
      WriteNote(absl::StrCat(fact, reader_.interactive() ? "\n" : absl::StrCat("; ", question)));
      return reader_.Next(question);
    };
    INLAY_ASSIGN_OR_RETURN(const Replace replace,
                           MayReplace(file, FileKind::kChat, force, "/save!", ask));
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer,
                           WriteStateFile(file, FileKind::kChat, replace));
    return session_.Save(*writer);
  }

  absl::Status Load(const std::string& file) {
    const InterruptWatch interrupt;
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader, ReadStateFile(file));
    const absl::Status status = session_.Load(
        *reader, {.exact = exact_,
                  .on_recompute =
                      [&](absl::string_view why, size_t tokens) {
                        WriteNote(absl::StrCat(file, ": computing its ", Plural(tokens, "token"),
                                               " again, since ", why, "\n"));
                      },
                  .cancel = [&] { return interrupt.requested(); }});
    return About(file, status);
  }

  std::string Stats() const {
    const KVCache& cache = session_.cache();
    std::string text = Format("turns: %d; tokens: %d of %d; memory: %.1f MB; forks: %d\n",
                              session_.turns().size(), cache.length(), cache.max_length(),
                              static_cast<double>(cache.allocated_bytes()) / 1e6, session_.forks());
    if (last_.prompt_tokens > 0) absl::StrAppend(&text, "last answer: ", RatesText(last_), "\n");
    return text;
  }

  ChatSession session_;
  const bool exact_;  // refuse to load a conversation that has to be computed again
  LineReader reader_;
  Output out_;
  GenerateResult last_;
  bool done_ = false;
};

absl::Status Run(const ChatFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const ChatTemplateChoice chosen,
                         ChatTemplateChoice::Read(flags.chat_template));
  INLAY_ASSIGN_OR_RETURN(const TemplateInputs inputs, TemplateInputs::Read(flags));
  // The user may want to save the chat, which needs the hash of the weights.
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model, /*hash_weights=*/true));
  const EngineInfo& info = model.engine->info();
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<const ChatFormat> format,
                         chosen.MakeFormat(model, inputs.tools, inputs.variables));
  GenerateOptions options{.sampling = ResolveSampling(flags.sampling, info.sampling),
                          .stop_texts = flags.stop_texts};
  const int64_t most =
      flags.max_tokens.value_or(chosen.EndsNoAnswer(model) ? kTemplatelessTokens : -1);
  if (most >= 0) options.max_tokens = static_cast<size_t>(most);
  options.shown_control = MarkerTokens(*model.tokenizer, format->answer_format());
  // At least one snapshot: the one to which an answer that fails goes back.
  INLAY_ASSIGN_OR_RETURN(
      std::unique_ptr<KVCache> cache,
      CreateCache(flags.model, *model.engine, ContextSize(flags.model, info.context_length), 1));
  size_t snapshots = kMostSnapshots;
  if (const std::optional<size_t> limit = CacheLimit(flags.model); limit.has_value()) {
    const CacheBytes plan = model.engine->PlanCache(CacheType(flags.model));
    const size_t free = *limit - plan.At(cache->max_length()) - plan.append;
    snapshots = std::min(snapshots, free / plan.Kept());
  }
  INLAY_ASSIGN_OR_RETURN(
      ChatSession session,
      ChatSession::Create(*model.engine, *model.tokenizer, std::move(format), std::move(cache),
                          flags.system, std::move(options), snapshots));
  return ChatLoop(std::move(session), flags.exact).Run();
}

}  // namespace

void AddChat(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& command = *app.add_subcommand("chat", "Chats with the model, using its chat template.");
  AddEngineFlags(command, flags->model);
  AddCacheFlags(command, flags->model);
  AddCacheLimitFlag(command, flags->model);
  command.add_option("--system", flags->system, "instructions that precede the conversation");
  AddChatTemplateFlag(command, flags->chat_template);
  command.add_flag_callback(
      "--think", [flags] { flags->think = true; },
      "let the model think before it answers, where its chat template has the choice (default: as "
      "the template decides)");
  command
      .add_flag_callback(
          "--no-think", [flags] { flags->think = false; },
          "let it answer without thinking, likewise")
      ->excludes("--think");
  command.add_option("--tools", flags->tools,
                     "a file with definitions of tools, [{\"type\": \"function\", ...}]; calls are "
                     "shown as [calls NAME {...}]");
  command
      .add_option(
          "-n,--predict", flags->max_tokens,
          "maximum tokens of an answer; -1: until the model stops or the context is full (default: "
          "-1; 128 where the model has no chat template)")
      ->check(Between(-1, std::numeric_limits<int32_t>::max()));
  command.add_option("--stop", flags->stop_texts, "end an answer before this text; repeatable")
      ->allow_extra_args(false);
  command.add_flag(
      "--exact", flags->exact,
      "refuse to /load a conversation that would have to be computed again: one of another "
      "version of this program, other weights, another CPU target or --cache-type");
  AddSamplingFlags(command, flags->sampling);
  command.footer(absl::StrCat("In the chat:\n", kHelp,
                              "Ctrl-C stops an answer; at the prompt it ends the program."));
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

// inlay chat: a conversation in the family's own template.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/about.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "cache/cache_plan.h"
#include "gemma_like/cache_limit.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/chat/template_chat.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/answer_shape.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/json/parse_json.h"
#include "io/store/state_store.h"
#include "io/store/state_store_file.h"
#include "io/template/json_input.h"
#include "io/template/value.h"
#include "serve/service/api_keys.h"
#include "tools/chat_loop.h"
#include "tools/commands/commands.h"
#include "tools/completion.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/draft_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/sampling_flags.h"
#include "tools/flags/session_store_flag.h"
#include "tools/flags/shape_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/kept_chats.h"
#include "tools/line_reader.h"
#include "tools/local_chat.h"
#include "tools/read_input.h"
#include "tools/server_chat.h"
#include "tools/server_hooks.h"
#include "tools/shell_word.h"
#include "tools/state_folder.h"

namespace inlay {
namespace {

constexpr int64_t kTemplatelessTokens = 128;  // without a template nothing else ends an answer

struct ChatFlags {
  ModelFlags model;
  DraftFlags draft;
  SamplingFlags sampling;
  ShapeFlags shape;
  std::string system, system_file;
  std::string chat_template;          // a built-in format or a file; "": the model's own
  std::optional<int64_t> max_tokens;  // -1: no limit
  std::vector<std::string> stop_texts;
  bool exact = false;
  std::optional<bool> think;     // none: as the template decides
  std::string tools;             // a file with definitions; "": none
  std::optional<bool> autosave;  // none: where a person types
  bool goes_on = false;          // --continue
  bool trims = false;            // --on-full trim
  std::string store;             // where chats are kept; "": in files
  std::string server;            // the URL of a server whose model answers; "": the model runs here
  std::string key_file;
  // The flag on the command line that only a model that runs here can follow; "": none.
  std::string local_flag;
};

// The file of --tools.
struct ToolsFile {
  std::string name, text;
  JsonDocument list;

  // It is read at once, as the file of a template is.
  static absl::StatusOr<ToolsFile> Read(const std::string& path) {
    INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(path));
    ToolsFile tools{.name = file.name(), .text = {}, .list = {}};
    INLAY_ASSIGN_OR_RETURN(tools.text, file.ReadAll());
    INLAY_ASSIGN_OR_RETURN(tools.list, ParseJson(tools.name, tools.text));
    if (tools.list->is_array()) return tools;
    return absl::InvalidArgumentError(absl::StrCat(
        tools.name, " holds no JSON list: [{\"type\": \"function\", ...}] is expected"));
  }
};

// What the flags give the chat template.
struct TemplateInputs {
  jinja::Value tools = jinja::Value::None();
  jinja::Value variables = jinja::Value::None();

  static absl::StatusOr<TemplateInputs> Read(const ChatFlags& flags) {
    TemplateInputs inputs;
    if (flags.think.has_value()) {
      const absl::string_view json =
          *flags.think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}";
      INLAY_ASSIGN_OR_RETURN(inputs.variables, jinja::ParseJson(json));
    }
    if (flags.tools.empty()) return inputs;
    INLAY_ASSIGN_OR_RETURN(const ToolsFile file, ToolsFile::Read(flags.tools));
    auto tools = jinja::ParseJson(file.text);
    if (!tools.ok()) return About(file.name, tools.status());
    inputs.tools = *std::move(tools);
    return inputs;
  }
};

// What only a model that runs here can follow.
constexpr const char* kLocalFlags[] = {
    "--threads",     "--check-tensors", "--sandbox",  "--ctx-size", "--cache-type",
    "--cache-limit", "--chat-template", "--exact",    "--regex",    "--on-full",
    "--autosave",    "--no-autosave",   "--continue", "--store",    "--hf-repo",
    "--draft",       "--draft-model"};

// The first key of --api-key-file or $INLAY_API_KEY, which may have lines as for inlay serve.
absl::StatusOr<std::string> ReadKey(const ChatFlags& flags) {
  const char* const variable = std::getenv("INLAY_API_KEY");
  std::string text = variable == nullptr ? "" : variable;
  if (!flags.key_file.empty()) {
    INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(flags.key_file));
    INLAY_ASSIGN_OR_RETURN(text, file.ReadAll());
  }
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(serve::WithoutComment(line));
    const std::string key(line.substr(0, line.find_first_of(" \t")));
    const bool plain =
        std::all_of(key.begin(), key.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
    if (!plain) return absl::InvalidArgumentError("the API key holds a byte that no header can");
    if (!key.empty()) return key;
  }
  if (flags.key_file.empty()) return "";
  return absl::InvalidArgumentError(absl::StrCat(flags.key_file, " holds no key"));
}

// What a server is asked for an answer of this shape, which is no regular expression.
absl::Status AddShapeField(const AnswerShape& shape, Json& fields) {
  if (shape.kind == AnswerShape::Kind::kGbnf) {
    fields["grammar"] = shape.source;
    return absl::OkStatus();
  }
  INLAY_ASSIGN_OR_RETURN(JsonDocument schema, ParseJson("the JSON schema", shape.source));
  fields["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "answer"}, {"schema", *std::move(schema)}}}};
  return absl::OkStatus();
}

// What the flags make of each request. What they leave out is the server's default.
absl::StatusOr<Json> RequestFields(const ChatFlags& flags) {
  Json fields = Json::object();
  const auto set = [&](const char* name, const auto& value) {
    if (value.has_value()) fields[name] = *value;
  };
  const SamplingFlags& sampling = flags.sampling;
  set("temperature", sampling.temperature);
  set("top_k", sampling.top_k);
  set("top_p", sampling.top_p);
  set("min_p", sampling.min_p);
  set("repeat_penalty", sampling.repeat_penalty);
  set("repeat_last_n", sampling.repeat_last_n);
  set("presence_penalty", sampling.presence_penalty);
  set("frequency_penalty", sampling.frequency_penalty);
  set("seed", sampling.seed);
  if (flags.max_tokens.value_or(-1) >= 0) fields["max_tokens"] = *flags.max_tokens;
  if (!flags.stop_texts.empty()) fields["stop"] = flags.stop_texts;
  if (flags.think.has_value()) fields["chat_template_kwargs"]["enable_thinking"] = *flags.think;
  INLAY_ASSIGN_OR_RETURN(const std::optional<AnswerShape> shape, ShapeOf(flags.shape));
  if (shape.has_value()) INLAY_RETURN_IF_ERROR(AddShapeField(*shape, fields));
  if (flags.tools.empty()) return fields;
  INLAY_ASSIGN_OR_RETURN(ToolsFile tools, ToolsFile::Read(flags.tools));
  fields["tools"] = *std::move(tools.list);
  return fields;
}

// Where the lines that are typed are kept; "" for nowhere.
std::string HistoryFile(const ChatFlags& flags) {
  if (isatty(STDIN_FILENO) != 1 || !flags.autosave.value_or(true) || flags.model.sandbox) return "";
  const auto folder = StateFolder("history");
  return folder.ok() ? absl::StrCat(*folder, "/chat") : "";
}

absl::Status ChatWithServer(const ChatFlags& flags) {
  if (flags.local_flag == "--sandbox") {
    return UsageError(
        "--sandbox is for a model that runs here; with --server no model does, and that server can "
        "have a --sandbox of its own");
  }
  if (!flags.local_flag.empty()) {
    return UsageError(
        absl::StrCat(flags.local_flag, " is for a model that runs here, not for that of --server"));
  }
  ServerChatOptions options{.url = flags.server,
                            .model = flags.model.model,
                            .key = {},
                            .system = flags.system,
                            .fields = {}};
  INLAY_ASSIGN_OR_RETURN(options.key, ReadKey(flags));
  INLAY_ASSIGN_OR_RETURN(options.fields, RequestFields(flags));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<ChatPartner> partner,
                         FindServerHooks()->connect(std::move(options)));
  LineReader reader(
      [](absl::string_view line) { return CompleteChatLine(line, /*runs_here=*/false); },
      HistoryFile(flags));
  return RunChatLoop(*partner, reader);
}

// --server and what goes with it.
void AddServerFlags(CLI::App& command, ChatFlags& flags) {
  CLI::Option* const server =
      command
          .add_option("--server", flags.server,
                      "chat with the model of a running server: http://HOST:PORT; then -m is "
                      "the model's name there (default: the first)")
          ->type_name("URL");
  command
      .add_option("--api-key-file", flags.key_file,
                  "a file with the server's key (default: $INLAY_API_KEY)")
      ->type_name("FILE")
      ->needs(server);
}

// Where chats are kept by themselves; null for nowhere.
absl::StatusOr<std::shared_ptr<StateStore>> OpenKept(const ChatFlags& flags,
                                                     const std::shared_ptr<StateStore>& store,
                                                     bool interactive) {
  const bool wanted = flags.goes_on || flags.autosave.value_or(false);
  if (flags.model.sandbox || !flags.autosave.value_or(interactive || flags.goes_on)) {
    if (!wanted) return nullptr;
    return UsageError(flags.model.sandbox
                          ? "--continue and --autosave write files, which --sandbox does not allow"
                          : "--continue goes on with a chat that is kept, unlike --no-autosave");
  }
  if (store != nullptr) return store;
  const auto folder = StateFolder("chats");
  if (folder.ok()) return std::make_shared<FileStore>(*folder);
  if (wanted) return folder.status();
  return nullptr;
}

// Completes what /save and /load name: paths, or where there is a store its names. The chats that
// are kept there without a name are left out, since /chats reaches them.
WordCompleter NamesIn(const std::shared_ptr<StateStore>& store) {
  if (store == nullptr) return CompletePath;
  return [store](absl::string_view begun) {
    std::vector<std::string> names = store->List(begun).value_or(std::vector<std::string>());
    std::erase_if(names, KeptChats::IsKept);
    for (std::string& name : names) name += ' ';
    return names;
  };
}

// The command that goes on with the chat later, with what the conversation depends on.
std::string ContinueCommand(const ChatFlags& flags) {
  std::string command = "inlay chat";
  const auto add = [&command](absl::string_view flag, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&command, flag, ShellWord(value));
  };
  add(" ", flags.model.model);
  add(" -hf ", flags.model.hub);
  absl::StrAppend(&command, " --continue");
  if (flags.model.context.has_value()) add(" -c ", absl::StrCat(*flags.model.context));
  add(" --chat-template ", flags.chat_template);
  add(" --tools ", flags.tools);
  if (flags.think.has_value()) absl::StrAppend(&command, *flags.think ? " --think" : " --no-think");
  // An address may hold a password.
  add(" --store ", IsRedis(flags.store) ? "URL" : flags.store);
  return command;
}

// For a chat without a template, whose answers end at `most` tokens (-1: none).
std::string TemplatelessNote(int64_t most) {
  return absl::StrCat(
      "no chat template: the model continues your messages as plain text, ",
      most >= 0 ? absl::StrCat("up to ", Plural(static_cast<size_t>(most), "token"), " (-n)")
                : "until the context is full",
      "; --chat-template NAME or FILE gives one\n");
}

absl::Status Run(ChatFlags flags) {
  if (!flags.system_file.empty()) {
    INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(flags.system_file));
    INLAY_ASSIGN_OR_RETURN(flags.system, file.ReadAll());
  }
  if (!flags.server.empty()) return ChatWithServer(flags);
  if (flags.goes_on && !(flags.system.empty() && flags.system_file.empty())) {
    return UsageError(
        "--continue goes on with the system prompt of that chat, without --system or "
        "--system-file; /system TEXT replaces it");
  }
  INLAY_ASSIGN_OR_RETURN(const ChatTemplateChoice chosen,
                         ChatTemplateChoice::Read(flags.chat_template));
  INLAY_ASSIGN_OR_RETURN(const TemplateInputs inputs, TemplateInputs::Read(flags));
  INLAY_ASSIGN_OR_RETURN(const std::optional<AnswerShape> shape, ShapeOf(flags.shape));
  // Before the sandbox, which lets none of this be opened.
  std::shared_ptr<StateStore> store;
  if (!flags.store.empty()) {
    INLAY_ASSIGN_OR_RETURN(store, OpenStore(flags.store, "--store"));
  }
  LineReader reader(
      [names = NamesIn(store)](absl::string_view line) {
        return CompleteChatLine(line, /*runs_here=*/true, names);
      },
      HistoryFile(flags));
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<StateStore> keeps,
                         OpenKept(flags, store, reader.interactive()));
  // The user may want to save the chat, which needs the hash of the weights.
  INLAY_ASSIGN_OR_RETURN(const LoadedModels models,
                         LoadModels(flags.draft, flags.model, /*hash_weights=*/true));
  const LoadedModel& model = models.model;
  const EngineInfo& info = model.engine->info();
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<const ChatFormat> format,
                         chosen.MakeFormat(model, inputs.tools, inputs.variables));
  GenerateOptions options{.sampling = ResolveSampling(flags.sampling, info.sampling),
                          .stop_texts = flags.stop_texts};
  const double temperature = options.sampling.temperature;
  const bool templateless = chosen.EndsNoAnswer(model);
  const int64_t most = flags.max_tokens.value_or(templateless ? kTemplatelessTokens : -1);
  if (most >= 0) options.max_tokens = static_cast<size_t>(most);
  options.shown_control = MarkerTokens(*model.tokenizer, format->answer_format());
  if (shape.has_value()) {
    INLAY_ASSIGN_OR_RETURN(options.grammar, AnswerGrammars(*model.tokenizer).Get(*shape));
  }
  // At least one snapshot: the one to which an answer that fails goes back.
  INLAY_ASSIGN_OR_RETURN(
      std::unique_ptr<KVCache> cache,
      CreateCache(flags.model, *model.engine, ContextSize(flags.model, info.context_length), 1));
  INLAY_RETURN_IF_ERROR(SetDrafts(flags.draft, flags.model, models, *cache, options));
  size_t snapshots = kMostSnapshots;
  if (const std::optional<size_t> limit = CacheLimit(flags.model); limit.has_value()) {
    const CacheBytes plan = model.engine->PlanCache(CacheType(flags.model));
    const size_t drafts = models.draft_model.has_value()
                              ? MostCacheBytes(*models.draft_model->engine, CacheType(flags.model),
                                               cache->max_length(), 1)
                              : 0;
    const size_t free = *limit - plan.At(cache->max_length()) - plan.append - drafts;
    snapshots = std::min(snapshots, 1 + (free - plan.Kept()) / plan.trimmed);
  }
  INLAY_ASSIGN_OR_RETURN(
      ChatSession session,
      ChatSession::Create(*model.engine, *model.tokenizer, std::move(format), std::move(cache),
                          flags.system, std::move(options), snapshots));
  std::unique_ptr<KeptChats> kept;
  if (keeps != nullptr) kept = std::make_unique<KeptChats>(std::move(keeps), *model.engine);
  INLAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChatPartner> partner,
      MakeLocalPartner(model, std::move(session),
                       {.temperature = temperature,
                        .exact = flags.exact,
                        .trims = flags.trims,
                        .format_note = templateless ? TemplatelessNote(most) : "",
                        .goes_on = flags.goes_on,
                        .again = ContinueCommand(flags),
                        .kept = std::move(kept),
                        .store = std::move(store)}));
  return RunChatLoop(*partner, reader);
}

}  // namespace

void AddChat(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& command = *app.add_subcommand("chat", "Chats with the model, using its chat template.");
  AddModelArgument(command, AddEngineFlags(command, flags->model), flags->model);
  AddCacheFlags(command, flags->model);
  AddCacheLimitFlag(command, flags->model);
  CLI::Option* const system =
      command.add_option("--system", flags->system, "instructions that precede the conversation");
  command.add_option("--system-file", flags->system_file, "a file with them; -: standard input")
      ->type_name("FILE")
      ->excludes(system);
  AddChatTemplateFlag(command, flags->chat_template);
  // Options are excluded by pointer: CLI11 looks names up in a noexcept function that allocates.
  CLI::Option* const think = command.add_flag_callback(
      "--think", [flags] { flags->think = true; },
      "let the model think before it answers, where its chat template has the choice (default: as "
      "the template decides)");
  command
      .add_flag_callback(
          "--no-think", [flags] { flags->think = false; },
          "let it answer without thinking, likewise")
      ->excludes(think);
  CLI::Option* const tools = command
                                 .add_option("--tools", flags->tools,
                                             "a file with definitions of tools, [{\"type\": "
                                             "\"function\", ...}]; calls are shown as [calls "
                                             "NAME {...}]")
                                 ->type_name("FILE");
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
      "version of this program, other weights, another instruction set, --cache-type or chat "
      "template");
  AllowOneOf(
      *command.add_option_function<std::string>(
          "--on-full", [flags](const std::string& what) { flags->trims = what == "trim"; },
          "when the context is full: stop (default) ends the answer; trim drops the oldest turns "
          "before the next one and computes the rest anew, which keeps the system prompt"),
      {"stop", "trim"});
  CLI::Option* const autosave = command.add_flag_callback(
      "--autosave", [flags] { flags->autosave = true; },
      "keep the chat after each answer, to go on with later (default on a terminal); in "
      "$XDG_STATE_HOME/inlay or ~/.local/state/inlay");
  command
      .add_flag_callback(
          "--no-autosave", [flags] { flags->autosave = false; },
          "keep neither the chat nor the lines that are typed")
      ->excludes(autosave);
  command.add_flag("--continue", flags->goes_on, "go on with the last chat with this model");
  command
      .add_option("--store", flags->store,
                  "keep chats, also those of /save NAME, in this folder or on "
                  "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]")
      ->type_name("FOLDER|URL");
  AddDraftFlags(command, flags->draft, /*usual=*/0);
  AddSamplingFlags(command, flags->sampling, "which /stats shows; each answer adds 1 to it");
  for (CLI::Option* shape : AddShapeFlags(command, flags->shape)) shape->excludes(tools);
  command.footer(absl::StrCat("In the chat:\n", ChatHelp(/*runs_here=*/true),
                              "Ctrl-C stops an answer, a second one before it has stopped ends the "
                              "program; at the prompt it clears the line, and twice ends the chat. "
                              "Up and Ctrl-R find earlier lines, Tab completes commands and "
                              "files."));
  if (FindServerHooks() != nullptr) AddServerFlags(command, *flags);
  command.callback([flags, &command, &action] {
    for (const CLI::Option* option : command.get_options()) {
      if (option->count() == 0) continue;
      const auto at = std::find_if(std::begin(kLocalFlags), std::end(kLocalFlags),
                                   [&](const char* name) { return option->check_lname(name + 2); });
      if (at != std::end(kLocalFlags)) flags->local_flag = *at;
    }
    action = [flags] { return Run(*flags); };
  });
}

}  // namespace inlay

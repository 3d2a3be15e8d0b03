#include "tools/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/registry.h"
#include "io/file/file_kind.h"
#include "io/file/mapping_guard.h"
#include "io/file/temporary_name.h"
#include "io/gguf/gguf.h"
#include "tools/demo_model.h"
#include "tools/flags/command_line.h"
#include "tools/flags/help_format.h"
#include "tools/flags/llama_options.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/option_names.h"
#include "tools/flags/spellings.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/hub_hooks.h"
#include "tools/model_loader.h"
#include "tools/output.h"
#include "tools/server_hooks.h"
#include "tools/shell_word.h"
#include "tools/version_text.h"

namespace inlay {
namespace {

constexpr int kRuntimeError = 1;
constexpr int kUsageError = 2;
constexpr int kPartsFailed = 3;

// The action of SIGPIPE when the program was started.
void (*before_ignoring_pipes)(int) = SIG_DFL;

// Exactly one line on standard error, whatever the message holds.
int Fail(std::string message, int exit_status) {
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  Output err(STDERR_FILENO);
  err.Write(absl::StrCat("inlay: ", message, "\n"));
  err.Flush();
  return exit_status;
}

// Allocates nothing: there may be no memory for a std::string either.
int FailWithoutMemory() {
  constexpr absl::string_view kSentence = "inlay: there is not enough memory for this\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, kSentence.data(), kSentence.size());
  return kRuntimeError;
}

// A program may be started with standard streams closed. The first files opened would then get
// their numbers, and output would go into them: occupy the numbers with files that refuse it.
void HoldStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      // The lowest free number is `fd`.
      if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == -1) return;
    }
  }
}

// The commands that stand for themselves in hints.
constexpr absl::string_view kMostUsed[] = {"chat", "generate"};

// The command of this name; null where there is none.
const CLI::App* FindCommand(const CLI::App& app, absl::string_view name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// What to type instead of a word that is no command: what other programs call one, or a model's
// file. "" where nothing is known.
std::string HintFor(const CLI::App& app, const std::string& word) {
  constexpr std::pair<absl::string_view, absl::string_view> kElsewhere[] = {
      {"run", "chat"},     {"cli", "chat"},      {"ls", "list"},         {"models", "list"},
      {"show", "inspect"}, {"info", "inspect"},  {"server", "serve"},    {"start", "serve"},
      {"get", "pull"},     {"download", "pull"}, {"embedding", "embed"}, {"complete", "generate"}};
  for (const auto& [other, command] : kElsewhere) {
    if (word == other && FindCommand(app, command) != nullptr)
      return absl::StrCat("'", word, "' is not a command; did you mean inlay ", command, "?");
  }
  const auto kind = KindOfFile(word);
  if (!kind.ok() || *kind != FileKind::kModel) return "";
  return absl::StrCat(QuoteForMessage(word), " is a model and not a command; inlay chat ",
                      PrintableName(word), " talks with it");
}

// Whether an option of the commands that are used most has this name, here or in llama.cpp.
bool IsKnownOption(const CLI::App& app, absl::string_view name) {
  if (IsLlamaOption(name)) return true;
  return std::any_of(std::begin(kMostUsed), std::end(kMostUsed), [&](absl::string_view command) {
    return FindOption(*FindCommand(app, command), name) != nullptr;
  });
}

// The error for a command line that begins with an option, for which CLI11 may take the help: "-hf"
// for "-h". Ok where the command's name comes first, or the option stands for a command.
absl::Status RefuseOptionFirst(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || !absl::StartsWith(arguments.front(), "-")) return absl::OkStatus();
  const absl::string_view word = arguments.front(), name = word.substr(0, word.find('='));
  if (FindOption(app, word) != nullptr) return absl::OkStatus();
  const std::string shown = PrintableName(name);
  if (!IsKnownOption(app, name))
    return UsageError(absl::StrCat("unknown argument ", shown, "; see inlay --help"));
  return UsageError(absl::StrCat(shown, " is an option, and options follow a command: inlay chat ",
                                 shown, " ..., inlay generate ", shown, " ..."));
}

// The argument of `command` without a flag that an error of CLI11 names; null where it names none.
const CLI::Option* FindPositional(const CLI::App& command, absl::string_view error) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() || option->count() == 0) continue;
    const std::string name = option->get_name(/*positional=*/true);
    if (absl::StartsWith(error, absl::StrCat(name, " ")) ||
        absl::EndsWith(error, absl::StrCat(" ", name)))
      return option;
  }
  return nullptr;
}

// "--model excludes MODEL", and what that means.
std::string ExcludesMessage(const CLI::App& command, absl::string_view error) {
  const CLI::Option* const positional = FindPositional(command, error);
  const std::string which =
      positional == nullptr ? ""
                            : absl::StrCat(", and ", QuoteForMessage(positional->results().front()),
                                           " is the ", positional->get_name(/*positional=*/true));
  return absl::StrCat(error, which, ": give one of them");
}

// What to do about the one argument too many of this command; "": see the help.
std::string HintForExtra(const CLI::App& command, const std::string& word) {
  const std::string& name = command.get_name();
  if (name == "chat" && !absl::StartsWith(word, "-")) {
    return absl::StrCat("a chat reads its messages from standard input: echo ", ShellWord(word),
                        " | inlay chat ...; inlay generate -p continues a text");
  }
  uint64_t number = 0;
  if (name == "quantize" && absl::SimpleAtoi(word, &number))
    return absl::StrCat("-t ", number, " sets the number of threads");
  return "";
}

// CLI11 reports a missing subcommand where one is mistyped, and lists unknown arguments in reverse
// order.
std::string ParseErrorMessage(const CLI::App& app, const CLI::ParseError& error,
                              const std::vector<std::string>& arguments) {
  // An unknown flag's value is taken as the command's first argument, which flags may exclude: what
  // is wrong then is the flag.
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr && !unknown.empty())) {
    const std::string command =
        app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ";
    std::string hint = absl::StrCat("see inlay ", command, "--help");
    if (unknown.size() == 1 && !app.get_subcommands().empty()) {
      const std::string better = HintForExtra(*app.get_subcommands().front(), unknown.front());
      if (!better.empty()) hint = better;
    }
    return absl::StrCat("unknown argument", unknown.size() == 1 ? " " : "s ",
                        absl::StrJoin(unknown, " "), "; ", hint);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr && !app.get_subcommands().empty())
    return ExcludesMessage(*app.get_subcommands().front(), error.what());
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr ||
      !app.get_subcommands().empty()) {
    return error.what();
  }
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", command->get_name());
  }
  if (arguments.empty())
    return absl::StrCat("a command is needed, one of ", names, "; see inlay --help");
  if (std::string hint = HintFor(app, arguments.front()); !hint.empty()) return hint;
  return absl::StrCat("'", arguments.front(), "' is not one of the commands ", names);
}

// CLI11 would read the argument after "--model=" as its value: here the value is empty. `arguments`
// are those after the command's name.
void SplitEmptyValues(const CLI::App& command, std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view word = arguments[i];
    const std::string name(word.substr(0, word.empty() ? 0 : word.size() - 1));
    if (!absl::StartsWith(name, "--") || word.back() != '=' || !ValueFollows(command, name))
      continue;
    if (i > 0 && ValueFollows(command, arguments[i - 1])) continue;  // it is the value of that one
    arguments[i] = name;
    arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(i) + 1, "");
  }
}

// The config of the only model that this program is made for; null where there is none. With one it
// goes without the name of a command.
absl::StatusOr<const ConfigEntry*> FindOnlyConfig() {
  if (ConfigEntries().size() == 1) return &ConfigEntries().front();
  INLAY_ASSIGN_OR_RETURN(const std::optional<std::string> bundled, FindBundledModel());
  if (!bundled.has_value()) return nullptr;
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(*bundled));
  return FindConfig(file);
}

// Puts the command's name first where other words stand for it: help, version, and in a program of
// one model nothing at all, for the commands that are used most.
void NameCommand(const CLI::App& app, std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "version") arguments.front() = "--version";
  if (first == "help") {
    arguments.erase(arguments.begin());
    if (arguments.empty()) {
      arguments.push_back("--help");
    } else if (FindCommand(app, arguments.front()) != nullptr) {
      arguments.insert(arguments.begin() + 1, "--help");
    }
    return;  // what is no command is not a prompt either
  }
  const std::string& word = arguments.empty() ? first : arguments.front();
  if (FindCommand(app, word) != nullptr || word == "--help" || word == "-h" ||
      word == "--version" || word == "-v")
    return;
  const absl::StatusOr<const ConfigEntry*> config = FindOnlyConfig();
  if (config.ok() && *config == nullptr) return;
  // llama.cpp names the architectures of models that embed texts so.
  const bool embeds = config.ok() && absl::EndsWith((*config)->architecture, "-embedding");
  const bool chats = !embeds && arguments.empty() && isatty(STDIN_FILENO) == 1;
  // A bundled model that cannot be read is an error of the command.
  arguments.insert(arguments.begin(), embeds ? "embed" : chats ? "chat" : "generate");
}

// No value may be empty. Options with numbers or fixed words already check that themselves. Of an
// option that is given several times and has one value, the last one holds, as in llama.cpp.
void SetRulesOfValues(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() == 0) continue;
      option->check(NotEmpty);
      if (option->nonpositional() && option->get_items_expected_max() == 1 &&
          option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
        option->take_last();
      }
      const std::string type = option->get_type_name();
      if (absl::StartsWith(type, "INT") || absl::StartsWith(type, "UINT")) option->check(NotOctal);
    }
  }
}

// A line for a command that each process of an MPI program runs for itself, as inlay-mpi does not.
// The first process alone has it.
std::string RanksNote(absl::string_view command) {
  if (ModelLoaderIsSet() || command == "batch") return "";  // a batch has a shard for each
  const auto number = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    int value = otherwise;
    return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
  };
  const int size = std::max(number("OMPI_COMM_WORLD_SIZE", 1), number("PMI_SIZE", 1));
  const int rank = std::max(number("OMPI_COMM_WORLD_RANK", 0), number("PMI_RANK", 0));
  if (size < 2 || rank != 0) return "";
  return absl::StrCat("inlay: each of the ", size,
                      " processes does all of this work; with inlay-mpi ", command,
                      " they do it once, together\n");
}

// Ends the program as SIGPIPE ends others in `inlay inspect | head -1`, unless its parent process
// ignores that signal.
void EndByClosedPipe() {
  if (before_ignoring_pipes != SIG_DFL) return;
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

// Ends the program as Ctrl-C ends others, after an error with this message ("": none). Only the
// signal tells a shell that its loop is to end. The first of several ranks returns, so that it can
// tell the others.
int EndByInterrupt(absl::string_view message) {
  constexpr int kStatus = 128 + SIGINT;  // what a shell shows; for who ignores the signal
  if (!message.empty()) Fail(std::string(message), kStatus);
  if (!ModelLoaderIsSet()) raise(SIGINT);
  return kStatus;
}

int Run(int argc, char** argv) {
  const auto parsed = ParseCommandLine(argc, argv);
  absl::Status status = parsed.status();
  if (status.ok() && !parsed->notes.empty()) WriteNote(parsed->notes);
  if (status.ok() && parsed->action) {
    status = ApplyTarget();
    if (status.ok()) status = OrOutOfMemory("this", parsed->action);
  } else if (status.ok()) {
    Output out;
    out.Write(parsed->text);
    status = out.Finish();
  }
  if (status.ok()) return 0;
  if (IsClosedPipe(status)) EndByClosedPipe();
  if (IsInterruptedError(status)) return EndByInterrupt(status.message());
  if (status.message().empty()) return FailWithoutMemory();
  return Fail(std::string(status.message()), IsUsageError(status)         ? kUsageError
                                             : IsPartsFailedError(status) ? kPartsFailed
                                                                          : kRuntimeError);
}

}  // namespace

absl::StatusOr<ParsedCommandLine> ParseCommandLine(int argc, char** argv) {
  CLI::App app("Inlay runs language models from GGUF files on the CPU.", "inlay");
  app.set_version_flag("-v,--version", VersionText());
  app.require_subcommand(1);
  app.formatter(MakeHelpFormat());
  ParsedCommandLine parsed;
  Action& action = parsed.action;
  AddGenerate(app, action);
  AddChat(app, action);
  AddEmbed(app, action);
  AddLogits(app, action);
  AddBench(app, action);
  AddPerplexity(app, action);
  AddTokenize(app, action);
  AddTemplate(app, action);
  AddInspect(app, action);
  AddConfigs(app, action);
  AddList(app, action);
  if (const HubHooks* const hub = FindHubHooks(); hub != nullptr) hub->add_commands(app, action);
  AddLimits(app, action);
  AddPlan(app, action);
  AddCompletion(app, action);
  AddManual(app, action);
  AddLicenses(app, action);
  if (const ServerHooks* const server = FindServerHooks(); server != nullptr)
    server->add_commands(app, action);
  AddSynth(app, action);
  AddQuantize(app, action);
  AddPack(app, action);
  AddBundle(app, action);
  SetRulesOfValues(app);
  GroupCommands(app);
  // Not before: commands inherit what is there when they are added.
  app.footer(
      "To begin with:\n"
      "  inlay chat model.gguf       talk with a model\n"
      "  inlay generate \"To be\"      continue a text with the demo model\n"
      "  inlay inspect model.gguf    see what a file holds\n"
      "\n"
      "inlay help COMMAND, or inlay COMMAND --help, shows a command's options. Those of "
      "llama.cpp's programs are understood where they mean the same.\n"
      "Without a model the commands use the one bundled with the program, or else $INLAY_MODEL, "
      "or else the demo model. $INLAY_TARGET forces an instruction set; `inlay limits` lists "
      "them.");
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  NameCommand(app, arguments);
  INLAY_RETURN_IF_ERROR(RefuseOptionFirst(app, arguments));
  if (const CLI::App* const command =
          arguments.empty() ? nullptr : FindCommand(app, arguments.front());
      command != nullptr) {
    std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    SplitEmptyValues(*command, rest);
    INLAY_ASSIGN_OR_RETURN(parsed.notes, TranslateSpellings(*command, rest));
    INLAY_RETURN_IF_ERROR(RefuseForeignOptions(*command, rest));
    arguments.resize(1);
    arguments.insert(arguments.end(), rest.begin(), rest.end());
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 expects
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return UsageError(ParseErrorMessage(app, error, arguments));
    std::ostringstream text;  // help or the version
    app.exit(error, text, text);
    parsed.text = text.str();
  }
  if (parsed.action) parsed.notes += RanksNote(arguments.front());
  return parsed;
}

int RunCommandLine(int argc, char** argv) {
  HoldStandardStreams();
  before_ignoring_pipes = signal(SIGPIPE, SIG_IGN);  // a write then fails, and that is reported
  signal(SIGXFSZ, SIG_IGN);  // so does a write beyond the limit on file sizes
  GuardMappedFiles();
  RemoveTemporariesOnSignals();
  // Our own code throws nothing, but the standard library does where memory or threads run out.
  try {
    try {
      return Run(argc, argv);
    } catch (const std::bad_alloc&) {
      return FailWithoutMemory();
    } catch (const std::exception& error) {
      return Fail(error.what(), kRuntimeError);
    }
  } catch (const std::bad_alloc&) {
    return FailWithoutMemory();
  }
}

}  // namespace inlay

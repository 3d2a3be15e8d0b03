#include "tools/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/version.h"
#include "io/file/mapping_guard.h"
#include "io/file/temporary_name.h"
#include "tools/demo_model.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/hub_hooks.h"
#include "tools/output.h"
#include "tools/server_hooks.h"

namespace inlay {
namespace {

constexpr int kRuntimeError = 1;
constexpr int kUsageError = 2;

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

// CLI11 reports a missing subcommand where one is mistyped, and lists unknown arguments in reverse
// order.
std::string ParseErrorMessage(const CLI::App& app, const CLI::ParseError& error, int argc,
                              char** argv) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    const std::string command =
        app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ";
    return absl::StrCat("unknown argument", unknown.size() == 1 ? " " : "s ",
                        absl::StrJoin(unknown, " "), "; see inlay ", command, "--help");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr ||
      !app.get_subcommands().empty()) {
    return error.what();
  }
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", command->get_name());
  }
  if (argc < 2) return absl::StrCat("a command is needed, one of ", names, "; see inlay --help");
  return absl::StrCat("'", argv[1], "' is not one of the commands ", names);
}

// The command of this name; null where there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// llama.cpp's spellings of --hf-repo, which CLI11 would read as -h.
std::vector<std::string> SpellOutHub(const CLI::App& app, std::vector<std::string> arguments) {
  const CLI::App* command = arguments.empty() ? nullptr : FindCommand(app, arguments.front());
  if (command == nullptr) return arguments;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] != "-hf" && arguments[i] != "-hfr") continue;
    const CLI::Option* before = command->get_option_no_throw(arguments[i - 1]);
    const bool is_value = before != nullptr && before->get_items_expected_max() > 0;
    if (!is_value) arguments[i] = "--hf-repo";
  }
  return arguments;
}

// CLI11 would read the argument after "--model=" as its value: here the value is empty.
std::vector<std::string> SplitEmptyValues(const CLI::App& app, std::vector<std::string> arguments) {
  const CLI::App* command = arguments.empty() ? nullptr : FindCommand(app, arguments.front());
  if (command == nullptr) return arguments;
  const auto needs_value = [&](const std::string& word) {
    const CLI::Option* option = command->get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].size() - 1);
    if (!absl::StartsWith(name, "--") || arguments[i].back() != '=' || !needs_value(name)) continue;
    if (needs_value(arguments[i - 1])) continue;  // it is the value of that one
    arguments[i] = name;
    arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(i) + 1, "");
  }
  return arguments;
}

// The arguments for CLI11, in reverse order as it expects them. A program with a bundled model
// continues a bare prompt: shakespeare "To be".
std::vector<std::string> Arguments(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      FindCommand(app, arguments[0]) == nullptr) {
    const auto bundled = FindBundledModel();
    if (!bundled.ok() || bundled->has_value())
      arguments.insert(arguments.begin(), {"generate", "-p"});
  }
  arguments = SpellOutHub(app, std::move(arguments));
  arguments = SplitEmptyValues(app, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

// No value may be empty. Options with numbers or fixed words already check that themselves.
void RefuseEmptyValues(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0) option->check(NotEmpty);
    }
  }
}

// Ends the program as SIGPIPE ends others in `inlay inspect | head -1`, unless its parent process
// ignores that signal.
void EndByClosedPipe() {
  if (before_ignoring_pipes != SIG_DFL) return;
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

int Run(int argc, char** argv) {
  const auto parsed = ParseCommandLine(argc, argv);
  absl::Status status = parsed.status();
  if (status.ok() && parsed->action) {
    status = ApplyTarget();
    if (status.ok()) status = parsed->action();
  } else if (status.ok()) {
    Output out;
    out.Write(parsed->text);
    status = out.Finish();
  }
  if (status.ok()) return 0;
  if (IsClosedPipe(status)) EndByClosedPipe();
  if (status.message().empty()) return FailWithoutMemory();
  return Fail(std::string(status.message()), IsUsageError(status) ? kUsageError : kRuntimeError);
}

}  // namespace

absl::StatusOr<ParsedCommandLine> ParseCommandLine(int argc, char** argv) {
  CLI::App app("Inlay runs language models from GGUF files on the CPU.", "inlay");
  app.set_version_flag("--version", "inlay " INLAY_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "Without -m the commands use the model bundled with the program, or else $INLAY_MODEL, or "
      "else\nthe demo model.\n"
      "$INLAY_TARGET forces an instruction set; `inlay limits` lists those available.");
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
  if (const ServerHooks* const server = FindServerHooks(); server != nullptr)
    server->add_commands(app, action);
  AddSynth(app, action);
  AddQuantize(app, action);
  AddPack(app, action);
  AddBundle(app, action);
  RefuseEmptyValues(app);
  try {
    app.parse(Arguments(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return UsageError(ParseErrorMessage(app, error, argc, argv));
    std::ostringstream text;  // help or the version
    app.exit(error, text, text);
    parsed.text = text.str();
  }
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

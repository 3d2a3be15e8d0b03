// inlay completion and inlay manual: what shells and man(1) read of the command line.
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/commands/commands.h"
#include "tools/declarations.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/manual_page.h"
#include "tools/output.h"
#include "tools/shell_completion.h"

namespace inlay {
namespace {

absl::Status PrintText(const std::string& text) {
  Output out;
  out.Write(text);
  return out.Finish();
}

absl::Status PrintManual(const ProgramDeclaration& program, const std::string& name, bool list) {
  std::string names;
  for (const ManualPage& page : ManualPages(program)) {
    absl::StrAppend(&names, page.name, "\n");
    const bool wanted = name.empty() ? page.name == "inlay.1"
                                     : page.name == name || page.name == name + ".1" ||
                                           page.name == "inlay-" + name + ".1";
    if (wanted && !list) return PrintText(page.text);
  }
  if (list) return PrintText(names);
  return UsageError(
      absl::StrCat("there is no manual page of '", name, "'; see inlay manual --list"));
}

}  // namespace

void AddCompletion(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand(
      "completion", "Prints a script by which a shell completes inlay's command lines.");
  CLI::Option* const argument = command.add_option("shell", *shell, "bash, zsh or fish");
  argument->required();
  AllowOneOf(*argument, {"bash", "zsh", "fish"});
  command.footer(
      "For this and later shells:\n"
      "  bash  echo 'source <(inlay completion bash)' >>~/.bashrc\n"
      "  zsh   echo 'source <(inlay completion zsh)' >>~/.zshrc    (after compinit)\n"
      "  fish  inlay completion fish >~/.config/fish/completions/inlay.fish");
  // While the command line is read, all commands are declared; afterwards `app` is gone.
  command.callback([&app, &action, shell] {
    const auto script = *shell == "bash"  ? BashCompletion
                        : *shell == "zsh" ? ZshCompletion
                                          : FishCompletion;
    action = [text = script(Declare(app))] { return PrintText(text); };
  });
}

void AddManual(CLI::App& app, Action& action) {
  struct Flags {
    std::string name;
    bool list = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = *app.add_subcommand("manual", "Prints a manual page, as man -l reads it.");
  CLI::Option* const name = command.add_option(
      "command", flags->name, "the command, or the page's name (default: the program)");
  command.add_flag("--list", flags->list, "print the names of all pages instead")->excludes(name);
  command.callback([&app, &action, flags] {
    action = [program = Declare(app), flags] {
      return PrintManual(program, flags->name, flags->list);
    };
  });
}

}  // namespace inlay

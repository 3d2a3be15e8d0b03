#include "tools/declarations.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/registry.h"

namespace inlay {
namespace {

bool IsArgument(const CLI::Option& option) {
  return option.get_positional() && !option.nonpositional();
}

OptionDeclaration DeclareOption(const CLI::Option& option) {
  OptionDeclaration declared = {
      .names = {},
      .value = option.get_items_expected_max() > 0 ? option.get_type_name() : "",
      .description = option.get_description(),
      .group = option.get_group(),
      .required = option.get_required(),
      .repeated = option.get_items_expected_max() > 1};
  if (IsArgument(option)) {
    declared.names = {option.get_name(/*positional=*/true)};
    return declared;
  }
  for (const std::string& name : option.get_snames())
    declared.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames())
    declared.names.push_back(absl::StrCat("--", name));
  return declared;
}

CommandDeclaration DeclareCommand(const CLI::App& app) {
  CommandDeclaration declared = {.name = app.get_name(),
                                 .description = app.get_description(),
                                 .group = app.get_group(),
                                 .footer = app.get_footer(),
                                 .options = {},
                                 .arguments = {}};
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;  // hidden
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group) continue;
      (IsArgument(*option) ? declared.arguments : declared.options)
          .push_back(DeclareOption(*option));
    }
  }
  return declared;
}

}  // namespace

ProgramDeclaration Declare(const CLI::App& app) {
  ProgramDeclaration declared = {.program = DeclareCommand(app), .commands = {}};
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> groups;
  for (const CLI::App* command : commands) {
    bool known = command->get_group().empty();  // hidden
    for (const std::string& group : groups) known = known || group == command->get_group();
    if (!known) groups.push_back(command->get_group());
  }
  for (const std::string& group : groups) {
    for (const CLI::App* command : commands) {
      if (command->get_group() == group) declared.commands.push_back(DeclareCommand(*command));
    }
  }
  return declared;
}

ValueChoices ChoicesOf(absl::string_view type_name) {
  ValueChoices choices;
  for (const absl::string_view one : absl::StrSplit(type_name, '|', absl::SkipEmpty())) {
    if (one == "MODEL") {
      choices.models = true;
    } else if (one == "FILE") {
      choices.files = true;
    } else if (one == "FOLDER") {
      choices.folders = true;
    } else if (one == "CONFIG") {
      for (const ConfigEntry& entry : ConfigEntries()) choices.words.emplace_back(entry.name);
    } else if (one == "TYPE") {
      for (const absl::string_view name : Quantization::Names()) choices.words.emplace_back(name);
    } else if (one != "TEXT" && one != "URL" && one != "INT" && one != "UINT" && one != "FLOAT") {
      choices.words.emplace_back(one);
    }
  }
  return choices;
}

}  // namespace inlay

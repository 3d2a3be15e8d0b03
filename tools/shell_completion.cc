#include "tools/shell_completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tools/flags/spellings.h"
#include "tools/shell_word.h"

namespace inlay {
namespace {

// In single quotes, as fish reads it.
std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

bool IsLongName(absl::string_view name) { return name.substr(0, 2) == "--"; }

std::vector<std::string> CommandNames(const ProgramDeclaration& program) {
  std::vector<std::string> names;
  for (const CommandDeclaration& command : program.commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> OptionNames(const CommandDeclaration& command) {
  std::vector<std::string> names;
  for (const OptionDeclaration& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// What bash's script does where a value is to be completed.
std::string BashChoices(absl::string_view type_name) {
  const ValueChoices choices = ChoicesOf(type_name);
  std::string text;
  if (!choices.words.empty())
    absl::StrAppend(&text, " words=", ShellQuoted(absl::StrJoin(choices.words, " ")));
  if (choices.models) absl::StrAppend(&text, " paths=models");
  if (choices.folders) absl::StrAppend(&text, " paths=folders");
  if (choices.files) absl::StrAppend(&text, " paths=files");
  return text.empty() ? " :" : text;
}

constexpr char kBashHead[] =
    R"(# Completion of inlay for bash, written by `inlay completion bash`: source it, or keep it as
# ~/.local/share/bash-completion/completions/inlay.

)";

constexpr char kBashTail[] = R"(
_inlay() {
  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} prefix='' pending='' word i
  local options='' words='' paths='' argument=1
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _inlay_options ''
    words=$commands
    [[ $current != -* ]] || words=$options
  else
    for ((i = 2; i < COMP_CWORD; ++i)); do
      word=${COMP_WORDS[i]}
      if [[ $word == '=' ]]; then
        continue
      elif [[ $word == ':' ]]; then
        ((++i))  # the end of a value that bash cuts at colons
      elif [[ $pending ]]; then
        pending=''
      elif [[ $word == -?* ]]; then
        if [[ $word != *=* ]] && _inlay_choices "$command $word"; then pending=$word; fi
      else
        ((++argument))
      fi
    done
    if [[ $current == '=' ]]; then
      current=''
    elif [[ $current == --*=* ]]; then
      pending=${current%%=*} prefix=${current%%=*}= current=${current#*=}
    fi
    words='' paths=''
    if [[ $pending ]]; then
      _inlay_choices "$command $pending"
    elif [[ $current == -* ]]; then
      _inlay_options "$command"
      words=$options
    elif [[ $command == help ]]; then
      ((argument > 1)) || words=$commands
    else
      _inlay_choices "$command $argument"
    fi
  fi
  while IFS='' read -r word; do
    COMPREPLY+=("$prefix$word")
  done < <(
    [[ -z $words ]] || compgen -W "$words" -- "$current"
    case $paths in
      models)
        compgen -f -X '!*.gguf' -- "$current"
        compgen -f -X '!*.packed' -- "$current"
        compgen -d -- "$current"
        ;;
      files) compgen -f -- "$current" ;;
      folders) compgen -d -- "$current" ;;
    esac
  )
  [[ -z $paths ]] || compopt -o filenames 2>/dev/null
}

complete -F _inlay inlay
)";

// The text of an _arguments specification between its brackets.
std::string ZshDescription(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}});
}

// ":MODEL:_files ...", the end of such a specification.
std::string ZshValue(absl::string_view type_name) {
  const ValueChoices choices = ChoicesOf(type_name);
  const std::string words =
      choices.words.empty() ? "" : absl::StrCat("(", absl::StrJoin(choices.words, " "), ")");
  const std::string paths = choices.files     ? "_files"
                            : choices.models  ? "_files -g \"*.(gguf|packed)(-.)\""
                            : choices.folders ? "_files -/"
                                              : "";
  std::string action = " ";  // a value that is not completed
  if (!words.empty() && !paths.empty()) {
    action =
        absl::StrCat("{_alternative \"words\\:word\\:", words,
                     "\" \"paths\\:path\\:", absl::StrReplaceAll(paths, {{"\"", "\\\""}}), "\"}");
  } else if (!words.empty() || !paths.empty()) {
    action = absl::StrCat(words, paths);
  }
  return absl::StrCat(":", type_name, ":", action);
}

// A line of _arguments.
std::string ZshOption(const OptionDeclaration& option) {
  const bool value = !option.value.empty();
  std::vector<std::string> names;
  for (const std::string& name : option.names)
    names.push_back(absl::StrCat(name, !value ? "" : IsLongName(name) ? "=" : "+"));
  const std::string rest = absl::StrCat("[", ZshDescription(option.description), "]",
                                        value ? ZshValue(option.value) : "");
  const std::string excluded =
      option.repeated ? "*" : absl::StrCat("(", absl::StrJoin(option.names, " "), ")");
  const std::string shown =
      names.size() == 1 ? names.front() : absl::StrCat("{", absl::StrJoin(names, ","), "}");
  return absl::StrCat("        ", ShellQuoted(excluded), shown, ShellQuoted(rest), " \\\n");
}

std::string ZshArgument(const OptionDeclaration& argument, size_t number) {
  const std::string place = argument.repeated ? "*" : absl::StrCat(number);
  const bool optional = !argument.required && !argument.repeated;
  return absl::StrCat(
      "        ", ShellQuoted(absl::StrCat(place, optional ? ":" : "", ZshValue(argument.value))),
      " \\\n");
}

constexpr char kZshHead[] =
    R"(#compdef inlay
# Completion of inlay for zsh, written by `inlay completion zsh`: source it after compinit, or keep it
# as _inlay in a folder of $fpath.

_inlay() {
  local curcontext=$curcontext context state line
  typeset -A opt_args
  local -a commands=(
)";

constexpr char kZshMiddle[] = R"(    '1:command:->command' \
    '*::argument:->arguments'
  case $state in
    command) _describe -t commands command commands ;;
    arguments)
      case $words[1] in
      help) _arguments '1:command:{_describe -t commands command commands}' ;;
)";

constexpr char kZshTail[] = R"(      esac
      ;;
  esac
}

if [[ $funcstack[1] == _inlay ]]; then
  _inlay "$@"
else
  compdef _inlay inlay
fi
)";

constexpr char kFishHead[] =
    R"(# Completion of inlay for fish, written by `inlay completion fish`: source it, or keep it as
# ~/.config/fish/completions/inlay.fish.

# Whether the command line has no command yet.
function __inlay_no_command
    test (count (commandline -opc)) -eq 1
end

# Whether this is the command.
function __inlay_command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

# Files of models, and folders.
function __inlay_models
    complete -C "__inlay_no_program "(commandline -ct) | string replace -r '\t.*' '' |
        string match -r '.*(?:/|\.gguf|\.packed)$'
end

complete -c inlay -f
)";

// The options of `complete` for what a value can be.
std::string FishValue(absl::string_view type_name) {
  const ValueChoices choices = ChoicesOf(type_name);
  std::string candidates = absl::StrJoin(choices.words, " ");
  const auto add = [&](absl::string_view function) {
    absl::StrAppend(&candidates, candidates.empty() ? "" : " ", "(", function, ")");
  };
  if (choices.models) add("__inlay_models");
  if (choices.folders) add("__fish_complete_directories");
  return absl::StrCat(choices.files ? " -F" : " -f",
                      candidates.empty() ? "" : absl::StrCat(" -a ", FishQuoted(candidates)));
}

std::string FishOption(const std::string& condition, const OptionDeclaration& option) {
  std::string text = absl::StrCat("complete -c inlay", condition);
  for (const std::string& name : option.names)
    absl::StrAppend(&text, IsLongName(name) ? " -l " : " -s ",
                    name.substr(IsLongName(name) ? 2 : 1));
  if (!option.value.empty()) absl::StrAppend(&text, " -r", FishValue(option.value));
  return absl::StrCat(text, " -d ", FishQuoted(option.description), "\n");
}

}  // namespace

std::string BashCompletion(const ProgramDeclaration& program) {
  std::string text = kBashHead;
  absl::StrAppend(&text, "_inlay_options() {\n  commands='",
                  absl::StrJoin(CommandNames(program), " "),
                  " help version'\n  case $1 in\n    '') options='",
                  absl::StrJoin(OptionNames(program.program), " "), "' ;;\n");
  for (const CommandDeclaration& command : program.commands) {
    absl::StrAppend(&text, "    ", command.name, ") options='",
                    absl::StrJoin(OptionNames(command), " "), "' ;;\n");
  }
  absl::StrAppend(&text, "  esac\n}\n\n# Of \"COMMAND OPTION\" or \"COMMAND NUMBER\"; fails where ",
                  "that has no value.\n_inlay_choices() {\n  case $1 in\n");
  for (const CommandDeclaration& command : program.commands) {
    for (const OptionDeclaration& option : command.options) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(ShellQuoted(absl::StrCat(command.name, " ", name)));
        // They are not offered, but what follows is their value.
        for (const std::string& other : SpellingsOf(name))
          patterns.push_back(ShellQuoted(absl::StrCat(command.name, " ", other)));
      }
      absl::StrAppend(&text, "    ", absl::StrJoin(patterns, " | "), ")", BashChoices(option.value),
                      " ;;\n");
    }
    size_t number = 0;
    for (const OptionDeclaration& argument : command.arguments) {
      ++number;
      const std::string pattern =
          argument.repeated ? absl::StrCat(ShellQuoted(absl::StrCat(command.name, " ")), "[0-9]*")
                            : ShellQuoted(absl::StrCat(command.name, " ", number));
      absl::StrAppend(&text, "    ", pattern, ")", BashChoices(argument.value), " ;;\n");
    }
  }
  return absl::StrCat(text, "    *) return 1 ;;\n  esac\n}\n", kBashTail);
}

std::string ZshCompletion(const ProgramDeclaration& program) {
  std::string text = kZshHead;
  const auto add_command = [&](absl::string_view name, absl::string_view description) {
    const std::string escaped = absl::StrReplaceAll(description, {{"\\", "\\\\"}, {":", "\\:"}});
    absl::StrAppend(&text, "    ", ShellQuoted(absl::StrCat(name, ":", escaped)), "\n");
  };
  for (const CommandDeclaration& command : program.commands)
    add_command(command.name, command.description);
  add_command("help", "Prints the options of a command.");
  add_command("version", "Prints the version.");
  absl::StrAppend(&text, "  )\n  _arguments -C \\\n");
  for (const OptionDeclaration& option : program.program.options)
    absl::StrAppend(&text, absl::string_view(ZshOption(option)).substr(4));
  absl::StrAppend(&text, kZshMiddle);
  for (const CommandDeclaration& command : program.commands) {
    absl::StrAppend(&text, "      ", command.name, ")\n        _arguments \\\n");
    for (const OptionDeclaration& option : command.options)
      absl::StrAppend(&text, "  ", ZshOption(option));
    size_t number = 0;
    for (const OptionDeclaration& argument : command.arguments)
      absl::StrAppend(&text, "  ", ZshArgument(argument, ++number));
    text.resize(text.size() - absl::string_view(" \\\n").size());
    absl::StrAppend(&text, "\n        ;;\n");
  }
  return absl::StrCat(text, kZshTail);
}

std::string FishCompletion(const ProgramDeclaration& program) {
  std::string text = kFishHead;
  const std::string at_start = " -n __inlay_no_command";
  const auto add_command = [&](absl::string_view name, absl::string_view description) {
    absl::StrAppend(&text, "complete -c inlay", at_start, " -a ", name, " -d ",
                    FishQuoted(description), "\n");
  };
  for (const CommandDeclaration& command : program.commands)
    add_command(command.name, command.description);
  add_command("help", "Prints the options of a command.");
  add_command("version", "Prints the version.");
  for (const OptionDeclaration& option : program.program.options)
    absl::StrAppend(&text, FishOption(at_start, option));
  absl::StrAppend(&text, "complete -c inlay -n '__inlay_command help' -a '",
                  absl::StrJoin(CommandNames(program), " "), "'\n");
  for (const CommandDeclaration& command : program.commands) {
    const std::string condition = absl::StrCat(" -n '__inlay_command ", command.name, "'");
    absl::StrAppend(&text, "\n");
    for (const OptionDeclaration& option : command.options)
      absl::StrAppend(&text, FishOption(condition, option));
    for (const OptionDeclaration& argument : command.arguments) {
      absl::StrAppend(&text, "complete -c inlay", condition, FishValue(argument.value), "\n");
    }
  }
  return text;
}

}  // namespace inlay

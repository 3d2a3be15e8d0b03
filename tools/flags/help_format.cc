#include "tools/flags/help_format.h"

#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

constexpr size_t kWidth = 100;

class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat() {
    column_width(30);
    label("SUBCOMMAND", "COMMAND");
    label("Positionals", "Arguments");
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 option->get_description());
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected_max() == 0) return "";
    // An argument's name says enough.
    const bool is_positional = option->get_positional() && !option->nonpositional();
    return absl::StrCat(is_positional ? "" : " ", is_positional ? "" : option->get_type_name(),
                        option->get_required() ? " (required)" : "");
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }

 private:
  // A line, or several, of the left and the right column.
  std::string Entry(const std::string& left, const std::string& right) const {
    const size_t column = get_column_width();
    std::string text = absl::StrCat("  ", left);
    size_t at = text.size();
    if (at + 2 > column) {
      text += "\n";
      at = 0;
    }
    text.append(column - at, ' ');
    at = column;
    for (const absl::string_view word : absl::StrSplit(right, ' ', absl::SkipEmpty())) {
      if (at > column && at + 1 + word.size() > kWidth) {
        absl::StrAppend(&text, "\n", std::string(column, ' '));
        at = column;
      }
      if (at > column) absl::StrAppend(&text, " ");
      at += word.size() + (at > column ? 1 : 0);
      absl::StrAppend(&text, word);
    }
    return text + "\n";
  }
};

constexpr std::pair<absl::string_view, const char*> kGroups[] = {
    {"generate", "Use a model"},   {"chat", "Use a model"},     {"serve", "Use a model"},
    {"embed", "Use a model"},      {"inspect", "Look into it"}, {"tokenize", "Look into it"},
    {"template", "Look into it"},  {"logits", "Look into it"},  {"perplexity", "Measure"},
    {"bench", "Measure"},          {"limits", "Measure"},       {"replay", "Measure"},
    {"quantize", "Model files"},   {"pack", "Model files"},     {"bundle", "Model files"},
    {"synth", "Model files"},      {"configs", "Model files"},  {"pull", "Model files"},
    {"list", "Model files"},       {"batch", "Use a model"},    {"licenses", "About Inlay"},
    {"completion", "About Inlay"}, {"manual", "About Inlay"},   {"plan", "Measure"},
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormat() { return std::make_shared<HelpFormat>(); }

void GroupCommands(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->group("Model files");
    for (const auto& [name, group] : kGroups) {
      if (command->get_name() == name) command->group(group);
    }
  }
}

}  // namespace inlay

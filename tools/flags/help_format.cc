#include "tools/flags/help_format.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/output.h"

namespace inlay {
namespace {

// Columns to lay help out in: those of the terminal or of $COLUMNS, so that lines neither break in
// the middle of words nor become too long to read. 80 where neither says.
size_t HelpWidth() {
  constexpr size_t kLeast = 60, kMost = 100;
  size_t width = 0;
  const char* columns = std::getenv("COLUMNS");
  if (columns == nullptr || !absl::SimpleAtoi(columns, &width) || width == 0)
    width = TerminalColumns(STDOUT_FILENO);
  return std::clamp(width, kLeast, kMost);
}

class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat() : width_(HelpWidth()) {
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

  std::string make_description(const CLI::App* app) const override {
    return Filled("", app->get_description(), 0) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    const std::string footer = app->get_footer();
    for (const absl::string_view line : absl::StrSplit(footer, '\n')) {
      // Spaces side by side are those of a table or an example.
      const bool as_it_is = line.size() <= width_ || absl::StrContains(line, "  ");
      absl::StrAppend(&text, as_it_is ? std::string(line) : Filled("", line, 0), "\n");
    }
    return footer.empty() ? "" : text;
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
    return Filled(text, right, column) + "\n";
  }

  // `text`, which ends at column `indent` of its line, with the words after it; further lines are
  // indented as much.
  std::string Filled(std::string text, absl::string_view words, size_t indent) const {
    size_t at = indent;
    for (const absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
      if (at > indent && at + 1 + word.size() > width_) {
        absl::StrAppend(&text, "\n", std::string(indent, ' '));
        at = indent;
      }
      if (at > indent) absl::StrAppend(&text, " ");
      at += word.size() + (at > indent ? 1 : 0);
      absl::StrAppend(&text, word);
    }
    return text;
  }

  const size_t width_;
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

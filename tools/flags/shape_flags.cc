#include "tools/flags/shape_flags.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/flags/usage_error.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

// A text, or the contents of the file that "@" names.
absl::StatusOr<std::string> TextOrFile(absl::string_view flag, const std::string& value) {
  if (value[0] == '@') {
    INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(value.substr(1)));
    return input.ReadAll();
  }
  std::error_code error;  // such as a schema that is too long for a name
  if (std::filesystem::is_regular_file(value, error)) {
    return UsageError(absl::StrCat(flag, " has the name of a file: write @", PrintableName(value),
                                   " to read the file"));
  }
  return value;
}

}  // namespace

std::array<CLI::Option*, 3> AddShapeFlags(CLI::App& command, ShapeFlags& flags) {
  CLI::Option* const schema =
      command.add_option("--schema,--json-schema", flags.schema,
                         "answer with JSON that is valid by this JSON schema; @FILE reads a file");
  CLI::Option* const grammar = command.add_option(
      "--grammar", flags.grammar, "answer with a text of this grammar (GBNF); @FILE reads a file");
  CLI::Option* const regex = command.add_option(
      "--regex", flags.regex, "answer with a text that this regular expression matches");
  schema->excludes(grammar)->excludes(regex);
  grammar->excludes(regex);
  return {schema, grammar, regex};
}

absl::StatusOr<std::optional<AnswerShape>> ShapeOf(const ShapeFlags& flags) {
  AnswerShape shape;
  if (!flags.schema.empty()) {
    INLAY_ASSIGN_OR_RETURN(shape.source, TextOrFile("--schema", flags.schema));
  } else if (!flags.grammar.empty()) {
    shape.kind = AnswerShape::Kind::kGbnf;
    INLAY_ASSIGN_OR_RETURN(shape.source, TextOrFile("--grammar", flags.grammar));
  } else if (!flags.regex.empty()) {
    shape.kind = AnswerShape::Kind::kRegex;
    shape.source = flags.regex;
  } else {
    return std::nullopt;
  }
  return shape;
}

}  // namespace inlay

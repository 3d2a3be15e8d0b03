#include "tools/manual_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/version.h"

namespace inlay {
namespace {

// Text as roff prints it unchanged.
std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"},
                                                   {"-", "\\-"},
                                                   {"'", "\\(aq"},
                                                   {"`", "\\(ga"},
                                                   {"^", "\\(ha"},
                                                   {"~", "\\(ti"},
                                                   {"\"", "\\(dq"}});
  if (absl::StartsWith(escaped, ".")) escaped.insert(0, "\\&");  // no request
  return escaped;
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", Roff(text), "\\fR"); }

std::string Heading(absl::string_view text) {
  return absl::StrCat(".SH \"", Roff(absl::AsciiStrToUpper(text)), "\"\n");
}

// A command's footer, as --help lays it out on a terminal of 80 columns: long lines are paragraphs,
// all others, and those of a table or an example, which have spaces side by side, stay as they are.
std::string Footer(absl::string_view text) {
  constexpr size_t kColumns = 80;
  std::string lines = ".nf\n";
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    const bool is_paragraph = line.size() > kColumns && !absl::StrContains(line, "  ");
    absl::StrAppend(&lines, is_paragraph ? ".fi\n" : "", line.empty() ? ".sp" : Roff(line), "\n",
                    is_paragraph ? ".nf\n" : "");
  }
  return absl::StrCat(lines, ".fi\n");
}

// "model file" as whatis shows it: without the capital and the full stop of a sentence.
std::string Summary(absl::string_view description) {
  std::string summary(absl::StripSuffix(description, "."));
  if (!summary.empty()) summary[0] = absl::ascii_tolower(summary[0]);
  return summary;
}

std::string Term(const OptionDeclaration& option, bool is_argument) {
  std::vector<std::string> names;
  for (const std::string& name : option.names)
    names.push_back(is_argument ? Italic(name) : Bold(name));
  std::string term = absl::StrJoin(names, ", ");
  if (!is_argument && !option.value.empty()) absl::StrAppend(&term, " ", Italic(option.value));
  if (option.required) absl::StrAppend(&term, " (required)");
  return absl::StrCat(".TP\n", term, "\n", Roff(option.description), "\n");
}

std::string Options(const CommandDeclaration& command) {
  std::string text = Heading("Options");
  absl::string_view group = "Options";
  for (const OptionDeclaration& option : command.options) {
    if (option.group != group) absl::StrAppend(&text, ".SS \"", Roff(option.group), "\"\n");
    group = option.group;
    absl::StrAppend(&text, Term(option, /*is_argument=*/false));
  }
  return text;
}

std::string Begin(absl::string_view name, absl::string_view description) {
  return absl::StrCat(".\\\" Written by `inlay manual` from the declarations of --help.\n.TH \"",
                      Roff(absl::AsciiStrToUpper(name)), "\" 1 \"\" \"Inlay ", INLAY_VERSION,
                      "\" \"Inlay\"\n.SH NAME\n", Roff(name), " \\- ", Roff(Summary(description)),
                      "\n.SH SYNOPSIS\n");
}

struct ExitStatus {
  absl::string_view command;  // "": all for which this status does not stand below
  int status;
  absl::string_view meaning;
};

// docs/settings.md says the same. In the order of the statuses.
constexpr ExitStatus kExitStatuses[] = {
    {"batch", 0, "the results are complete, and each request was answered"},
    {"serve", 0, "a signal ended the server"},
    {"", 0, "done"},
    {"batch", 1, "the job is not done; the reason is a sentence on standard error"},
    {"replay", 1,
     "an error, in one sentence on standard error; also if an answer differs, or a line of the log "
     "is no record"},
    {"", 1, "an error, in one sentence on standard error"},
    {"", 2, "an invalid command line"},
    {"batch", 3, "the results are complete, but some requests failed"},
    {"batch", 130, "ended by Ctrl-C (SIGINT): the same command goes on with the job"},
    {"bench", 130, "ended by Ctrl-C (SIGINT), after what was measured"},
    {"embed", 130, "ended by Ctrl-C (SIGINT), after the texts that were embedded"},
    {"generate", 130, "ended by Ctrl-C (SIGINT), after what there was of the output"},
    {"perplexity", 130, "ended by Ctrl-C (SIGINT), after the result of the chunks so far"},
    {"replay", 130, "ended by Ctrl-C (SIGINT), after what was found"},
    {"chat", 130,
     "a chat whose messages come from a pipe: ended by Ctrl-C (SIGINT), after what there was of "
     "the output; with --continue: before the chat was there"}};

std::string ExitStatuses(absl::string_view command) {
  std::string text = Heading("Exit status");
  int last = -1;
  for (const ExitStatus& one : kExitStatuses) {
    if (one.status == last || (!one.command.empty() && one.command != command)) continue;
    last = one.status;
    absl::StrAppend(&text, ".TP\n", one.status, "\n", Roff(one.meaning), "\n");
  }
  return text;
}

std::string ProgramPage(const ProgramDeclaration& program) {
  std::string text = Begin(program.program.name, program.program.description);
  absl::StrAppend(&text, Bold("inlay"), " ", Italic("COMMAND"), " [", Italic("OPTIONS"), "]\n");
  absl::string_view group;
  for (const CommandDeclaration& command : program.commands) {
    if (command.group != group) absl::StrAppend(&text, Heading(command.group));
    group = command.group;
    absl::StrAppend(&text, ".TP\n", Bold(absl::StrCat("inlay-", command.name)), "(1)\n",
                    Roff(command.description), "\n");
  }
  absl::StrAppend(&text, Options(program.program), Heading("Notes"),
                  Footer(program.program.footer));
  return absl::StrCat(text, ExitStatuses(""));
}

std::string CommandPage(const ProgramDeclaration& program, const CommandDeclaration& command) {
  std::string text =
      Begin(absl::StrCat(program.program.name, "-", command.name), command.description);
  absl::StrAppend(&text, Bold(absl::StrCat("inlay ", command.name)), " [", Italic("OPTIONS"), "]");
  for (const OptionDeclaration& argument : command.arguments) {
    const std::string name =
        absl::StrCat(Italic(argument.names.front()), argument.repeated ? "..." : "");
    absl::StrAppend(&text, " ", argument.required ? name : absl::StrCat("[", name, "]"));
  }
  absl::StrAppend(&text, "\n.SH DESCRIPTION\n", Roff(command.description), "\n");
  if (!command.arguments.empty()) absl::StrAppend(&text, Heading("Arguments"));
  for (const OptionDeclaration& argument : command.arguments)
    absl::StrAppend(&text, Term(argument, /*is_argument=*/true));
  absl::StrAppend(&text, Options(command));
  if (!command.footer.empty()) absl::StrAppend(&text, Heading("Notes"), Footer(command.footer));
  return absl::StrCat(text, ExitStatuses(command.name), ".SH \"SEE ALSO\"\n", Bold("inlay"),
                      "(1)\n");
}

}  // namespace

std::vector<ManualPage> ManualPages(const ProgramDeclaration& program) {
  std::vector<ManualPage> pages = {
      {absl::StrCat(program.program.name, ".1"), ProgramPage(program)}};
  for (const CommandDeclaration& command : program.commands) {
    pages.push_back({absl::StrCat(program.program.name, "-", command.name, ".1"),
                     CommandPage(program, command)});
  }
  return pages;
}

}  // namespace inlay

#include "tools/chat_loop.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/hub/environment.h"
#include "tools/flags/usage_error.h"
#include "tools/interrupt.h"

namespace inlay {
namespace {

// What follows the name of a command.
enum class Argument {
  kNone,
  kNumberOrNone,
  kNumber,
  kSeedOrNone,  // a number, or -1 for a new one
  kValueOrNone,
  kFile,
  kTextOrNone
};

enum class Where {
  kEverywhere,
  kHere,  // with a model that runs here, not with --server
};

struct ChatCommandInfo {
  absl::string_view name;
  Argument argument;
  absl::string_view shown;  // the argument in the help
  absl::string_view help;   // "": it stands beside another command
  Where where = Where::kEverywhere;
};

constexpr ChatCommandInfo kCommands[] = {
    {"/regen", Argument::kNone, "", "regenerate the last answer"},
    {"/rewind", Argument::kNumberOrNone, "[N]", "remove the last turn, or the last N"},
    {"/fork", Argument::kNumberOrNone, "",
     "keep a numbered copy of the conversation; /fork N goes on from it", Where::kHere},
    {"/forks", Argument::kNone, "", "list the forks", Where::kHere},
    {"/drop", Argument::kNumber, "N", "forget fork N", Where::kHere},
    {"/save", Argument::kFile, "FILE",
     "save the conversation to a file; /save! replaces an existing one", Where::kHere},
    {"/save!", Argument::kFile, "FILE", "", Where::kHere},
    {"/load", Argument::kFile, "FILE", "continue the conversation in a file", Where::kHere},
    {"/chats", Argument::kNumberOrNone, "[N]", "list the kept chats, or go on with number N",
     Where::kHere},
    {"/show", Argument::kNumberOrNone, "[N]", "show the conversation, or its last N turns"},
    {"/clear", Argument::kNone, "", "remove all turns"},
    {"/system", Argument::kTextOrNone, "[TEXT]",
     "replace the system prompt (\"\" for none), or show it"},
    {"/temp", Argument::kValueOrNone, "[X]", "set the temperature, or show it"},
    {"/seed", Argument::kSeedOrNone, "[N]",
     "set the seed of the next answer (-1: a new one), or show it"},
    {"/tokens", Argument::kNumberOrNone, "[N]",
     "show the last answer's tokens, their probabilities and N others", Where::kHere},
    {"/stats", Argument::kNone, "", "show length, memory and speed"},
    {"/help", Argument::kNone, "", "show this"},
    {"/?", Argument::kNone, "", ""},
    {"/exit", Argument::kNone, "", "quit, as do Ctrl-D and Ctrl-C pressed twice"},
    {"/quit", Argument::kNone, "", ""},
    {"/bye", Argument::kNone, "", ""},
};

constexpr absl::string_view kReadsTextAlone = "models read text alone";

// What there is instead of commands that other programs have.
constexpr std::pair<absl::string_view, absl::string_view> kInOtherChats[] = {
    {"/set", "/system TEXT, /temp X and /seed N set what can be set in a chat"},
    {"/undo", "/rewind removes the last turn"},
    {"/reset", "/clear removes all turns"},
    {"/new", "/clear removes all turns"},
    {"/retry", "/regen gives another answer"},
    {"/history", "/show shows the conversation"},
    {"/info", "/stats shows length, memory and speed"},
    {"/read", "\"\"\" begins and ends a message of several lines"},
    {"/image", kReadsTextAlone},
    {"/audio", kReadsTextAlone},
    {"/video", kReadsTextAlone}};

bool Works(const ChatCommandInfo& command, bool runs_here) {
  return runs_here || command.where == Where::kEverywhere;
}

const ChatCommandInfo* FindChatCommand(absl::string_view name) {
  const auto* const at = std::find_if(std::begin(kCommands), std::end(kCommands),
                                      [&](const auto& command) { return command.name == name; });
  return at == std::end(kCommands) ? nullptr : at;
}

absl::Status WrongArgument(absl::string_view name, absl::string_view wanted,
                           absl::string_view given) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " accepts ", wanted, QuoteForMessage(given)));
}

absl::StatusOr<ChatCommand> ParseCommand(absl::string_view line) {
  const size_t space = line.find(' ');
  ChatCommand command{.name = std::string(line.substr(0, space))};
  const ChatCommandInfo* const info = FindChatCommand(command.name);
  if (info == nullptr) {
    const auto* const other =
        std::find_if(std::begin(kInOtherChats), std::end(kInOtherChats),
                     [&](const auto& known) { return known.first == command.name; });
    return absl::InvalidArgumentError(
        absl::StrCat(QuoteForMessage(command.name), " is not a command; ",
                     other == std::end(kInOtherChats) ? "/help lists them" : other->second));
  }
  // The rest of the line, whatever it holds.
  const absl::string_view rest =
      absl::StripAsciiWhitespace(space == line.npos ? "" : line.substr(space));
  uint64_t number = 0;
  float value = 0;
  switch (info->argument) {
    case Argument::kNone:
      if (!rest.empty()) return WrongArgument(command.name, "no argument such as ", rest);
      break;
    case Argument::kNumber:
    case Argument::kNumberOrNone:
      if (rest.empty() && info->argument == Argument::kNumberOrNone) break;
      if (!absl::SimpleAtoi(rest, &number))
        return WrongArgument(command.name, "one number, not ", rest);
      command.number = number;
      break;
    case Argument::kSeedOrNone:
      if (rest.empty()) break;
      if (rest == "-1") {
        number = std::random_device()();
      } else if (!absl::SimpleAtoi(rest, &number)) {
        return WrongArgument(command.name, "one number, not ", rest);
      }
      command.number = number;
      break;
    case Argument::kValueOrNone:
      if (rest.empty()) break;
      if (!absl::SimpleAtof(rest, &value) || !(value >= 0 && value <= 100))
        return WrongArgument(command.name, "a number from 0 to 100, not ", rest);
      command.value = value;
      break;
    case Argument::kFile:
      if (rest.empty())
        return absl::InvalidArgumentError(absl::StrCat(command.name, " needs a file"));
      command.text = ExpandHome(rest);
      break;
    case Argument::kTextOrNone:
      command.text = std::string(rest);
      break;
  }
  return command;
}

class ChatLoop {
 public:
  ChatLoop(ChatPartner& partner, LineReader& reader) : partner_(partner), reader_(reader) {}

  absl::Status Run() {
    if (reader_.interactive()) {
      WriteDimmedNote(absl::StrCat(
          partner_.Opening(), "Say something; /help lists the commands, Ctrl-D ends the chat.\n"));
    }
    while (!done_) {
      const std::optional<std::string> line = reader_.Next("> ");
      if (!line.has_value()) break;
      const absl::Status status = OrOutOfMemory("this", [&] { return Handle(*line); });
      if (!out_.ok()) break;
      if (status.ok()) continue;
      if (!reader_.interactive()) {
        out_.Flush();
        return absl::IsCancelled(status) ? InterruptedError(status.message()) : status;
      }
      WriteNote(absl::StrCat("inlay: ", status.message(), "\n"));
    }
    const std::string closing = partner_.Closing();
    if (reader_.interactive()) WriteDimmedNote(closing);
    return out_.Finish();
  }

 private:
  // A pasted text of several lines is a message, however it begins.
  static bool IsCommand(absl::string_view line) {
    return absl::StartsWith(line, "/") && !absl::StartsWith(line, "//") &&
           !absl::StrContains(line, '\n');
  }

  absl::Status Handle(const std::string& line) {
    if (line.empty()) return absl::OkStatus();
    if (IsCommand(line)) return RunCommand(line);
    const std::string text = absl::StartsWith(line, "//") ? line.substr(1) : line;
    return Answer([&](auto&... how) { return partner_.Say(text, how...); });
  }

  absl::Status RunCommand(const std::string& line) {
    INLAY_ASSIGN_OR_RETURN(const ChatCommand command, ParseCommand(line));
    if (command.name == "/help" || command.name == "/?") {
      WriteNote(ChatHelp(partner_.RunsHere()));
      return absl::OkStatus();
    }
    if (command.name == "/exit" || command.name == "/quit" || command.name == "/bye") {
      done_ = true;
      return absl::OkStatus();
    }
    if (command.name == "/regen")
      return Answer([&](auto&... how) { return partner_.Regenerate(how...); });
    INLAY_ASSIGN_OR_RETURN(const std::string note, partner_.Run(command, reader_));
    WriteNote(note);
    return absl::OkStatus();
  }

  template <class Ask>
  absl::Status Answer(const Ask& ask) {
    const InterruptWatch interrupt;
    AnswerPrinter printer(out_, shows_answers_ ? out_ : err_);
    const CancelCheck cancel = [&] { return interrupt.requested() || !out_.ok(); };
    const absl::Status status = ask(printer, cancel);
    if (absl::IsCancelled(status))
      return absl::CancelledError("interrupted before the answer began");
    // Where nobody types, what is interrupted is the whole chat.
    if (status.ok() && interrupt.requested() && !reader_.interactive())
      return absl::CancelledError("interrupted");
    return status;
  }

  ChatPartner& partner_;
  LineReader& reader_;
  Output out_;
  // Where answers go into a file or a pipe, thoughts do not go with them.
  const bool shows_answers_ = isatty(STDOUT_FILENO) == 1;
  Output err_{STDERR_FILENO};
  bool done_ = false;
};

}  // namespace

std::string ChatHelp(bool runs_here) {
  constexpr size_t kColumn = 14;
  std::string help;
  const auto add = [&help](absl::string_view what, absl::string_view text) {
    const size_t spaces = what.size() < kColumn ? kColumn - what.size() : 1;
    absl::StrAppend(&help, what, std::string(spaces, ' '), text, "\n");
  };
  for (const ChatCommandInfo& command : kCommands) {
    if (command.help.empty() || !Works(command, runs_here)) continue;
    add(absl::StrCat(command.name, command.shown.empty() ? "" : " ", command.shown), command.help);
  }
  add("//text", "send /text");
  add("\"\"\"", "begins and ends a message of several lines; so does \\ at line ends");
  return help;
}

std::string SystemText(absl::string_view system) {
  if (system.empty()) return "there is no system prompt\n";
  return absl::StrCat(system, absl::EndsWith(system, "\n") ? "" : "\n");
}

std::string ShownTurn(absl::string_view user, absl::string_view answer) {
  return absl::StrCat("> ", user, "\n", answer, "\n");
}

std::string Shortened(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  text = text.substr(0, bytes);
  text.remove_suffix(IncompleteUtf8Tail(text));
  return absl::StrCat(text, " ...");
}

std::string SystemOf(absl::string_view text) { return text == "\"\"" ? "" : std::string(text); }

Completions CompleteChatLine(absl::string_view line, bool runs_here, const WordCompleter& names) {
  Completions found;
  if (!absl::StartsWith(line, "/") || absl::StartsWith(line, "//")) return found;
  const size_t space = line.find(' ');
  if (space == line.npos) {
    for (const ChatCommandInfo& command : kCommands) {
      if (!absl::StartsWith(command.name, line) || !Works(command, runs_here)) continue;
      const bool ends = command.argument == Argument::kNone;
      found.words.push_back(absl::StrCat(command.name, ends ? "" : " "));
    }
    std::sort(found.words.begin(), found.words.end());
    return found;
  }
  const ChatCommandInfo* const command = FindChatCommand(line.substr(0, space));
  if (command == nullptr || command->argument != Argument::kFile || !Works(*command, runs_here))
    return found;
  found.begin = line.find_first_not_of(' ', space);
  if (found.begin == line.npos) found.begin = line.size();
  found.words = names(line.substr(found.begin));
  return found;
}

absl::Status RunChatLoop(ChatPartner& partner, LineReader& reader) {
  return ChatLoop(partner, reader).Run();
}

}  // namespace inlay

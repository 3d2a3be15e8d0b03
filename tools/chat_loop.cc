#include "tools/chat_loop.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/interrupt.h"

namespace inlay {

const char kChatHelp[] =
    "/regen       regenerate the last answer\n"
    "/rewind [N]  remove the last turn, or the last N\n"
    "/fork        keep a copy of the conversation, under a number\n"
    "/fork N      continue from fork N\n"
    "/save FILE   save the conversation to a file; /save! replaces an existing one\n"
    "/load FILE   continue the conversation in a file\n"
    "/clear       remove all turns\n"
    "/stats       show length, memory and speed\n"
    "/exit        quit (as does Ctrl-D)\n"
    "//text       send /text; a line that ends with \\ continues on the next\n";

namespace {

absl::StatusOr<ChatCommand> ParseCommand(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  ChatCommand command{.name = words[0], .number = std::nullopt, .file = ""};
  if (command.name == "/save" || command.name == "/save!" || command.name == "/load") {
    // The rest of the line, whatever it holds.
    command.file = std::string(absl::StripAsciiWhitespace(line.substr(command.name.size())));
    if (!command.file.empty()) return command;
    return absl::InvalidArgumentError(absl::StrCat(command.name, " needs a file"));
  }
  if (words.size() == 1) return command;
  size_t number = 0;
  const bool numbered = command.name == "/rewind" || command.name == "/fork";
  if (!numbered || words.size() > 2 || !absl::SimpleAtoi(words[1], &number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.name, numbered ? " accepts one number, not " : " accepts no argument such as ",
        QuoteForMessage(words.back())));
  }
  command.number = number;
  return command;
}

class ChatLoop {
 public:
  explicit ChatLoop(ChatPartner& partner) : partner_(partner) {}

  absl::Status Run() {
    if (reader_.interactive()) WriteNote("Say something; /help lists the commands.\n");
    while (!done_) {
      const std::optional<std::string> line = reader_.Next("> ");
      if (!line.has_value()) break;
      const absl::Status status = OrOutOfMemory("this", [&] { return Handle(*line); });
      if (!out_.ok()) break;
      if (status.ok()) continue;
      if (!reader_.interactive()) return status;
      WriteNote(absl::StrCat("inlay: ", status.message(), "\n"));
    }
    return out_.Finish();
  }

 private:
  absl::Status Handle(const std::string& line) {
    if (line.empty()) return absl::OkStatus();
    const bool doubled = line.size() > 1 && line[1] == '/';
    if (line[0] == '/' && !doubled) return RunCommand(line);
    const std::string text = line[0] == '/' ? line.substr(1) : line;
    return Answer([&](auto&... how) { return partner_.Say(text, how...); });
  }

  absl::Status RunCommand(const std::string& line) {
    INLAY_ASSIGN_OR_RETURN(const ChatCommand command, ParseCommand(line));
    if (command.name == "/help") {
      WriteNote(kChatHelp);
      return absl::OkStatus();
    }
    if (command.name == "/exit" || command.name == "/quit") {
      done_ = true;
      return absl::OkStatus();
    }
    if (command.name == "/regen")
      return Answer([&](auto&... how) { return partner_.Regenerate(how...); });
    INLAY_ASSIGN_OR_RETURN(const std::optional<std::string> note, partner_.Run(command, reader_));
    if (!note.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuoteForMessage(command.name), " is not a command; /help lists them"));
    }
    WriteNote(*note);
    return absl::OkStatus();
  }

  template <class Ask>
  absl::Status Answer(const Ask& ask) {
    const InterruptWatch interrupt;
    AnswerPrinter printer(out_);
    const CancelCheck cancel = [&] { return interrupt.requested() || !out_.ok(); };
    const absl::Status status = ask(printer, cancel);
    if (absl::IsCancelled(status))
      return absl::CancelledError("interrupted before the answer began");
    return status;
  }

  ChatPartner& partner_;
  LineReader reader_;
  Output out_;
  bool done_ = false;
};

}  // namespace

absl::Status RunChatLoop(ChatPartner& partner) { return ChatLoop(partner).Run(); }

}  // namespace inlay

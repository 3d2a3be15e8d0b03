#include "tools/line_reader.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tools/output.h"
#include "tools/prompt_signals.h"

namespace inlay {
namespace {

using End = TypedLine::End;

constexpr absl::string_view kQuotes = "\"\"\"";
constexpr char kContinued[] = "... ";
constexpr char kGreen[] = "\033[32m", kPlain[] = "\033[0m";  // what a person types is green

int ShownFd() {
  if (isatty(STDOUT_FILENO) == 1) return STDOUT_FILENO;
  return isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1;
}

}  // namespace

LineReader::LineReader(Completer completer, const std::string& history)
    : interactive_(isatty(STDIN_FILENO) == 1), shown_fd_(interactive_ ? ShownFd() : -1) {
  if (!interactive_) return;
  PromptSignals::Prepare();
  if (shown_fd_ == -1) return;  // there is nothing to see of an edited line
  if (completer == nullptr) completer = [](absl::string_view) { return Completions(); };
  editor_ = LineEditor::Create(std::move(completer), history, shown_fd_);
}

void LineReader::Show(absl::string_view text) const {
  if (shown_fd_ == -1) return;
  [[maybe_unused]] const ssize_t n = write(shown_fd_, text.data(), text.size());
}

std::optional<std::string> LineReader::Next(const char* prompt) {
  bool warned = false;
  while (true) {
    TypedLine message = ReadMessage(prompt);
    if (message.end == End::kEnd) return std::nullopt;
    if (message.end == End::kLine) {
      if (editor_ != nullptr && !message.text.empty()) editor_->Remember(message.text);
      return std::move(message.text);
    }
    if (!message.begun && warned) return std::nullopt;
    warned = !message.begun;
    if (warned) WriteNote("Ctrl-C once more ends the chat\n");
  }
}

std::optional<std::string> LineReader::Ask(const char* question) {
  TypedLine line = ReadLine(question);
  if (line.end != End::kLine) return std::nullopt;
  return std::move(line.text);
}

TypedLine LineReader::ReadMessage(const char* prompt) {
  TypedLine message = ReadLine(prompt);
  if (message.end != End::kLine) return message;
  // Adds the next line; false after a signal or where a person ends the chat, which `message` then
  // is. A message that a file leaves open ends with it.
  const auto add_line = [&] {
    TypedLine more = ReadLine(kContinued);
    const bool continues = more.end == End::kLine;
    if (more.end == End::kSignal || (more.end == End::kEnd && interactive_)) {
      more.begun = true;
      message = std::move(more);
    } else {
      absl::StrAppend(&message.text, "\n", more.text);
    }
    return continues;
  };
  if (absl::StartsWith(message.text, kQuotes)) {
    message.text.erase(0, kQuotes.size());
    while (!absl::EndsWith(message.text, kQuotes) && add_line()) continue;
    if (message.end != End::kLine) return message;
    absl::string_view text = absl::StripSuffix(message.text, kQuotes);
    text = absl::StripSuffix(absl::StripPrefix(text, "\n"), "\n");
    message.text = std::string(text);
    return message;
  }
  while (message.end == End::kLine && absl::EndsWith(message.text, "\\")) {
    message.text.pop_back();
    if (!add_line()) break;
  }
  return message;
}

TypedLine LineReader::ReadLine(const char* prompt) {
  if (!interactive_) {
    TypedLine line;
    if (std::getline(std::cin, line.text)) line.end = End::kLine;
    if (absl::EndsWith(line.text, "\r")) line.text.pop_back();  // of a file from Windows
    return line;
  }
  const bool color = HasColor(shown_fd_);
  TypedLine line;
  {
    PromptSignals signals;
    if (editor_ != nullptr) {
      // \1 marks for the editor what takes no column.
      line = editor_->Read(color ? absl::StrCat("\1", kGreen, "\1", prompt) : prompt, signals);
    } else {
      line = ReadUnedited(absl::StrCat(color ? kGreen : "", prompt), signals);
    }
  }
  if (color) Show(kPlain);
  // What comes next begins a line.
  if (line.end != End::kLine) Show(editor_ != nullptr && line.signal == SIGINT ? "^C\n" : "\n");
  if (line.end == End::kSignal && line.signal != SIGINT) {
    raise(line.signal);
    line.end = End::kEnd;  // whoever handles it lets the program live
  }
  return line;
}

TypedLine LineReader::ReadUnedited(const std::string& prompt, PromptSignals& signals) {
  Show(prompt);
  TypedLine line;
  while (true) {
    if (const size_t newline = unread_.find('\n'); newline != std::string::npos) {
      line.end = End::kLine;
      line.text = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return line;
    }
    line.signal = signals.Wait(STDIN_FILENO);
    if (line.signal == SIGTSTP) {
      if (HasColor(shown_fd_)) Show(kPlain);  // the shell's prompt is not green
      PromptSignals::Stop();
      Show(prompt);  // of a new line: the terminal has dropped what was typed
    }
    if (line.signal == SIGTSTP || line.signal == SIGWINCH) continue;
    if (line.signal != 0) {
      line.end = End::kSignal;  // the terminal has dropped what was typed
      return line;
    }
    char buffer[4096];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return line;
    unread_.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace inlay

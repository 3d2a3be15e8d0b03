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

}  // namespace

LineReader::LineReader(Completer completer, const std::string& history)
    : interactive_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
  if (!interactive_) return;
  PromptSignals::Prepare();
  if (completer == nullptr) completer = [](absl::string_view) { return Completions(); };
  editor_ = LineEditor::Create(std::move(completer), history);
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
  // Adds the next line; false after a signal, which `message` then is.
  const auto add_line = [&] {
    TypedLine more = ReadLine(kContinued);
    const bool continues = more.end == End::kLine;
    if (more.end == End::kSignal) {
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
  const bool color = HasColor(STDOUT_FILENO);
  TypedLine line;
  {
    PromptSignals signals;
    // What a person types is green. \1 marks for the editor what takes no column.
    if (editor_ != nullptr) {
      line = editor_->Read(absl::StrCat(color ? "\1\033[32m\1" : "", prompt), signals);
    } else {
      std::cout << (color ? "\033[32m" : "") << prompt << std::flush;
      line = ReadUnedited(signals);
    }
  }
  if (color) std::cout << "\033[0m";
  if (line.end == End::kSignal)
    std::cout << (editor_ != nullptr && line.signal == SIGINT ? "^C\n" : "\n");
  std::cout << std::flush;
  if (line.end == End::kSignal && line.signal != SIGINT) {
    raise(line.signal);
    line.end = End::kEnd;  // whoever handles it lets the program live
  }
  return line;
}

TypedLine LineReader::ReadUnedited(PromptSignals& signals) {
  TypedLine line;
  while (true) {
    if (const size_t newline = unread_.find('\n'); newline != std::string::npos) {
      line.end = End::kLine;
      line.text = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return line;
    }
    line.signal = signals.Wait(STDIN_FILENO);
    if (line.signal == SIGTSTP) PromptSignals::Stop();
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

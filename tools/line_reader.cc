#include "tools/line_reader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <iostream>

namespace inlay {

LineReader::LineReader() : interactive_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
  if (!interactive_) return;
  void* library = nullptr;
  for (const char* name : {"libedit.so.2", "libedit.so.0"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return;
  readline_ = reinterpret_cast<char* (*)(const char*)>(dlsym(library, "readline"));
  add_history_ = reinterpret_cast<int (*)(const char*)>(dlsym(library, "add_history"));
  // Characters beyond ASCII are edited as characters; numbers are still written with a point.
  std::setlocale(LC_CTYPE, "");
}

std::optional<std::string> LineReader::NextPhysical(const char* prompt) {
  if (readline_ != nullptr) {
    char* line = readline_(prompt);
    if (line == nullptr) return std::nullopt;
    std::string copy = line;
    std::free(line);
    if (add_history_ != nullptr && !copy.empty()) add_history_(copy.c_str());
    return copy;
  }
  if (interactive_) std::cout << prompt << std::flush;
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

std::optional<std::string> LineReader::Next(const char* prompt) {
  std::optional<std::string> text = NextPhysical(prompt);
  while (text.has_value() && !text->empty() && text->back() == '\\') {
    text->back() = '\n';
    const std::optional<std::string> more = NextPhysical("... ");
    if (!more.has_value()) break;
    *text += *more;
  }
  return text;
}

}  // namespace inlay

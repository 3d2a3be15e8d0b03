// What the command line declares, as plain data: completion scripts and manual pages are made of
// it.
#ifndef INLAY_TOOLS_DECLARATIONS_H_
#define INLAY_TOOLS_DECLARATIONS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/strings/string_view.h"

namespace inlay {

// An option, or an argument that is known by its place.
struct OptionDeclaration {
  std::vector<std::string> names;  // "-m", "--model"; of an argument its one name
  std::string value;               // its type name; empty for a flag
  std::string description;
  std::string group;  // the heading it stands under in --help
  bool required = false;
  bool repeated = false;  // may have several values
};

struct CommandDeclaration {
  std::string name;
  std::string description;
  std::string group;
  std::string footer;
  std::vector<OptionDeclaration> options;    // with --help; grouped as they are shown
  std::vector<OptionDeclaration> arguments;  // in their order
};

struct ProgramDeclaration {
  CommandDeclaration program;
  std::vector<CommandDeclaration> commands;  // grouped as they are shown
};

// All that is not hidden.
ProgramDeclaration Declare(const CLI::App& app);

// What can stand for a value, as its type name says: alternatives with '|' between them. MODEL is a
// model file, FILE any file, FOLDER a folder, CONFIG the name of a config that is built in, TYPE
// that of a type that files are written in; TEXT, URL and numbers are anything; other alternatives
// are words that stand for themselves.
struct ValueChoices {
  std::vector<std::string> words;
  bool models = false;
  bool files = false;
  bool folders = false;
};
ValueChoices ChoicesOf(absl::string_view type_name);

}  // namespace inlay

#endif  // INLAY_TOOLS_DECLARATIONS_H_

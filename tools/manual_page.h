// Manual pages of the program and of its commands, for man(1).
#ifndef INLAY_TOOLS_MANUAL_PAGE_H_
#define INLAY_TOOLS_MANUAL_PAGE_H_

#include <string>
#include <vector>

#include "tools/declarations.h"

namespace inlay {

struct ManualPage {
  std::string name;  // "inlay-generate.1"
  std::string text;  // in the man macros of roff
};

// "inlay.1" and one page for each command.
std::vector<ManualPage> ManualPages(const ProgramDeclaration& program);

}  // namespace inlay

#endif  // INLAY_TOOLS_MANUAL_PAGE_H_

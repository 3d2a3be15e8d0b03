// How the commands load a saved conversation.
#ifndef INLAY_TOOLS_LOAD_OPTIONS_H_
#define INLAY_TOOLS_LOAD_OPTIONS_H_

#include <string>

#include "gemma_like/sessions/session.h"
#include "tools/interrupt.h"

namespace inlay {

// For the conversation `name`: a note and a bar show that it is computed again, and `interrupt`,
// which must outlive the options, stops that. With `exact` it is refused instead.
LoadOptions ShownLoad(std::string name, bool exact, const InterruptWatch& interrupt);

}  // namespace inlay

#endif  // INLAY_TOOLS_LOAD_OPTIONS_H_

#include "tools/version_text.h"

#include "base/version.h"

#ifdef INLAY_BUILD_HEADER
#include INLAY_BUILD_HEADER  // which CMake's build writes
#else
#define INLAY_BUILD ""
#endif

namespace inlay {

const char* VersionText() { return "inlay " INLAY_VERSION INLAY_BUILD; }

}  // namespace inlay

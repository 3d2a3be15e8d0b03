// Whole texts from a file or standard input.
#ifndef INLAY_TOOLS_READ_INPUT_H_
#define INLAY_TOOLS_READ_INPUT_H_

#include <string>

#include "absl/status/statusor.h"

namespace inlay {

// All bytes of the file at `path`, or of standard input for "-". Fails beyond
// Tokenizer::kLongestText bytes, so that an endless file is refused.
absl::StatusOr<std::string> ReadInput(const std::string& path);

}  // namespace inlay

#endif  // INLAY_TOOLS_READ_INPUT_H_

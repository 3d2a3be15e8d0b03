// Recognises files of other kinds that people have under the name of a model.
#ifndef INLAY_IO_GGUF_FOREIGN_FILE_H_
#define INLAY_IO_GGUF_FOREIGN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace inlay {

// The end of a sentence that begins "not a GGUF file: ": what the bytes of a file are by their
// beginning ("it is an HTML page, ...") and what to do, or their first characters if that is not
// known. `bytes` do not begin with the magic number of GGUF and are not empty.
std::string DescribeForeignFile(absl::Span<const uint8_t> bytes);

}  // namespace inlay

#endif  // INLAY_IO_GGUF_FOREIGN_FILE_H_

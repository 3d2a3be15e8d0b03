// A tokenizer's arrays as packed files hold them, so that loading computes nothing.
#ifndef INLAY_IO_TOKENIZER_READY_ARRAYS_H_
#define INLAY_IO_TOKENIZER_READY_ARRAYS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/stored_array.h"

namespace inlay {

// The tensor of a packed file that holds them: what Tokenizer::ReadyArrays returned, as F32.
inline constexpr absl::string_view kTokenizerTensor = "inlay.tokenizer";

// Fails when the tensor is missing or has another type.
absl::StatusOr<absl::Span<const uint8_t>> FindReadyArrays(const GgufFile& file);

// For arrays that do not belong together.
absl::Status DamagedArrays(const GgufFile& file);

// The arrays of these objects in turn.
template <class... Parts>
std::string WriteReadyArrays(const Parts&... parts) {
  ArrayWriter writer;
  (Parts::VisitArrays(parts, writer), ...);
  return writer.Take();
}

// Makes the arrays of these objects views of the file's. Their elements are not checked.
template <class... Parts>
absl::Status ReadReadyArrays(const GgufFile& file, Parts&... parts) {
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, FindReadyArrays(file));
  ArrayReader reader(bytes);
  (Parts::VisitArrays(parts, reader), ...);
  return reader.complete() ? absl::OkStatus() : DamagedArrays(file);
}

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_READY_ARRAYS_H_

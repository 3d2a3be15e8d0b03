// The names of the options of llama.cpp's programs.
#ifndef INLAY_TOOLS_FLAGS_LLAMA_OPTIONS_H_
#define INLAY_TOOLS_FLAGS_LLAMA_OPTIONS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// All of them, "--mirostat" and "-ngl", in the order of their bytes.
absl::Span<const absl::string_view> LlamaOptions();

bool IsLlamaOption(absl::string_view name);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_LLAMA_OPTIONS_H_

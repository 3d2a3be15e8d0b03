// What a model thought, in a form for clients that keep it without reading it.
#ifndef INLAY_SERVE_API_SEALED_REASONING_H_
#define INLAY_SERVE_API_SEALED_REASONING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay::serve {

// The "encrypted_content" of a reasoning item of OpenAI's responses, and the "signature" of a
// thinking block of Anthropic's whose text is to be left out. It is not encrypted: the client is
// the one who asked for the answer. Clients like Codex send back this member and not the text.
std::string SealReasoning(absl::string_view text);
// The text again; no value for what SealReasoning did not write.
std::optional<std::string> UnsealReasoning(absl::string_view sealed);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_SEALED_REASONING_H_

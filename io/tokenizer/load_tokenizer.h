// The tokenizer that a GGUF file contains.
#ifndef INLAY_IO_TOKENIZER_LOAD_TOKENIZER_H_
#define INLAY_IO_TOKENIZER_LOAD_TOKENIZER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// By `tokenizer.ggml.model`: "llama" and "gemma4" (BPE over characters with byte fallback, by
// scores and by merges), "gpt2" (byte-level BPE), "no_vocab" (ids only: Encode fails). Fails for
// other models and for a vocabulary that is inconsistent, with a sentence that names the key.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_LOAD_TOKENIZER_H_

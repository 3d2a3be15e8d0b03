// What determines the bytes of an answer besides its request.
#ifndef INLAY_GEMMA_LIKE_FINGERPRINT_H_
#define INLAY_GEMMA_LIKE_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/engine.h"
#include "io/gguf/gguf.h"
#include "ops/attention/kv_type.h"

namespace inlay {

// "inlay-VERSION/NUMERICS.SAMPLER/INSTRUCTIONS/WEIGHTS/ROWS": where it is the same, the same prompt
// of tokens gets the same tokens. The errors of Engine::Identity.
absl::StatusOr<std::string> MakeFingerprint(Engine& engine, KvType type);

// A hash of what a file says of its tokenizer: between texts and tokens, and of tokens that end an
// answer or are never generated. The file's chat templates count, too.
uint64_t TokenizerHash(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FINGERPRINT_H_

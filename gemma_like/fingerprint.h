// What determines the bytes of an answer besides its request.
#ifndef INLAY_GEMMA_LIKE_FINGERPRINT_H_
#define INLAY_GEMMA_LIKE_FINGERPRINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/engine.h"
#include "ops/attention/kv_type.h"

namespace inlay {

// "inlay-VERSION/NUMERICS.SAMPLER/INSTRUCTIONS/WEIGHTS/ROWS": where it is the same, the same
// request gets the same bytes. The errors of Engine::Identity.
absl::StatusOr<std::string> MakeFingerprint(Engine& engine, KvType type);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FINGERPRINT_H_

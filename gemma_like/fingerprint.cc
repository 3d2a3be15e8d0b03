#include "gemma_like/fingerprint.h"

#include <array>

#include "absl/strings/match.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "base/xxh64.h"
#include "cache/model_identity.h"
#include "cache/serialize.h"
#include "gemma_like/generation/sampler.h"

namespace inlay {

absl::StatusOr<std::string> MakeFingerprint(Engine& engine, KvType type) {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity identity, engine.Identity());
  return Format("inlay-%s/%d.%d/%s/%016x/%s", INLAY_VERSION, identity.numerics_version,
                kSamplerVersion, identity.instruction_set, identity.weights_hash, KvTypeName(type));
}

uint64_t TokenizerHash(const GgufFile& file) {
  Xxh64 hash;
  for (const GgufEntry& entry : file.metadata()) {
    if (!absl::StartsWith(entry.key(), "tokenizer.")) continue;
    const absl::Span<const uint8_t> value = entry.value.Encoded();
    const std::array<uint64_t, 2> sizes = {entry.key().size(), value.size()};
    hash.Update(sizes.data(), sizeof(sizes));
    hash.Update(entry.key().data(), entry.key().size());
    hash.Update(value.data(), value.size());
  }
  return hash.Digest();
}

}  // namespace inlay

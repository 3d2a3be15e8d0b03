#include "gemma_like/fingerprint.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "cache/model_identity.h"
#include "cache/serialize.h"
#include "gemma_like/generation/sampler.h"

namespace inlay {

absl::StatusOr<std::string> MakeFingerprint(Engine& engine, KvType type) {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity identity, engine.Identity());
  return absl::StrFormat("inlay-%s/%d.%d/%s/%016x/%s", INLAY_VERSION, identity.numerics_version,
                         kSamplerVersion, identity.instruction_set, identity.weights_hash,
                         KvTypeName(type));
}

}  // namespace inlay

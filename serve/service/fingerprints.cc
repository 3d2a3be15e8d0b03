#include "serve/service/fingerprints.h"

#include <array>
#include <cstdint>
#include <utility>

#include <vector>
#include "absl/strings/match.h"
#include "base/format.h"
#include "base/xxh64.h"
#include "gemma_like/fingerprint.h"

namespace inlay::serve {

Fingerprints MakeFingerprints(std::string engine, const LoadedModel& model,
                              const absl::StatusOr<ChatRenderer>& renderer,
                              const ServiceOptions& options, size_t context) {
  const std::array<uint64_t, 3> parts = {TokenizerHash(*model.file),
                                         renderer.ok() ? renderer->hash() : 0,
                                         options.drop_billing_line ? 1u : 0u};
  const auto text = static_cast<uint32_t>(Xxh64Of(parts.data(), sizeof(parts)));
  Fingerprints fingerprints;
  fingerprints.service = Format("%s/%08x/%d", engine, text, context);
  fingerprints.engine = std::move(engine);
  return fingerprints;
}

}  // namespace inlay::serve

#include "serve/service/fingerprints.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/format.h"
#include "base/xxh64.h"
#include "gemma_like/fingerprint.h"
#include "gemma_like/model/file_sampling.h"
#include "io/gguf/gguf.h"
#include "io/json/parse_json.h"
#include "serve/api/parse_options.h"

namespace inlay::serve {
namespace {

// Of what answers have where requests leave it out, as far as the server or the model's file says
// it; nothing where all of it is the config's, which the version and the weights stand for.
std::optional<uint64_t> DefaultsHash(const GgufFile& file, const CallDefaults& defaults) {
  Json stated = ToJson(defaults);
  for (const GgufEntry& entry : file.metadata()) {
    if (absl::StartsWith(entry.key(), kFileSamplingPrefix))
      stated[std::string(entry.key())] = entry.value.ToString();
  }
  if (stated.empty()) return std::nullopt;
  const std::string text = DumpJson(stated);
  return Xxh64Of(text.data(), text.size());
}

}  // namespace

Fingerprints MakeFingerprints(std::string engine, const LoadedModel& model,
                              const absl::StatusOr<ChatRenderer>& renderer,
                              const ServiceOptions& options, size_t context) {
  std::vector<uint64_t> parts = {TokenizerHash(*model.file), renderer.ok() ? renderer->hash() : 0,
                                 options.parsing.drop_billing_line ? 1u : 0u};
  if (const auto defaults = DefaultsHash(*model.file, options.parsing.defaults))
    parts.push_back(*defaults);
  const auto text =
      static_cast<uint32_t>(Xxh64Of(parts.data(), parts.size() * sizeof(parts.front())));
  Fingerprints fingerprints;
  fingerprints.service = Format("%s/%08x/%d", engine, text, context);
  fingerprints.engine = std::move(engine);
  return fingerprints;
}

}  // namespace inlay::serve

// The flags of sampling, over the defaults of the model.
#ifndef INLAY_TOOLS_FLAGS_SAMPLING_FLAGS_H_
#define INLAY_TOOLS_FLAGS_SAMPLING_FLAGS_H_

#include <cstdint>
#include <optional>

#include "CLI/App.hpp"
#include "absl/strings/string_view.h"
#include "configs/config.h"
#include "gemma_like/generation/sampler.h"

namespace inlay {

struct SamplingFlags {
  std::optional<uint64_t> seed;  // none: a new one
  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repeat_penalty;
  std::optional<int> repeat_last_n;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
};

// -s --temp --top-k --top-p --min-p --repeat-penalty --repeat-last-n --presence-penalty
// --frequency-penalty
// `shown`: where a person finds the seed that was drawn.
void AddSamplingFlags(CLI::App& command, SamplingFlags& flags,
                      absl::string_view shown = "shown in the footer");
// The same for a server: what its answers have where a request does not say.
void AddDefaultSamplingFlags(CLI::App& command, SamplingFlags& flags);

// The values given, else the defaults; without a seed, a new one each time (short enough to be
// typed again).
SamplingOptions ResolveSampling(const SamplingFlags& flags, const SamplingDefaults& defaults);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SAMPLING_FLAGS_H_

// The registry's entry of a config that is compiled into the binary.
#ifndef INLAY_GEMMA_LIKE_CONFIG_ENTRY_H_
#define INLAY_GEMMA_LIKE_CONFIG_ENTRY_H_

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"
#include "cache/hybrid_cache.h"
#include "configs/config.h"
#include "gemma_like/files/describe_synth.h"
#include "gemma_like/model/describe.h"
#include "gemma_like/model/model.h"
#include "gemma_like/registry.h"
#include "gemma_like/strings.h"

namespace inlay {

// ConfigEntry::mark, as one text: its parts are nowhere by themselves.
template <ModelConfig Config>
inline constexpr auto kConfigMark = [] {
  constexpr std::string_view kBefore = "INLAY config: ", kName = Config::kName;
  std::array<char, kBefore.size() + kName.size() + 1> mark{};
  mark.back() = '\n';
  std::copy(kName.begin(), kName.end(), std::copy(kBefore.begin(), kBefore.end(), mark.begin()));
  return mark;
}();

template <ModelConfig Config>
ConfigEntry MakeConfigEntry() {
  return {.name = ToAbsl(Config::kName),
          .architecture = ToAbsl(Config::kArchitecture),
          .sampling = EmbedsTexts<Config>() ? std::optional<SamplingDefaults>() : Config::kSampling,
          .compare = CompareMetadata<Config>,
          .load = [](std::shared_ptr<const GgufFile> file,
                     const EngineOptions& options) -> absl::StatusOr<std::unique_ptr<Engine>> {
            return Model<Config>::Load(std::move(file), options);
          },
          .packed_tensors = Model<Config>::FindPackedTensors,
          .create_cache =
              [](const CacheOptions& options) {
                return OrOutOfMemory(
                    "a conversation", [&]() -> absl::StatusOr<std::unique_ptr<KVCache>> {
                      return std::make_unique<HybridCache<Config>>(CreateKVCache<Config>(options));
                    });
              },
          .describe = Describe<Config>,
          .memory = Model<Config>::PlanMemory,
          .work = Model<Config>::PlanWork,
          .synth = DescribeSynth<Config>,
          .mark = {kConfigMark<Config>.data(), kConfigMark<Config>.size()}};
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CONFIG_ENTRY_H_

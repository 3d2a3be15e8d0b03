#include "gemma_like/model.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

template <class Config>
Family MakeFamily() {
  return {.name = std::string(Config::kName.substr(5)),
          .layers = Config::Layers::kSize,
          .vocab_size = Config::kVocabSize,
          .describe = DescribeSynth<Config>,
          .load = [](std::shared_ptr<const GgufFile> file,
                     const EngineOptions& options) -> absl::StatusOr<std::unique_ptr<Engine>> {
            return Model<Config>::Load(std::move(file), options);
          },
          .create_cache = []() -> std::unique_ptr<KVCache> {
            return std::make_unique<HybridCache<Config>>(CreateKVCache<Config>());
          }};
}

}  // namespace

std::vector<Family> AllFamilies() {
  return {MakeFamily<TinyBard>(), MakeFamily<TinyGemma>(), MakeFamily<TinyGranite>(),
          MakeFamily<TinyMamba>()};
}

}  // namespace inlay

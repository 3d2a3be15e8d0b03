#include "gemma_like/config_entry.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

template <class Config, class Policy>
Family MakeFamily(WeightType weights = WeightType::kF32) {
  const bool q8 = Policy::kKvType == KvType::kQ8;
  return {.name = std::string(Config::kName.substr(5)) + (q8 ? "_q8" : ""),
          .type = Policy::kKvType,
          .weights = weights,
          .layers = Config::Layers::kSize,
          .vocab_size = Config::kVocabSize,
          .config = MakeConfigEntry<Config>(),
          .create_cache = []() -> std::unique_ptr<KVCache> {
            return std::make_unique<HybridCache<Config>>(CreateKVCache<Config, Policy>());
          }};
}

}  // namespace

std::vector<Family> AllFamilies() {
  return {MakeFamily<TinyBard, F16Storage>(WeightType::kQ8_0),
          MakeFamily<TinyGemma, F32Storage>(WeightType::kQ8_0),
          MakeFamily<TinyGranite, F32Storage>(),
          MakeFamily<TinyMamba, F16Storage>(),
          MakeFamily<TinyLfm2, F16Storage>(WeightType::kBF16),
          MakeFamily<TinyParallel, BF16Storage>(),
          MakeFamily<TinyBard, Q8Storage>(),
          MakeFamily<TinyGemma, Q8Storage>(),
          MakeFamily<TinyLeaky, F16Storage>(),
          MakeFamily<TinyQwen, F32Storage>(),
          MakeFamily<TinyQwen, Q8Storage>(),
          MakeFamily<TinyGemma4, F16Storage>(),
          MakeFamily<TinyGemma4, Q8Storage>(),
          MakeFamily<TinyGemma4E, F32Storage>(),
          MakeFamily<TinyGemma4E, Q8Storage>(),
          MakeFamily<TinyGemma4Moe, F16Storage>()};
}

std::vector<Family> RankFamilies() {
  std::vector<Family> families = AllFamilies();
  families.push_back(MakeFamily<TinyShared, F16Storage>());
  return families;
}

}  // namespace inlay

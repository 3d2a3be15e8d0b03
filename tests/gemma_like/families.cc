#include "gemma_like/config_entry.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

template <class Config, class Policy = F32Storage>
Family MakeFamily() {
  const bool q8 = Policy::kKvType == KvType::kQ8;
  return {.name = std::string(Config::kName.substr(5)) + (q8 ? "_q8" : ""),
          .type = Policy::kKvType,
          .layers = Config::Layers::kSize,
          .vocab_size = Config::kVocabSize,
          .config = MakeConfigEntry<Config>(),
          .create_cache = []() -> std::unique_ptr<KVCache> {
            return std::make_unique<HybridCache<Config>>(CreateKVCache<Config, Policy>());
          }};
}

}  // namespace

std::vector<Family> AllFamilies() {
  return {MakeFamily<TinyBard>(),
          MakeFamily<TinyGemma>(),
          MakeFamily<TinyGranite>(),
          MakeFamily<TinyMamba>(),
          MakeFamily<TinyLfm2>(),
          MakeFamily<TinyParallel>(),
          MakeFamily<TinyBard, Q8Storage>(),
          MakeFamily<TinyGemma, Q8Storage>(),
          MakeFamily<TinyLeaky>(),
          MakeFamily<TinyQwen>(),
          MakeFamily<TinyQwen, Q8Storage>(),
          MakeFamily<TinyGemma4>(),
          MakeFamily<TinyGemma4, Q8Storage>(),
          MakeFamily<TinyGemma4E>(),
          MakeFamily<TinyGemma4E, Q8Storage>(),
          MakeFamily<TinyGemma4Moe>()};
}

std::vector<Family> RankFamilies() {
  std::vector<Family> families = AllFamilies();
  families.push_back(MakeFamily<TinyShared>());
  return families;
}

}  // namespace inlay

// Perplexity with rewinding is the same number to the last bit, for every family.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gemma_like/perplexity.h"
#include "tests/gemma_like/family_fixture.h"

namespace inlay {
namespace {

using PerplexityRewindTest = FamilyTest;

INSTANTIATE_TEST_SUITE_P(Families, PerplexityRewindTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(PerplexityRewindTest, SameNumber) {
  for (size_t chunk : {5, 33, 130, 590}) {
    const auto text = absl::MakeConstSpan(texts_[1]).first(chunk < 100 ? 200 : kLength);
    const auto run = [&](Engine& engine, bool rewind) {
      const auto cache = NewCache(nullptr, chunk);
      const auto sum = Perplexity(engine, *cache, text, 3, {.chunk = chunk, .rewind = rewind});
      EXPECT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(sum->count(), text.size() / chunk * (chunk - 1 - chunk / 2));
      return sum->mean();
    };
    EXPECT_EQ(run(*models_[0], false), run(*models_[1], true)) << chunk;
  }
}

}  // namespace
}  // namespace inlay

#include "gemma_like/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"

namespace inlay {
namespace {

TEST(PerplexityTest, ChunksHaveATokenToScore) {
  const LoadedModel model = LoadBard();
  const std::vector<int32_t> tokens(20, 5);
  const auto score = [&](size_t chunk) {
    const auto cache = Must(model.engine->CreateCache({.max_length = 20}));
    return Perplexity(*model.engine, *cache, tokens, -1, {.chunk = chunk});
  };
  for (const size_t chunk : {0, 1, 2, 3}) {
    const absl::Status status = score(chunk).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("not at least 4")) << chunk;
  }
  EXPECT_EQ(Must(score(4)).count(), 5u);
  EXPECT_THAT(score(21).status().message(), testing::HasSubstr("20 tokens, but a chunk has 21"));
}

}  // namespace
}  // namespace inlay

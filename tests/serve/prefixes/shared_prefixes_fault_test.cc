// Memory that runs out at the Nth allocation of an offer: what was not stored can still be.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "serve/prefixes/shared_prefixes.h"
#include "tests/failing_memory.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;
using failing_memory::Threads;

TEST(SharedPrefixesFaultTest, AnOfferThatFindsNoMemoryCanBeMadeAgain) {
  const LoadedModel model = LoadBard();
  const auto cache = Must(model.engine->CreateCache({}));
  Append(*model.engine, *cache, std::vector<int32_t>(60, 5));
  const TempFolder folder;
  int survived = 0;
  for (long n = 0;; ++n) {
    const auto prefixes =
        Must(SharedPrefixes::Create("same", Must(model.engine->Identity()),
                                    {.store = {.folder = folder.path()}, .least_tokens = 16}));
    ASSERT_TRUE(WaitUntil([&] { return prefixes->stats().up; }));
    failing_memory::FailAfter(n, Fault::kOnce, Threads::kThisOne);
    prefixes->OfferLast("alice", *cache);
    failing_memory::Stop();
    const bool has_failed = failing_memory::has_failed;
    prefixes->OfferLast("alice", *cache);
    prefixes->Finish(absl::FromChrono(kLongWait));
    ASSERT_EQ(prefixes->stats().stored, 1u) << "allocation " << n;
    if (!has_failed) break;
    ++survived;
  }
  EXPECT_GT(survived, 10);
}

}  // namespace
}  // namespace inlay::serve

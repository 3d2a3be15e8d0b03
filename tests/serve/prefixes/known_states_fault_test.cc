// Memory that runs out as a state becomes known: nothing stays of it.
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "absl/time/time.h"
#include "serve/prefixes/known_states.h"
#include "tests/failing_memory.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;

TEST(KnownStatesFaultTest, NothingStaysOfAStateThatFoundNoMemory) {
  const std::string root = "the root, whose name is long", name = "the state, whose name is long";
  long n = 0;
  for (bool has_failed = true; has_failed; ++n) {
    KnownStates known(absl::Hours(1));
    failing_memory::FailAfter(n, Fault::kFromThenOn);
    try {
      known.Add(root, 300, name);
    } catch (const std::bad_alloc&) {
    }
    failing_memory::Stop();
    has_failed = failing_memory::has_failed;
    EXPECT_EQ(known.Lengths(root, 1000).empty(), has_failed) << "allocation " << n;
    failing_memory::FailAfter(0, Fault::kFromThenOn);
    known.Remove(root, 300, name);
    failing_memory::Stop();
    EXPECT_FALSE(failing_memory::has_failed) << "it takes none";
  }
  EXPECT_GT(n, 3);
}

}  // namespace
}  // namespace inlay::serve

#include "base/token_ids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "absl/status/status.h"

namespace inlay {
namespace {

TEST(TokenIdsTest, NamesTheFirstThatIsOutside) {
  EXPECT_TRUE(CheckIds({}, 8).ok());
  EXPECT_TRUE(CheckIds({0, 7}, 8).ok());
  const absl::Status status = CheckIds({0, 7, 8, -1}, 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "token id 8 at index 2 is outside 0 to 7");
  EXPECT_EQ(CheckIds({-1}, 8).message(), "token id -1 at index 0 is outside 0 to 7");
  EXPECT_FALSE(CheckIds({std::numeric_limits<int32_t>::min()}, 8).ok());
}

}  // namespace
}  // namespace inlay

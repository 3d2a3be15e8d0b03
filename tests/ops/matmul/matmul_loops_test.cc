#include "ops/matmul/matmul_loops.h"

#include <cstddef>
#include <utility>

#include "gtest/gtest.h"

namespace inlay {
namespace {

// Each call begins where the one before it ended, and the last one reaches the last token.
template <size_t kCols>
void ExpectAllTokensComputed() {
  for (size_t tokens = 1; tokens <= 5 * kCols; ++tokens) {
    SCOPED_TRACE(testing::Message() << tokens << " tokens, " << kCols << " a call");
    size_t next = 0, left_before = 0;
    bool first = true;
    ForTokenCalls<kCols>(tokens, [&]<size_t C>(size_t token, size_t left) {
      EXPECT_LE(C, kCols);
      EXPECT_EQ(token, next);
      EXPECT_LT(token, tokens) << "a call without tokens";
      if (!first) {
        EXPECT_EQ(left + 1, left_before);
      }
      first = false;
      left_before = left;
      next = token + C;
    });
    EXPECT_GE(next, tokens);
    EXPECT_EQ(left_before, 0U);
  }
}

TEST(MatMulLoops, AllTokensAreComputed) {
  [&]<size_t... kLess>(std::index_sequence<kLess...>) {
    (ExpectAllTokensComputed<kLess + 1>(), ...);
  }
  (std::make_index_sequence<16>());
}

}  // namespace
}  // namespace inlay

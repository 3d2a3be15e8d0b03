#include "ops/conv.h"

#include <cmath>
#include <vector>

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using ConvTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(ConvTest);

// The outputs in double.
std::vector<double> Reference(const CausalConv& conv, const std::vector<const float*>& input,
                              size_t tokens, size_t channels) {
  std::vector<double> y;
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < channels; ++c) {
      double sum = conv.bias == nullptr ? 0 : conv.bias[c];
      for (size_t k = 0; k < conv.width; ++k) {
        sum += double{conv.weight[k * channels + c]} * input[t + k][c];
      }
      y.push_back(conv.silu ? sum / (1 + std::exp(-sum)) : sum);
    }
  }
  return y;
}

TEST_P(ConvTest, MatchesReferenceAndItsBitsDoNotDependOnBatches) {
  constexpr size_t kTokens = 9;
  double worst = 0;
  for (size_t channels : {1, 3, 17, 64, 67, 130, 257}) {
    for (size_t width : {1, 2, 3, 4}) {
      for (int form = 0; form < 4; ++form) {
        const Array x = RandomArray(kTokens + width - 1, channels, 1);
        const Array weight = RandomArray(width, channels, 2), bias = RandomArray(1, channels, 3);
        const CausalConv conv{.weight = weight.data(),
                              .width = width,
                              .bias = form % 2 == 0 ? bias.data() : nullptr,
                              .silu = form < 2};
        std::vector<const float*> input;
        for (size_t r = 0; r < kTokens + width - 1; ++r) input.push_back(x.Row(r));
        const Array all(kTokens, channels, 1), single(kTokens, channels, 2);
        CausalConv1d(conv, input.data(), all);
        for (size_t t = 0; t < kTokens; ++t) {
          CausalConv1d(conv, &input[t], single.view().Slice(t, 1));
        }
        worst = std::max(worst, Nmse(all, Reference(conv, input, kTokens, channels)));
        ASSERT_TRUE(SameBits(all, single));
      }
    }
  }
  std::printf("worst NMSE %.2g\n", worst);
  EXPECT_LE(worst, 1e-13);
}

}  // namespace
}  // namespace inlay

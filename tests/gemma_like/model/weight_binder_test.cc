// Tensors are found by the names of all converters, whatever is asked of them.
#include "gemma_like/model/weight_binder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "gemma_like/model/tensor_use.h"
#include "io/gguf/gguf.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"

namespace inlay {
namespace {

TEST(WeightBinderTest, OtherNamesServeEveryRequest) {
  const GgufFile file = Must(GgufFile::Open(kBardPath));
  const GgufTensor* norm = file.FindTensor("output_norm.weight");
  ASSERT_NE(norm, nullptr);
  constexpr char kOther[] = "token_embd_norm.weight";
  ASSERT_EQ(file.FindTensor(kOther), nullptr);
  const size_t size = norm->dims[0];

  WeightBinder binder(file);
  EXPECT_TRUE(binder.Has(kOther));
  EXPECT_FALSE(binder.Has("token_embd_norm.bias"));
  EXPECT_EQ(binder.Rows(kOther, 7), 1u);
  const std::vector<float> values = binder.Vector(kOther, TensorUse::kNorm, size);
  EXPECT_EQ(values.size(), size);
  EXPECT_EQ(binder.Transposed(kOther, TensorUse::kConvolution, 1, size), values);
}

}  // namespace
}  // namespace inlay

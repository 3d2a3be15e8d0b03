// Feeds a fuzzer the inputs that are kept for it: seeds, and everything that ever failed. The
// program's argument is their folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace {

std::string corpus;

TEST(Replay, EveryInputOfTheCorpus) {
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(file.good() || file.eof());
    // A copy that ends where the input ends, so that a sanitizer sees any read beyond.
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), copy.get());
    std::fprintf(stderr, "%s\n", entry.path().filename().c_str());  // the last one seen has failed
    EXPECT_EQ(LLVMFuzzerTestOneInput(copy.get(), bytes.size()), 0);
    ++inputs;
  }
  EXPECT_GT(inputs, 0u);
}

TEST(Replay, NothingAtAll) {
  const uint8_t none = 0;
  EXPECT_EQ(LLVMFuzzerTestOneInput(&none, 0), 0);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER [--gtest_...]\n", argv[0]);
    return 2;
  }
  corpus = argv[1];
  return RUN_ALL_TESTS();
}

#include "base/byte_stream.h"

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

TEST(MemorySink, AppendsToWhatIsThere) {
  std::vector<uint8_t> bytes = {1};
  MemorySink sink(bytes);
  EXPECT_TRUE(sink.Append({}).ok());
  EXPECT_TRUE(sink.Append(std::array<uint8_t, 2>{2, 3}).ok());
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 2, 3}));
}

TEST(MemorySource, GivesBytesInOrder) {
  const std::vector<uint8_t> bytes = {1, 2, 3};
  MemorySource source(bytes);
  EXPECT_EQ(source.remaining(), 3u);
  std::array<uint8_t, 2> two{};
  ASSERT_TRUE(source.Read(absl::MakeSpan(two)).ok());
  EXPECT_EQ(two, (std::array<uint8_t, 2>{1, 2}));
  EXPECT_EQ(source.remaining(), 1u);
  EXPECT_TRUE(source.Read({}).ok());
}

TEST(MemorySource, RefusesMoreThanIsLeftAndStays) {
  const std::vector<uint8_t> bytes = {1};
  MemorySource source(bytes);
  std::array<uint8_t, 2> two{7, 7};
  const absl::Status status = source.Read(absl::MakeSpan(two));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "2 bytes are needed but 1 are left");
  EXPECT_EQ(two, (std::array<uint8_t, 2>{7, 7}));
  EXPECT_EQ(source.remaining(), 1u);
}

}  // namespace
}  // namespace inlay

#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace inlay {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

std::vector<BlockRef> Fill(BlockPool& pool, size_t bytes) {
  std::vector<BlockRef> blocks;
  while (BlockRef block = pool.Allocate(bytes)) {
    std::memset(block.data(), static_cast<int>(blocks.size() % 251), bytes);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

TEST(BlockPool, GivesAlignedBlocksThatDoNotOverlap) {
  for (const size_t bytes : {size_t{100}, size_t{40000}, kMegabyte - 1000, 3 * kMegabyte}) {
    const size_t count = 90 * kMegabyte / bytes < 5000 ? 90 * kMegabyte / bytes : 5000;
    BlockPool pool({.limit_bytes = count * bytes});
    const std::vector<BlockRef> blocks = Fill(pool, bytes);
    ASSERT_EQ(blocks.size(), count);
    EXPECT_EQ(pool.used_bytes(), count * bytes);
    for (size_t i = 0; i < count; ++i) {
      const auto* data = static_cast<const unsigned char*>(blocks[i].data());
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % kBlockAlignment, 0u);
      for (size_t at = 0; at < bytes; at += 64) ASSERT_EQ(data[at], i % 251) << bytes << " " << i;
      ASSERT_EQ(data[bytes - 1], i % 251);
    }
  }
}

TEST(BlockPool, ReusesReturnedBlocks) {
  BlockPool pool({.limit_bytes = 80 * kMegabyte});
  std::vector<BlockRef> blocks = Fill(pool, kMegabyte / 2);
  std::set<void*> before;
  for (const BlockRef& block : blocks) before.insert(block.data());
  blocks.clear();
  for (const BlockRef& block : Fill(pool, kMegabyte / 2)) before.erase(block.data());
  EXPECT_TRUE(before.empty());
}

TEST(BlockPool, SaysWhyThereIsNoBlock) {
  BlockPool pool({.limit_bytes = 1000});
  const BlockRef block = pool.Allocate(900);
  ASSERT_TRUE(block);
  EXPECT_FALSE(pool.Allocate(101));
  EXPECT_EQ(pool.WhyNot(101), "900 of 1000 bytes are in use");
  EXPECT_FALSE(pool.Allocate(SIZE_MAX));
}

TEST(BlockPool, PoisonsReusedBlocks) {
  BlockPool pool({.limit_bytes = 80 * kMegabyte, .poison = true});
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<BlockRef> blocks;
    while (BlockRef block = pool.Allocate(kMegabyte / 2)) {
      const auto* data = static_cast<const unsigned char*>(block.data());
      for (size_t at = 0; at < kMegabyte / 2; at += 512) ASSERT_EQ(data[at], 0xFF);
      std::memset(block.data(), 0, kMegabyte / 2);
      blocks.push_back(std::move(block));
    }
  }
}

}  // namespace
}  // namespace inlay

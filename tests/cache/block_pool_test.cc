#include "cache/block_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

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
  // Below and above the sizes of blocks and pools that get large pages.
  for (const size_t bytes : {size_t{100}, size_t{40000}, size_t{70000}, kMegabyte - 1000,
                             3 * kMegabyte, 17 * kMegabyte}) {
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

// Bytes of this block's whole pages that are in memory.
size_t Resident(const void* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  std::vector<unsigned char> pages((end - begin) / page);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
  size_t resident = 0;
  for (const unsigned char present : pages) resident += (present & 1) * page;
  return resident;
}

// Whether the mapping of this address has a flag, as in proc(5): "hg" where large pages are asked
// for, "nh" where they are refused.
bool HasFlag(const void* data, const std::string& flag) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin, end;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(data);
      inside = begin <= at && at < end;
    }
    if (inside && line.rfind("VmFlags:", 0) == 0) return line.find(" " + flag) != std::string::npos;
  }
  return false;
}

TEST(BlockPool, FreeBlocksOfAnotherSizeDoNotKeepMemoryBeyondTheLimit) {
  constexpr size_t kLimit = 96 * kMegabyte, kSmall = kMegabyte / 4, kLarge = kMegabyte / 2;
  BlockPool pool({.limit_bytes = kLimit});
  std::vector<BlockRef> small = Fill(pool, kSmall);
  std::vector<const void*> freed;
  // Every second one is freed: no slab is free as a whole.
  for (size_t i = 0; i < small.size(); i += 2) {
    freed.push_back(small[i].data());
    small[i] = BlockRef();
  }
  // Those of the second half are parts of slabs, which are mapped as long as the pool lives.
  EXPECT_GT(Resident(freed.back(), kSmall), 0u);
  const bool has_large_pages = HasFlag(freed.back(), "hg");
  std::vector<BlockRef> large = Fill(pool, kLarge);
  EXPECT_EQ(pool.used_bytes(), kLimit);
  for (size_t i = freed.size() / 2; i < freed.size(); ++i)
    EXPECT_EQ(Resident(freed[i], kSmall), 0u) << i;
  // Else the system would make large pages of what is left, and fill these again.
  EXPECT_TRUE(!has_large_pages || HasFlag(freed.back(), "nh"));
  for (size_t i = 1; i < small.size(); i += 2) {
    const auto* data = static_cast<const unsigned char*>(small[i].data());
    for (size_t at = 0; at < kSmall; at += 64) ASSERT_EQ(data[at], i % 251);
  }
  // Their blocks serve again, and those of the other size give their memory back.
  large.clear();
  EXPECT_EQ(Fill(pool, kSmall).size(), freed.size());
}

TEST(BlockPool, SaysWhyThereIsNoBlock) {
  BlockPool pool({.limit_bytes = 1000});
  const BlockRef block = pool.Allocate(900);
  ASSERT_TRUE(block);
  EXPECT_FALSE(pool.Allocate(101));
  const absl::Status status = pool.AllocateFor(64, 101).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the cache needs a block of 101 bytes for position 64 "
            "but 900 of 1000 bytes are in use");
  EXPECT_TRUE(pool.AllocateFor(64, 100).ok());
  EXPECT_FALSE(pool.Allocate(SIZE_MAX));
  EXPECT_FALSE(BlockPool().Allocate(SIZE_MAX)) << "more than a size_t with what it takes beside it";
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

#include "cache/kv_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "tests/cache/kv_sequence.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

static_assert(Storage<KvBlocks>);

constexpr KvForm kGrowing{.max_append = 200, .rewind = 40};
constexpr KvForm kRing{.window = 70, .max_append = 100, .rewind = 40};
constexpr size_t kRingBlocks = kRing.RingBlocks();

TEST(KvBlocksTest, ARingHasRoomForTheRowsOfEveryAlignmentAndNoMore) {
  for (size_t window : {1, 2, 63, 64, 65, 100, 512}) {
    for (size_t append : {1, 2, 63, 64, 65, 512}) {
      for (size_t rewind : {0, 1, 32, 63, 64, 65}) {
        const size_t rows = window - 1 + rewind + append;  // that must be there together
        size_t most = 0;                                   // blocks that they touch
        for (size_t first = 0; first < kKvBlockRows; ++first)
          most = std::max(most, (first + rows - 1) / kKvBlockRows + 1);
        EXPECT_EQ(KvBlocks::RingBlocks(window, append, rewind), most);
      }
    }
  }
}

TEST(KvBlocksTest, RandomProgramsReadWhatWasWritten) {
  size_t refused = 0;
  for (const KvForm& form :
       {kGrowing, kRing, KvForm{1, 1, 0}, KvForm{64, 65, 32}, KvForm{65, 3, 64}}) {
    const size_t limit = form.window == 0 ? 12 : form.RingBlocks() + form.RingBlocks() / 2;
    for (uint64_t seed = 1; seed <= 15; ++seed) {
      BlockPool pool({.limit_bytes = limit * form.BlockBytes(), .poison = true});
      std::mt19937_64 random(seed);
      std::vector<KvSequence> all(1, KvSequence(form));
      for (uint32_t step = 0; step < 120; ++step) {
        KvSequence& s = all[random() % all.size()];
        const size_t most = std::min<size_t>(form.max_append, random() % 3 == 0 ? 1000 : 20);
        const size_t count = 1 + random() % most;
        absl::Status status;
        switch (random() % 7) {
          case 6:
            s.Trim(pool, random() % (2 * form.rewind + 1));
            break;
          case 0:
            status = s.WriteAndAbort(pool, count);
            break;
          case 1: {
            const size_t floor = s.blocks.RewindFloor();
            s.Rewind(random() % 8 == 0 ? 0 : floor + random() % (s.values.size() - floor + 1));
            break;
          }
          case 2: {
            if (all.size() == 2) all.erase(all.begin() + static_cast<ptrdiff_t>(random() % 2));
            const KvSequence copy = all[0];
            all.push_back(copy);
            break;
          }
          default:
            status = s.Append(pool, count, step << 16);
        }
        ASSERT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
        refused += status.ok() ? 0 : 1;
        for (const KvSequence& each : all)
          ASSERT_NO_FATAL_FAILURE(each.Check()) << form.window << " " << seed << " " << step;
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(KvBlocksTest, ATrimmedRingHasTheBlocksOfItsRewindsAlone) {
  BlockPool pool({.poison = true});
  KvSequence s(kRing);
  s.Fill(pool, 20 * kKvBlockRows);
  EXPECT_EQ(pool.used_bytes(), kRingBlocks * kRing.BlockBytes());
  s.Trim(pool, 5);
  // A token five back sees the 69 rows before it.
  EXPECT_EQ(pool.used_bytes(), 2 * kRing.BlockBytes());
  EXPECT_EQ(s.blocks.RewindFloor(), 20 * kKvBlockRows - 5);
  s.Rewind(20 * kKvBlockRows - 5);
  ASSERT_NO_FATAL_FAILURE(s.Check());
  s.Fill(pool, 40 * kKvBlockRows, 77);
  ASSERT_NO_FATAL_FAILURE(s.Check());
  EXPECT_EQ(pool.used_bytes(), kRingBlocks * kRing.BlockBytes());
}

TEST(KvBlocksTest, AForkCopiesTheSharedBlockThatItWritesToAndNoOther) {
  BlockPool pool({.poison = true});
  KvSequence origin(kGrowing);
  origin.Fill(pool, 2 * kKvBlockRows + 10);
  const void* const block = origin.blocks.view().Block(2);
  KvSequence fork = origin;
  EXPECT_EQ(pool.used_bytes(), 3 * kGrowing.BlockBytes());
  ASSERT_TRUE(fork.Append(pool, 1, 1000).ok());
  EXPECT_EQ(pool.used_bytes(), 4 * kGrowing.BlockBytes());
  EXPECT_EQ(fork.blocks.view().Block(1), origin.blocks.view().Block(1));
  EXPECT_NE(fork.blocks.view().Block(2), block);
  size_t visited = 0;
  fork.blocks.VisitBlocks([&](const void*, size_t bytes) { visited += bytes; });
  EXPECT_EQ(visited, 3 * kGrowing.BlockBytes()) << "shared blocks are visited too";
  // Now nobody shares the origin's last block, so it is written where it is.
  ASSERT_TRUE(origin.Append(pool, 1, 2000).ok());
  EXPECT_EQ(origin.blocks.view().Block(2), block);
  EXPECT_EQ(pool.used_bytes(), 4 * kGrowing.BlockBytes());
  ASSERT_NO_FATAL_FAILURE(origin.Check());
  ASSERT_NO_FATAL_FAILURE(fork.Check());
}

TEST(KvBlocksTest, TheGrowingFormGivesBackTheBlocksThatHoldNothing) {
  BlockPool pool({.poison = true});
  KvSequence s(kGrowing);
  ASSERT_TRUE(s.blocks.Prepare(pool, 0, 0).ok());
  EXPECT_EQ(pool.used_bytes(), 0u);
  s.Fill(pool, 600);
  for (size_t length : {600, 577, 576, 513, 512, 511, 65, 64, 63, 1, 0}) {
    s.Rewind(length);
    const size_t blocks = (length + kKvBlockRows - 1) / kKvBlockRows;
    EXPECT_EQ(pool.used_bytes(), blocks * kGrowing.BlockBytes()) << length;
    std::vector<uint32_t> dropped;
    ASSERT_TRUE(s.Write(pool, 200, 9000, dropped).ok());
    EXPECT_EQ(s.blocks.view().num_blocks, (length + 199) / kKvBlockRows + 1);
    s.blocks.Abort(length);
    EXPECT_EQ(pool.used_bytes(), blocks * kGrowing.BlockBytes()) << length;
    EXPECT_EQ(s.blocks.view().num_blocks, blocks);
    EXPECT_EQ(s.blocks.RewindFloor(), 0u);
    ASSERT_NO_FATAL_FAILURE(s.Check());
  }
}

TEST(KvBlocksTest, ARingTakesItsBlocksOnceAndItsFloorFollowsWhatItOverwrites) {
  BlockPool pool({.poison = true});
  KvSequence s(kRing);
  for (size_t length = 1; length <= 12 * kKvBlockRows; ++length) {
    ASSERT_TRUE(s.Append(pool, 1, 0).ok());
    // The newest block and the kRingBlocks - 1 before it are there. A token at the floor sees
    // window - 1 rows before it, the first of which begins the oldest block.
    const size_t blocks = (length - 1) / kKvBlockRows + 1;
    const size_t lost = blocks - std::min(blocks, kRingBlocks);
    ASSERT_EQ(s.blocks.RewindFloor(), lost == 0 ? 0 : lost * kKvBlockRows + kRing.window - 1);
    ASSERT_EQ(pool.used_bytes(), std::min(blocks, kRingBlocks) * kRing.BlockBytes());
    ASSERT_EQ(s.blocks.view().num_blocks, kRingBlocks);
  }
  const size_t floor = s.blocks.RewindFloor();
  const KvSequence fork = s;
  // Prepared rows overwrite a block even when they are dropped; the fork keeps its own.
  ASSERT_TRUE(s.WriteAndAbort(pool, 1).ok());
  EXPECT_EQ(s.blocks.RewindFloor(), floor + kKvBlockRows);
  EXPECT_EQ(fork.blocks.RewindFloor(), floor);
  EXPECT_EQ(pool.used_bytes(), (kRingBlocks + 1) * kRing.BlockBytes());
  ASSERT_NO_FATAL_FAILURE(s.Check());
  ASSERT_NO_FATAL_FAILURE(fork.Check());
  // A rewind does not bring back what was overwritten.
  s.Rewind(floor + kKvBlockRows);
  EXPECT_EQ(s.blocks.RewindFloor(), floor + kKvBlockRows);
  ASSERT_NO_FATAL_FAILURE(s.Check());
}

TEST(KvBlocksTest, WithoutBlocksNothingChanges) {
  ASSERT_EQ(kRingBlocks, 5u);  // 69 + 40 + 100 rows touch up to 5 blocks of 64
  for (const KvForm& form : {kGrowing, kRing}) {
    const size_t length = 5 * kKvBlockRows - 10;  // 5 blocks, all that the ring has
    const size_t count = 90;                      // rows in the last of them and in 2 more
    for (size_t room = 0; room <= 3; ++room) {
      BlockPool pool({.limit_bytes = (5 + room) * form.BlockBytes(), .poison = true});
      KvSequence origin(form);
      origin.Fill(pool, length);
      KvSequence fork = origin;
      const absl::Status status = fork.Append(pool, count, 1000);
      EXPECT_EQ(status.ok(), room == 3);
      if (room < 3) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr(absl::StrCat("a block of ", form.BlockBytes(), " bytes for position ",
                                           (4 + room) * kKvBlockRows, " but ", pool.limit_bytes(),
                                           " of ")));
      }
      ASSERT_NO_FATAL_FAILURE(origin.Check());
      ASSERT_NO_FATAL_FAILURE(fork.Check());
      // Of the growing form, at most the copy of the block that `length` lies in is left.
      if (form.window == 0 && room < 3) {
        EXPECT_LE(pool.used_bytes(), 6 * form.BlockBytes());
      }
    }
  }
}

TEST(KvBlocksTest, LoadsWhatWasSaved) {
  for (KvForm form : {kGrowing, kRing}) {
    for (KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
      form.type = type;
      for (size_t length : {0, 1, 63, 64, 65, 109, 110, 128, 129, 192, 700}) {
        BlockPool pool({.poison = true});
        KvSequence s(form);
        s.Fill(pool, length);
        const std::vector<uint8_t> bytes = s.Save(form.rewind);
        // Those that a token sees after the deepest rewind that is promised.
        const size_t from = form.FirstSeen(length - std::min(length, form.rewind));
        EXPECT_EQ(bytes.size(), 2 * sizeof(uint64_t) + (length - from) * form.RowBytes());

        KvSequence loaded(form);
        loaded.Fill(pool, 200, 7000);
        ASSERT_TRUE(loaded.Load(MemorySource(bytes), pool, length).ok());
        loaded.values = s.values;
        loaded.greatest = length;
        EXPECT_EQ(loaded.blocks.RewindFloor(), from == 0 ? 0 : from + form.window - 1);
        ASSERT_NO_FATAL_FAILURE(loaded.Check());
        EXPECT_EQ(loaded.Save(form.rewind), bytes);
        for (int i = 0; i < 8; ++i) {
          ASSERT_TRUE(loaded.Append(pool, 50, 8000).ok());
          ASSERT_NO_FATAL_FAILURE(loaded.Check());
        }
      }
    }
  }
}

// What a save for a rewind by 0 rows has left out cannot be gone back to.
TEST(KvBlocksTest, LoadsFewerRowsThanItCouldKeepAndKnowsTheFloor) {
  BlockPool pool({.poison = true});
  KvSequence s(kRing);
  s.Fill(pool, 300);
  const std::vector<uint8_t> bytes = s.Save(0);
  KvSequence loaded(kRing);
  ASSERT_TRUE(loaded.Load(MemorySource(bytes), pool, 300).ok());
  loaded.values = s.values;
  loaded.greatest = 300;
  loaded.form.rewind = 0;  // the save promises none
  EXPECT_EQ(loaded.blocks.RewindFloor(), 300u);
  ASSERT_NO_FATAL_FAILURE(loaded.Check());
  EXPECT_EQ(loaded.Save(kRing.rewind), bytes);
}

// Claims to go on for ever, as a damaged file may.
class EndlessSource final : public ByteSource {
 public:
  explicit EndlessSource(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}
  absl::Status Read(absl::Span<uint8_t> into) override { return bytes_.Read(into); }
  uint64_t remaining() const override { return std::numeric_limits<uint64_t>::max(); }

 private:
  MemorySource bytes_;
};

TEST(KvBlocksTest, RefusesDamageAndStaysAsItWas) {
  constexpr size_t kLength = 300;
  for (const KvForm& form : {kGrowing, kRing}) {
    BlockPool pool({.limit_bytes = 30 * form.BlockBytes(), .poison = true});
    KvSequence s(form);
    s.Fill(pool, kLength);
    const std::vector<uint8_t> bytes = s.Save(form.rewind);
    const size_t used = pool.used_bytes();
    const auto refuses = [&](ByteSource&& source, absl::StatusCode code, const std::string& text) {
      const absl::Status status = s.Load(std::move(source), pool, kLength);
      EXPECT_EQ(status.code(), code) << text;
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
      EXPECT_EQ(pool.used_bytes(), used) << text;
    };
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = absl::MakeConstSpan(bytes).first(size);
      refuses(MemorySource(cut), absl::StatusCode::kDataLoss, "layer 7");
      refuses(EndlessSource(cut), absl::StatusCode::kDataLoss, "layer 7 cannot be read");
    }
    const auto with = [&](size_t at, uint64_t value) {
      std::vector<uint8_t> changed = bytes;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      return changed;
    };
    // Rows cannot begin before those of the deepest rewind, nor after those of none.
    const size_t least = form.FirstSeen(kLength - form.rewind);
    const size_t most = form.FirstSeen(kLength);
    for (uint64_t from : {least - 1, most + 1, std::numeric_limits<uint64_t>::max()}) {
      refuses(MemorySource(with(0, from)), absl::StatusCode::kDataLoss,
              absl::StrCat("layer 7 is damaged: its rows begin at position ", from,
                           ", not between ", least, " and ", most));
    }
    const uint64_t size = bytes.size() - 2 * sizeof(uint64_t);
    for (uint64_t other : {uint64_t{0}, size - 1, size + 1, size - form.RowBytes()}) {
      refuses(MemorySource(with(sizeof(uint64_t), other)), absl::StatusCode::kDataLoss,
              absl::StrCat("it has ", other, " bytes, not ", size));
    }
    // All but one of the blocks that the rows need; the old ones are held until it has succeeded.
    const size_t needed = (kLength - 1) / kKvBlockRows + 1 - least / kKvBlockRows;
    const BlockRef rest =
        pool.Allocate(pool.limit_bytes() - used - (needed - 1) * form.BlockBytes());
    const absl::Status status = s.Load(MemorySource(bytes), pool, kLength);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(pool.limit_bytes() - pool.used_bytes(), (needed - 1) * form.BlockBytes());
    ASSERT_NO_FATAL_FAILURE(s.Check());
  }
}

}  // namespace
}  // namespace inlay

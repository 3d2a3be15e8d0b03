#include "cache/input_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/byte_stream.h"

namespace inlay {
namespace {

constexpr size_t kDim = 3;
constexpr size_t kTail = 2;
constexpr size_t kRewind = 25;  // so that a ring keeps more rows than an append in place writes
constexpr size_t kBlock = InputWindow::BlockBytes(kDim, kTail, kRewind);

static_assert(Storage<InputWindow>);

// A window and its length; the row of position p holds the value of `values[p]`.
struct WindowSequence {
  InputWindow window{kDim, kTail, kRewind};
  std::vector<float> values;
  size_t greatest = 0;  // length since Trim
  size_t floor = 0;     // no lower position has to be rewound to since Trim

  // Writes the rows of an append and returns whether there was memory for them.
  bool Write(BlockPool& pool, size_t count, float seed, std::vector<float>& written) {
    if (!window.Prepare(pool, values.size(), count).ok()) return false;
    for (size_t i = 0; i < count; ++i) {
      written.push_back(seed + static_cast<float>(i));
      float* row = window.NewRow(values.size() + i);
      if (row != nullptr) std::fill_n(row, kDim, written.back());
    }
    return true;
  }

  void Append(BlockPool& pool, size_t count, float seed) {
    std::vector<float> written;
    ASSERT_TRUE(Write(pool, count, seed, written));
    values.insert(values.end(), written.begin(), written.end());
    window.Commit(values.size());
    greatest = std::max(greatest, values.size());
  }

  void Abort(BlockPool& pool, size_t count) {
    std::vector<float> written;
    Write(pool, count, -1000, written);
    window.Abort(values.size());
  }

  void Rewind(size_t length) {
    window.Truncate(length);
    values.resize(length);
    if (length == 0) floor = greatest = 0;
  }

  // The lowest position that has to be rewound to.
  size_t HighestFloor() const { return std::max(floor, greatest - std::min(greatest, kRewind)); }

  void Trim(BlockPool& pool, size_t rewind) {
    window.Trim(pool, values.size(), rewind);
    floor = std::max(HighestFloor(), values.size() - std::min(values.size(), rewind));
    greatest = values.size();
  }

  // Every row that a token after any position down to the floor reads is the one written.
  void Check() const {
    const size_t lowest = window.RewindFloor();
    ASSERT_LE(lowest, HighestFloor());
    for (size_t p = lowest - std::min(lowest, kTail); p < values.size(); ++p) {
      for (size_t c = 0; c < kDim; ++c) ASSERT_EQ(window.Row(p)[c], values[p]) << p;
    }
  }
};

TEST(InputWindowTest, RandomProgramsReadWhatWasWritten) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    BlockPool pool({.limit_bytes = 6 * kBlock, .poison = true});
    std::mt19937_64 random(seed);
    std::vector<WindowSequence> all(1);
    for (int step = 0; step < 300; ++step) {
      WindowSequence& s = all[random() % all.size()];
      const size_t count = 1 + random() % (random() % 4 == 0 ? 80 : 4);
      switch (random() % 7) {
        case 0:
          s.Abort(pool, count);
          break;
        case 6:
          s.Trim(pool, random() % (2 * kRewind));
          break;
        case 1: {
          const size_t floor = s.window.RewindFloor();
          if (random() % 8 == 0) s.Rewind(0);
          if (floor <= s.values.size()) s.Rewind(floor + random() % (s.values.size() - floor + 1));
          break;
        }
        case 2: {
          if (all.size() == 2) all.pop_back();
          const WindowSequence copy = all[0];
          all.push_back(copy);
          break;
        }
        default:
          ASSERT_NO_FATAL_FAILURE(s.Append(pool, count, static_cast<float>(1000 * step)));
      }
      for (const WindowSequence& each : all)
        ASSERT_NO_FATAL_FAILURE(each.Check()) << seed << " " << step;
    }
  }
}

TEST(InputWindowTest, ATrimmedWindowHasTheRowsOfItsRewindsAlone) {
  for (const bool memory : {true, false}) {
    BlockPool pool({.limit_bytes = memory ? 2 * kBlock : kBlock, .poison = true});
    WindowSequence s;
    for (int i = 0; i < 30; ++i) ASSERT_NO_FATAL_FAILURE(s.Append(pool, 1, 100.0f + i));
    s.Trim(pool, 2);
    EXPECT_EQ(pool.used_bytes(), memory ? (kTail + 2) * kDim * sizeof(float) : kBlock);
    EXPECT_EQ(s.window.RewindFloor(), 28u) << "with or without memory for a smaller copy";
    ASSERT_NO_FATAL_FAILURE(s.Check());
    s.Rewind(28);
    ASSERT_NO_FATAL_FAILURE(s.Append(pool, 1, 7));
    ASSERT_NO_FATAL_FAILURE(s.Check());
    EXPECT_EQ(pool.used_bytes(), kBlock);
  }
}

TEST(InputWindowTest, WithoutMemoryNothingChanges) {
  BlockPool pool({.limit_bytes = kBlock});
  WindowSequence s;
  ASSERT_NO_FATAL_FAILURE(s.Append(pool, 4, 1));
  for (size_t count : {size_t{1}, size_t{20}}) {
    WindowSequence fork = s;
    std::vector<float> written;
    EXPECT_FALSE(fork.Write(pool, count, 50, written));
    fork.window.Abort(4);
    ASSERT_NO_FATAL_FAILURE(fork.Check());
  }
  ASSERT_NO_FATAL_FAILURE(s.Append(pool, 1, 9));
  ASSERT_NO_FATAL_FAILURE(s.Check());
  EXPECT_EQ(pool.used_bytes(), kBlock);
}

TEST(InputWindowTest, ShortAppendsAllocateOnceAndLongOnesGiveTheOldRingBack) {
  BlockPool pool;
  WindowSequence s;
  for (int i = 0; i < 50; ++i) {
    s.Append(pool, 1 + static_cast<size_t>(i) % 5, static_cast<float>(i));
    ASSERT_EQ(pool.used_bytes(), kBlock);
  }
  s.Append(pool, 100, 1);
  EXPECT_EQ(pool.used_bytes(), kBlock);
  size_t visited = 0;
  s.window.VisitBlocks([&](const void*, size_t bytes) { visited += bytes; });
  EXPECT_EQ(visited, kBlock);
}

TEST(InputWindowTest, LoadsWhatWasSaved) {
  for (size_t length : {0, 1, 2, 26, 27, 28, 43, 44, 45, 100}) {
    BlockPool pool({.poison = true});
    WindowSequence s;
    for (size_t i = 0; i < length; ++i) s.Append(pool, 1, static_cast<float>(i));
    std::vector<uint8_t> bytes;
    MemorySink sink(bytes);
    SectionWriter writer(sink);
    ASSERT_TRUE(s.window.Save(writer, length, kRewind).ok());
    EXPECT_EQ(bytes.size(), 16 + std::min(length, kTail + kRewind) * kDim * sizeof(float));

    MemorySource source(bytes);
    SectionReader reader(source);
    WindowSequence loaded;
    ASSERT_TRUE(loaded.window.Load(reader, pool, length, kRewind).ok());
    loaded.values = s.values;
    loaded.greatest = length;
    ASSERT_NO_FATAL_FAILURE(loaded.Check());

    // From another length: its rows begin elsewhere, or are another number.
    MemorySource again(bytes);
    SectionReader wrong(again);
    wrong.BeginSection("window");
    EXPECT_FALSE(loaded.window.Load(wrong, pool, length + 1, kRewind).ok());
    ASSERT_NO_FATAL_FAILURE(loaded.Check());
  }
}

}  // namespace
}  // namespace inlay

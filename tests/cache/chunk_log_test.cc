#include "cache/chunk_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/byte_stream.h"
#include "ops/views.h"

namespace inlay {
namespace {

// A log with two columns, 3 and 2 floats wide, beside a state of 5.
struct TwoColumns {
  struct Shape {
    constexpr size_t StateBytes(StateType) const { return 5 * sizeof(float); }
  };
  static constexpr std::array<size_t, 2> Columns(const Shape&) { return {3, 2}; }

  Shape shape;
  float* data = nullptr;

  FloatRows first() const { return {data, kStateChunk, 3}; }
  FloatRows second() const { return {data + 3 * kStateChunk, kStateChunk, 2}; }
};
using Log = ChunkLog<TwoColumns>;
static_assert(Storage<Log>);
constexpr ChunkLogShape kLayout = Log::LayoutOf({}, StateType::kF32);
static_assert(kLayout.RowFloats() == 5 && kLayout.state_bytes == 20);
static_assert(kLayout.LogBytes() == 5 * kStateChunk * sizeof(float));

// A log in which every token t has put value(t) into both columns, and whose state at a boundary
// holds the sum of the values before it.
struct LogSequence {
  Log log{TwoColumns::Shape(), StateType::kF32};
  std::vector<float> values;
  size_t greatest = 0;  // length since Trim
  size_t floor = 0;     // no lower position has to be rewound to since Trim

  static float Sum(const std::vector<float>& values, size_t end) {
    float sum = 0;
    for (size_t i = 0; i < end; ++i) sum += values[i];
    return sum;
  }

  bool Write(BlockPool& pool, size_t count, float seed, std::vector<float>& all) {
    const size_t length = values.size();
    all = values;
    if (!log.Prepare(pool, length, count).ok()) return false;
    const size_t last = (length + count - 1) / kStateChunk;
    for (size_t p = length; p < length + count; ++p) {
      all.push_back(seed + static_cast<float>(p % 7));
      const size_t chunk = p / kStateChunk;
      // As a mixer does: the first log touched and the last two are kept.
      if (chunk == length / kStateChunk || chunk + 1 >= last) {
        const TwoColumns to = log.LogOf(chunk);
        std::fill_n(to.first().Row(p % kStateChunk), 3, all.back());
        std::fill_n(to.second().Row(p % kStateChunk), 2, all.back());
      }
      if ((p + 1) % kStateChunk == 0) std::fill_n(log.FloatState(chunk + 1), 5, Sum(all, p + 1));
    }
    return true;
  }

  void Append(BlockPool& pool, size_t count, float seed) {
    std::vector<float> all;
    ASSERT_TRUE(Write(pool, count, seed, all));
    values = all;
    log.Commit(values.size());
    greatest = std::max(greatest, values.size());
  }

  // The lowest position that has to be rewound to.
  size_t HighestFloor() const {
    return std::max(floor, greatest - std::min(greatest, kStateChunk));
  }

  void Trim(BlockPool& pool, size_t rewind) {
    log.Trim(pool, values.size(), rewind);
    floor = std::max(HighestFloor(), values.size() - std::min(values.size(), rewind));
    greatest = values.size();
  }

  void Check() const {
    const size_t lowest = log.RewindFloor();
    ASSERT_LE(lowest, HighestFloor());
    for (size_t chunk = lowest / kStateChunk; chunk * kStateChunk < values.size(); ++chunk) {
      const size_t begin = chunk * kStateChunk;
      if (chunk == 0) {
        ASSERT_EQ(log.State(0), nullptr);
      } else {
        for (size_t i = 0; i < 5; ++i) ASSERT_EQ(log.FloatState(chunk)[i], Sum(values, begin));
      }
      // The last row of a chunk before the current one is written anew by who goes back into it.
      const size_t end = std::min(values.size(), begin + kStateChunk - 1);
      for (size_t p = begin; p < end; ++p) {
        ASSERT_EQ(log.LogOf(chunk).first().Row(p - begin)[2], values[p]) << p;
        ASSERT_EQ(log.LogOf(chunk).second().Row(p - begin)[1], values[p]) << p;
      }
    }
  }
};

TEST(ChunkLogTest, RandomProgramsReadWhatWasWritten) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    BlockPool pool({.poison = true});
    std::mt19937_64 random(seed);
    std::vector<LogSequence> all(1);
    for (int step = 0; step < 200; ++step) {
      LogSequence& s = all[random() % all.size()];
      const size_t count = 1 + random() % (random() % 3 == 0 ? 150 : 20);
      switch (random() % 7) {
        case 6:
          s.Trim(pool, random() % (2 * kStateChunk));
          break;
        case 0: {
          std::vector<float> dropped;
          s.Write(pool, count, -1000, dropped);
          s.log.Abort(s.values.size());
          break;
        }
        case 1: {
          const size_t floor = s.log.RewindFloor();
          const size_t length =
              random() % 8 == 0 ? 0 : floor + random() % (s.values.size() - floor + 1);
          s.log.Truncate(length);
          s.values.resize(length);
          if (length == 0) s.floor = s.greatest = 0;
          break;
        }
        case 2: {
          if (all.size() == 2) all.pop_back();
          const LogSequence copy = all[0];
          all.push_back(copy);
          break;
        }
        default:
          ASSERT_NO_FATAL_FAILURE(s.Append(pool, count, static_cast<float>(step)));
      }
      for (const LogSequence& each : all)
        ASSERT_NO_FATAL_FAILURE(each.Check()) << seed << " " << step;
    }
  }
}

TEST(ChunkLogTest, WithoutMemoryNothingChanges) {
  BlockPool pool({.limit_bytes = kLayout.LogBytes()});
  LogSequence s;
  ASSERT_NO_FATAL_FAILURE(s.Append(pool, 10, 1));
  std::vector<float> written;
  EXPECT_FALSE(s.Write(pool, 40, 1, written));  // no memory for the state at the boundary
  s.log.Abort(10);
  LogSequence fork = s;
  EXPECT_FALSE(fork.Write(pool, 1, 1, written));  // nor for a copy of the log
  fork.log.Abort(10);
  ASSERT_NO_FATAL_FAILURE(s.Check());
  ASSERT_NO_FATAL_FAILURE(fork.Check());
  EXPECT_EQ(pool.used_bytes(), kLayout.LogBytes());
}

TEST(ChunkLogTest, LoadsWhatWasSaved) {
  for (size_t length : {0, 1, 31, 32, 33, 63, 64, 65, 100}) {
    BlockPool pool({.poison = true});
    LogSequence s;
    if (length > 0) s.Append(pool, length, 1);
    std::vector<uint8_t> bytes;
    MemorySink sink(bytes);
    SectionWriter writer(sink);
    ASSERT_TRUE(s.log.Save(writer, length, kStateChunk).ok());

    MemorySource source(bytes);
    SectionReader reader(source);
    LogSequence loaded;
    ASSERT_TRUE(loaded.log.Load(reader, pool, length, kStateChunk).ok());
    loaded.values = s.values;
    loaded.greatest = length;
    ASSERT_NO_FATAL_FAILURE(loaded.Check());

    MemorySource again(bytes);
    SectionReader wrong(again);
    wrong.BeginSection("log");
    EXPECT_FALSE(loaded.log.Load(wrong, pool, length + 1, kStateChunk).ok());
    ASSERT_NO_FATAL_FAILURE(loaded.Check());
  }
}

}  // namespace
}  // namespace inlay

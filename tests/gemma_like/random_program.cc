#include "tests/gemma_like/random_program.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "base/byte_stream.h"
#include "cache/model_identity.h"
#include "gemma_like/generation/speculate.h"
#include "tests/gemma_like/generation/chance_drafter.h"
#include "tests/must.h"

namespace inlay {

std::mutex RandomProgramTest::mutex_;
RandomProgramTest::Counts RandomProgramTest::suite_;

void RandomProgramTest::RunProgram(uint64_t seed, size_t steps,
                                   const std::shared_ptr<BlockPool>& pool) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Program program{std::mt19937_64(seed), pool, {}, {}};
  program.all.push_back({NewCache(pool), 0});
  for (size_t step = 0; step < steps; ++step) {
    ASSERT_NO_FATAL_FAILURE(Step(program)) << "step " << step;
  }
  Counts& n = program.counts;
  n.steps = steps;
  std::printf(
      "seed %llu: %zu steps, %zu appended, %zu cancelled, %zu rewinds, %zu refused, %zu forks, "
      "%zu aborts, "
      "%zu trims, %zu loads, %zu drafted tokens accepted, %zu not\n",
      static_cast<unsigned long long>(seed), steps, n.appended, n.cancelled, n.rewinds, n.refusals,
      n.forks, n.aborts, n.trims, n.loads, n.right, n.wrong);
  ExpectAll(n);
  const std::lock_guard lock(mutex_);
  suite_.steps += steps;
  for (const auto kind : kAlways) suite_.*kind += n.*kind;
}

void RandomProgramTest::TearDownTestSuite() { ExpectAll(std::exchange(suite_, Counts())); }

void RandomProgramTest::ExpectAll(const Counts& counts) {
  constexpr size_t kEnough = 150;  // to do a bit of everything, whatever the seed
  if (counts.steps < kEnough) return;
  for (const auto kind : kAlways) EXPECT_GT(counts.*kind, 0u) << "in " << counts.steps << " steps";
}

void RandomProgramTest::Step(Program& p) {
  Conversation& c = p.all[p.Below(p.all.size())];
  // Where the past is shared, a conversation may go on with another text.
  const size_t other = p.Below(kTexts);
  if (c.cache->length() <= Shared(c.text, other)) c.text = other;
  switch (p.Below(11)) {
    case 10:
      return Trim(p, c);
    case 0:
      return Rewind(p, c);
    case 1:
      return Fork(p, c);
    case 2:
      return Abort(p, c);
    case 3:
      return SaveAndLoad(p, c);
    case 4:
      return Draft(p, c);
    case 5:
      if (p.all.size() > 1 && p.Below(4) == 0)
        p.all.erase(p.all.begin() + static_cast<ptrdiff_t>(p.Below(p.all.size())));
      return;
    default:
      return AppendToSome(p, c);
  }
}

void RandomProgramTest::Rewind(Program& p, Conversation& c) {
  const size_t length = c.cache->length();
  const size_t back =
      p.Below(3) == 0 ? p.Below(length + 1) : p.Below(std::min<size_t>(length + 1, 40));
  const bool possible = back == length || length - back >= c.cache->RewindFloor();
  ASSERT_EQ(c.cache->Rewind(length - back).ok(), possible);
  ASSERT_EQ(c.cache->length(), possible ? length - back : length);
  ++(possible ? p.counts.rewinds : p.counts.refusals);
}

void RandomProgramTest::Trim(Program& p, Conversation& c) {
  const size_t length = c.cache->length();
  const size_t rewind = p.Below(40);
  const size_t floor = c.cache->RewindFloor();
  const size_t bytes = c.cache->allocated_bytes();
  ASSERT_TRUE(c.cache->Trim(rewind).ok());
  ASSERT_LE(c.cache->RewindFloor(), std::max(floor, length - std::min(length, rewind)));
  ASSERT_LE(c.cache->allocated_bytes(), bytes);
  ++p.counts.trims;
}

void RandomProgramTest::Fork(Program& p, const Conversation& c) {
  Conversation fork{Must(c.cache->Fork()), c.text};
  if (p.all.size() < 8) {
    p.all.push_back(std::move(fork));
  } else {
    p.all[p.Below(p.all.size())] = std::move(fork);
  }
  ++p.counts.forks;
}

void RandomProgramTest::Abort(Program& p, Conversation& c) {
  const size_t n = std::min<size_t>(1 + p.Below(80), kLength - c.cache->length());
  if (n == 0) return;
  size_t polls = p.Below(static_cast<size_t>(GetParam().layers) + 1);
  const std::vector<int32_t> wrong(n, static_cast<int32_t>(p.Below(vocab_)));
  const SequenceStep part{.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0};
  const absl::Status status =
      AnyModel(p).Forward({&part, 1}, FloatRows(nullptr, 0, vocab_), [&] { return polls-- == 0; });
  ASSERT_EQ(status.code(), absl::StatusCode::kCancelled);
  ++p.counts.aborts;
}

void RandomProgramTest::SaveAndLoad(Program& p, const Conversation& c) {
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  ASSERT_TRUE(c.cache->Save({}, sink).ok());
  const size_t length = c.cache->length();
  const size_t text = c.text;
  Conversation& into = p.all[p.Below(p.all.size())];
  if (p.Below(2) == 0) into.cache = NewCache(p.pool);
  MemorySource source(bytes);
  const LoadOutcome outcome = Must(into.cache->Load({}, source));
  ASSERT_EQ(outcome.difference, "");
  into.text = text;
  ASSERT_EQ(into.cache->length(), length);
  ++p.counts.loads;
}

void RandomProgramTest::Draft(Program& p, Conversation& c) {
  const size_t length = c.cache->length();
  const size_t n = std::min<size_t>(1 + p.Below(20), kLength - length);
  ChanceDrafter drafter(texts_[c.text], 0.25 * static_cast<double>(p.Below(5)), vocab_, p.random());
  DraftedDecoder decoder(AnyModel(p), *c.cache, &drafter, 1 + p.Below(DraftedTokens::kMost));
  for (size_t at = length; at < length + n; ++at) {
    ASSERT_TRUE(decoder.Append(texts_[c.text][at]).ok());
    ASSERT_EQ(BitsOf(decoder.logits().data, vocab_), expected_[c.text][at])
        << "text " << c.text << " position " << at;
  }
  p.counts.right += decoder.accepted();
  p.counts.wrong += decoder.drafted() - decoder.accepted();
}

void RandomProgramTest::AppendToSome(Program& p, const Conversation& c) {
  std::vector<Conversation*> batch;
  std::vector<size_t> counts;
  std::vector<int> cancel_before;
  for (Conversation& member : p.all) {
    if (&member != &c && p.Below(3) != 0) continue;
    const size_t most = p.Below(6) == 0 ? 90 : 4;
    const size_t n = std::min<size_t>(1 + p.Below(most), kLength - member.cache->length());
    if (n == 0) {
      member = {NewCache(p.pool), p.Below(kTexts)};
      continue;
    }
    batch.push_back(&member);
    counts.push_back(n);
    const bool cancelled = p.Below(8) == 0;
    cancel_before.push_back(
        cancelled ? static_cast<int>(p.Below(static_cast<size_t>(GetParam().layers))) : kNever);
    ++(cancelled ? p.counts.cancelled : p.counts.appended);
  }
  if (!batch.empty()) AppendAndCompare(AnyModel(p), batch, counts, cancel_before);
}

}  // namespace inlay

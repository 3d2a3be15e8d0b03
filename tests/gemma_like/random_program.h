// Random programs over conversations: appends, rewinds, trims, forks, aborts, saves, loads and
// drafts, after each of which logits have the bits of a straight run.
#ifndef INLAY_TESTS_GEMMA_LIKE_RANDOM_PROGRAM_H_
#define INLAY_TESTS_GEMMA_LIKE_RANDOM_PROGRAM_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "cache/block_pool.h"
#include "tests/gemma_like/family_fixture.h"

namespace inlay {

class RandomProgramTest : public FamilyTest {
 public:
  // Where programs are short, all of a suite's together do something of every kind.
  static void TearDownTestSuite();

 protected:
  // One program. Its conversations take their memory from `pool`, or each from one of its own.
  // Programs of different threads may run at the same time.
  void RunProgram(uint64_t seed, size_t steps, const std::shared_ptr<BlockPool>& pool = nullptr);

 private:
  struct Counts {
    size_t steps = 0, appended = 0, cancelled = 0, rewinds = 0, refusals = 0, forks = 0, aborts = 0,
           trims = 0, loads = 0, right = 0, wrong = 0;
  };
  struct Program {
    std::mt19937_64 random;
    std::shared_ptr<BlockPool> pool;
    std::vector<Conversation> all;
    Counts counts;

    size_t Below(size_t n) { return random() % n; }
  };

  // What every program does, if there are enough steps for that. Whether a rewind is refused
  // depends on the family.
  static constexpr size_t Counts::*kAlways[] = {
      &Counts::appended, &Counts::cancelled, &Counts::rewinds, &Counts::forks, &Counts::aborts,
      &Counts::trims,    &Counts::loads,     &Counts::right,   &Counts::wrong};
  static void ExpectAll(const Counts& counts);

  void Step(Program& p);

  Engine& AnyModel(Program& p) { return *models_[p.Below(models_.size())]; }

  void Rewind(Program& p, Conversation& c);
  void Trim(Program& p, Conversation& c);

  void Fork(Program& p, const Conversation& c);

  void Abort(Program& p, Conversation& c);

  // Into a conversation that has a past of its own, or a new one.
  void SaveAndLoad(Program& p, const Conversation& c);

  // Tokens one by one, with drafted ones of which some are accepted.
  void Draft(Program& p, Conversation& c);

  void AppendToSome(Program& p, const Conversation& c);

  static std::mutex mutex_;
  static Counts suite_;  // of all its programs
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_RANDOM_PROGRAM_H_

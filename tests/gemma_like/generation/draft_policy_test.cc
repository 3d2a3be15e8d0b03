// How far to draft: as far as tokens have been accepted before, and not at all where that does not
// pay.
#include "gemma_like/generation/draft_policy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>

namespace inlay {
namespace {

constexpr size_t kMost = 16;

struct Counts {
  size_t drafts = 0, passes = 0, drafted = 0, accepted = 0;
};

// Draft after draft by a model that always finds its token `claimed` likely, of which `right` is
// accepted.
Counts Simulate(DraftPolicy& policy, double claimed, double right, size_t rounds) {
  std::mt19937 random(1);
  std::bernoulli_distribution accepts(right);
  Counts counts;
  for (size_t round = 0; round < rounds; ++round) {
    size_t drafted = 0;
    if (policy.Begin()) {
      ++counts.drafts;
      do {
        ++counts.passes;
        if (!policy.Add(claimed)) break;
        ++drafted;
      } while (drafted < kMost && policy.GoesOn());
    }
    size_t accepted = 0;
    while (accepted < drafted && accepts(random)) ++accepted;
    policy.Learn(accepted);
    counts.drafted += drafted;
    counts.accepted += accepted;
  }
  return counts;
}

TEST(DraftPolicyTest, DraftsFarWhereAllIsAccepted) {
  DraftPolicy policy({.pass = 0.1, .row = 0.1});
  EXPECT_GE(Simulate(policy, 0.99, 1, 50).drafted, 50 * 12u);
}

TEST(DraftPolicyTest, LearnsWhatAProbabilityIsWorth) {
  // Sure of itself and wrong half of the time: the first drafts are long, later ones short.
  DraftPolicy sure({.pass = 0.1, .row = 0.1});
  const Counts first = Simulate(sure, 0.95, 0.5, 2);
  const Counts later = Simulate(sure, 0.95, 0.5, 200);
  EXPECT_GE(first.drafted, 2 * 6u);
  EXPECT_LE(later.drafted, 200 * 3u);
  EXPECT_GE(later.drafts, 150u) << "half of the first ones are worth a draft";
  // Modest, and right: drafts become longer than its probabilities tell.
  DraftPolicy modest({.pass = 0.1, .row = 0.1});
  const Counts begun = Simulate(modest, 0.4, 1, 2);
  Simulate(modest, 0.4, 1, 100);
  const Counts learned = Simulate(modest, 0.4, 1, 100);
  EXPECT_LE(begun.drafted, 2 * 6u);
  EXPECT_GE(learned.drafted, 100 * 10u);
}

TEST(DraftPolicyTest, RestsWhereNothingIsAccepted) {
  for (const double claimed : {0.01, 0.5, 0.99}) {
    DraftPolicy policy({.pass = 0.3, .row = 0.1});
    const Counts counts = Simulate(policy, claimed, 0, 4000);
    EXPECT_LE(counts.drafts, 200u) << claimed;
    EXPECT_GE(counts.drafts, 4000 / 512u) << "and tries again";
    EXPECT_LE(static_cast<double>(counts.passes) * 0.3 + static_cast<double>(counts.drafted) * 0.1,
              0.05 * 4000)
        << claimed;
  }
}

TEST(DraftPolicyTest, ComesBackWhenTheTextChanges) {
  DraftPolicy policy({.pass = 0.3, .row = 0.1});
  Simulate(policy, 0.9, 0, 1000);
  Simulate(policy, 0.9, 1, 600);
  EXPECT_EQ(Simulate(policy, 0.9, 1, 100).drafts, 100u);
}

TEST(DraftPolicyTest, AnExpensiveDraftModelIsNotUsed) {
  DraftPolicy policy({.pass = 1, .row = 0.1});
  EXPECT_LE(Simulate(policy, 0.9, 0.9, 4000).drafts, 450u);
}

// A draft of which nothing became known counts neither way.
TEST(DraftPolicyTest, DraftsThatWereNotCheckedTeachNothing) {
  DraftPolicy policy({.pass = 0.1, .row = 0.1});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(policy.Begin());
    ASSERT_TRUE(policy.Add(0.9));
  }
  policy.Learn(1);
  EXPECT_TRUE(policy.Begin());
}

}  // namespace
}  // namespace inlay

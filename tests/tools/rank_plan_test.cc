// The arithmetic of several machines: cases computed by hand, and what must hold for any.
#include "tools/rank_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 1 GB/s and 1 Gop/s, reached in full.
constexpr PlannedMachine kMachine = {
    .read_bandwidth = 1e9, .ops = 1e9, .decode_share = 1, .prefill_share = 1, .copying = 1e30};

// 1 ms and 1 MB/s.
const PlannedNetwork kNetwork = {.name = "slow", .latency = 1e-3, .bandwidth = 1e6};

// Of a model of 10 layers, 80 MB and 8 MB of output: what each of n ranks has of it. Gathers of 400
// kB among all for a token, and of 40 kB at the first rank.
PlannedGroup Group(size_t n) {
  const double share = 1 / static_cast<double>(n);
  PlannedWork work;
  work.layers = {.bytes = 80e6 * share, .ops = 160e6 * share};
  work.output = {.bytes = 8e6 * share, .ops = 16e6 * share};
  if (n > 1) {
    work.layers.collectives = 40;
    work.layers.gathered = 400e3;
    work.output.collectives = 1;
    work.output.gathered = 40e3;
  }
  work.weights = work.layers.bytes + work.output.bytes;
  work.cache_read = 4e6 * share;
  return {.machines = n, .layers = 10, .work = work};
}

TEST(Collectives, HaveTheStepsOfBruck) {
  const std::vector<size_t> expected = {0, 1, 2, 2, 3, 3, 3, 3, 4};
  for (size_t n = 1; n <= expected.size(); ++n) EXPECT_EQ(CollectiveSteps(n), expected[n - 1]) << n;
  EXPECT_EQ(CollectiveSteps(16), 4u);
  EXPECT_EQ(CollectiveSteps(17), 5u);
}

TEST(Collectives, AreThreeMoreThanTheGathers) {
  EXPECT_EQ(SmallCollectives({.tokens = 15}, 10), 3u);
  EXPECT_EQ(SmallCollectives({.tokens = 16}, 10), 13u);
}

TEST(TimeOfPass, OfOneMachineIsItsRoofline) {
  const PlannedTime decode = TimeOfDecode(Group(1), 1, kMachine, kNetwork);
  EXPECT_DOUBLE_EQ(decode.reading, 0.092);
  EXPECT_DOUBLE_EQ(decode.computing, 0.176);
  EXPECT_EQ(decode.latency, 0);
  EXPECT_EQ(decode.transfer, 0);
  EXPECT_DOUBLE_EQ(decode.Seconds(), 0.176);
  EXPECT_EQ(decode.LargestPart(), "arithmetic");
  // Caches are read for each conversation, weights once.
  EXPECT_DOUBLE_EQ(TimeOfDecode(Group(1), 3, kMachine, kNetwork).reading, 0.1);
  EXPECT_DOUBLE_EQ(TimeOfDecode(Group(1), 3, kMachine, kNetwork).computing, 0.528);
}

TEST(TimeOfPass, ReachesTheSharesOfThePeaks) {
  PlannedMachine machine = kMachine;
  machine.decode_share = 0.5;
  machine.prefill_share = 0.25;
  const PlannedTime decode = TimeOfDecode(Group(1), 1, machine, kNetwork);
  EXPECT_DOUBLE_EQ(decode.reading, 0.184);
  EXPECT_DOUBLE_EQ(decode.computing, 0.704);
}

TEST(TimeOfPass, AddsTheCollectives) {
  const PlannedTime decode = TimeOfDecode(Group(4), 1, kMachine, kNetwork);
  EXPECT_DOUBLE_EQ(decode.reading, 0.023);
  EXPECT_DOUBLE_EQ(decode.computing, 0.044);
  // 40 gathers and 3 more of two steps each, and one to the first rank.
  EXPECT_DOUBLE_EQ(decode.latency, 0.087);
  // Three quarters of 440 kB.
  EXPECT_DOUBLE_EQ(decode.transfer, 0.33);
  EXPECT_DOUBLE_EQ(decode.Seconds(), 0.044 + 0.087 + 0.33);
  EXPECT_EQ(decode.LargestPart(), "the bytes of collectives");
}

TEST(TimeOfPass, CopiesWhatIsGatheredAtEachRank) {
  PlannedMachine machine = kMachine;
  machine.copying = 1e6;
  for (const size_t n : {2, 16})
    EXPECT_DOUBLE_EQ(TimeOfDecode(Group(n), 1, machine, kNetwork).copying, 0.4);
  EXPECT_EQ(TimeOfDecode(Group(1), 1, machine, kNetwork).copying, 0);
  machine.copying = 1e5;
  const PlannedTime slow = TimeOfDecode(Group(2), 1, machine, kNetwork);
  EXPECT_EQ(slow.LargestPart(), "copying what is gathered");
  EXPECT_DOUBLE_EQ(slow.Seconds(), 0.088 + 0.044 + 0.22 + 4);
}

TEST(TimeOfPass, OfManyConversationsHasTheCollectivesOfOne) {
  const PlannedTime one = TimeOfDecode(Group(4), 1, kMachine, kNetwork);
  const PlannedTime fifteen = TimeOfDecode(Group(4), 15, kMachine, kNetwork);
  const PlannedTime sixteen = TimeOfDecode(Group(4), 16, kMachine, kNetwork);
  EXPECT_EQ(fifteen.latency, one.latency);
  EXPECT_DOUBLE_EQ(sixteen.latency, one.latency + 10 * 2 * 1e-3);  // before each layer
  EXPECT_DOUBLE_EQ(sixteen.transfer, 16 * one.transfer);
}

// Of experts a token reads a few; many tokens read more of them, but no more than there are.
TEST(TimeOfPass, ReadsExpertsAtMostOnce) {
  PlannedGroup group = Group(1);
  group.work.cache_read = 0;
  group.work.weights = 8e6 + 200e6;
  EXPECT_DOUBLE_EQ(TimeOfDecode(group, 1, kMachine, kNetwork).reading, 0.088);
  EXPECT_DOUBLE_EQ(TimeOfDecode(group, 2, kMachine, kNetwork).reading, 0.168);
  EXPECT_DOUBLE_EQ(TimeOfDecode(group, 3, kMachine, kNetwork).reading, 0.208);
  EXPECT_DOUBLE_EQ(TimeOfDecode(group, 100, kMachine, kNetwork).reading, 0.208);
}

TEST(TimeOfPrefill, IsThatOfItsPasses) {
  const PlannedTime all = TimeOfPrefill(Group(2), 600, 512, kMachine, kNetwork);
  EXPECT_DOUBLE_EQ(all.reading, (40e6 + 44e6 + 2 * 2e6) / 1e9);
  EXPECT_DOUBLE_EQ(all.computing, (600 * 80e6 + 8e6) / 1e9);
  // Two passes of 40 gathers and 13 more; those of 5.12 MB are five, and the last has the output's.
  EXPECT_DOUBLE_EQ(all.latency, (5 * 40 + 13 + 40 + 13 + 1) * 1e-3);
  EXPECT_DOUBLE_EQ(all.transfer, (600 * 400e3 + 40e3) / 2 / 1e6);
  EXPECT_EQ(TimeOfPrefill(Group(2), 0, 512, kMachine, kNetwork).Seconds(), 0);
}

TEST(SlowestOf, HasTheMostOfEach) {
  PlannedWork first = Group(2).work, second = Group(2).work;
  first.layers.bytes += 1;
  first.weights += 1;
  second.output.ops += 2;
  second.cache_read += 3;
  const PlannedWork slowest = SlowestOf(std::vector<PlannedWork>{first, second});
  EXPECT_EQ(slowest.layers.bytes, first.layers.bytes);
  EXPECT_EQ(slowest.weights, first.weights);
  EXPECT_EQ(slowest.output.ops, second.output.ops);
  EXPECT_EQ(slowest.cache_read, second.cache_read);
  EXPECT_EQ(slowest.layers.collectives, 40u);
  EXPECT_EQ(slowest.output.gathered, 40e3);
}

std::vector<PlannedSpeed> Decode(const PlannedNetwork& network) {
  std::vector<PlannedSpeed> speeds;
  for (size_t n = 1; n <= 64; n *= 2)
    speeds.push_back({n, TimeOfDecode(Group(n), 1, kMachine, network)});
  return speeds;
}

TEST(Scaling, IsPerfectOnANetworkThatTakesNoTime) {
  const auto speeds = Decode({.name = "none", .latency = 0, .bandwidth = 1e30});
  EXPECT_EQ(FastestOf(speeds), speeds.size() - 1);
  for (const PlannedSpeed& speed : speeds) {
    EXPECT_NEAR(speed.time.Seconds() * static_cast<double>(speed.machines), 0.176, 1e-9);
  }
}

TEST(Scaling, IsNoBetterOnASlowerNetwork) {
  PlannedNetwork network = {.name = "", .latency = 1e-6, .bandwidth = 1e9};
  std::vector<PlannedSpeed> faster = Decode(network);
  for (int i = 0; i < 12; ++i) {
    (i % 2 == 0 ? network.latency : network.bandwidth) *= i % 2 == 0 ? 4 : 0.25;
    const std::vector<PlannedSpeed> slower = Decode(network);
    EXPECT_LE(FastestOf(slower), FastestOf(faster));
    EXPECT_EQ(slower.front().time.Seconds(), faster.front().time.Seconds());
    for (size_t j = 1; j < slower.size(); ++j)
      EXPECT_GT(slower[j].time.Seconds(), faster[j].time.Seconds());
    faster = slower;
  }
  EXPECT_EQ(FastestOf(faster), 0u);
}

TEST(Scaling, SaysWhereItStopsAndWhy) {
  const auto latency = Decode({.name = "", .latency = 2e-4, .bandwidth = 1e9});
  EXPECT_EQ(latency[FastestOf(latency)].machines, 16u);
  EXPECT_EQ(
      ScalingSentence("Decode", latency),
      "Decode is fastest with 16 machines, 3.8 times as fast as with one; from 4 to 8 it gains "
      "less than half of what it could: of 48.4 ms with 8, 26.0 are the latency of "
      "collectives.\n");
  EXPECT_THAT(ScalingSentence("Decode", Decode(kNetwork)),
              AllOf(HasSubstr("Decode is fastest with 1 machine; from 1 to 2"),
                    HasSubstr("of 352 ms with 2, 220 are the bytes of collectives")));
  const auto perfect = Decode({.name = "", .latency = 0, .bandwidth = 1e30});
  EXPECT_EQ(ScalingSentence("Decode", perfect),
            "Decode is fastest with 64 machines, 64.0 times as fast as with one; each step up to "
            "there gains at least half of what it could.\n");
}

TEST(Scaling, NamesWorkThatIsNotShared) {
  PlannedTime one;
  one.reading = 1;
  one.computing = 2;
  const ScalingLoss uneven = LargestLoss(
      one,
      {4, {.reading = 0.5, .computing = 0.9, .latency = 0.2, .transfer = 0.3, .copying = 0.1}});
  EXPECT_EQ(uneven.what, "work that is not shared out evenly");
  EXPECT_DOUBLE_EQ(uneven.seconds, 0.4);
  PlannedTime time;
  time.computing = 0.7;
  time.latency = 0.2;
  time.transfer = 0.3;
  EXPECT_EQ(LargestLoss(one, {4, time}).what, "the bytes of collectives");
  time.latency = 0.4;
  EXPECT_EQ(LargestLoss(one, {4, time}).what, "the latency of collectives");
  time.copying = 0.5;
  EXPECT_EQ(LargestLoss(one, {4, time}).what, "copying what is gathered");
}

TEST(Networks, HaveNames) {
  ASSERT_EQ(PublishedNetworks().size(), 3u);
  for (const PlannedNetwork& network : PublishedNetworks()) {
    const auto found = ParseNetwork(network.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->latency, network.latency);
    EXPECT_EQ(found->bandwidth, network.bandwidth);
  }
}

TEST(Networks, CanBeOnesOwn) {
  const auto network = ParseNetwork("12us,1.1GB/s");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->name, "12us,1.1GB/s");
  EXPECT_DOUBLE_EQ(network->latency, 12e-6);
  EXPECT_DOUBLE_EQ(network->bandwidth, 1.1e9);
  EXPECT_DOUBLE_EQ(ParseNetwork("1.5ms, 900 kB/s")->latency, 1.5e-3);
  EXPECT_DOUBLE_EQ(ParseNetwork("1.5ms, 900 kB/s")->bandwidth, 9e5);
  EXPECT_EQ(ParseNetwork("0ns,30MB/s")->latency, 0);
}

TEST(Networks, AreNotAnything) {
  for (const char* text :
       {"", "10gb", "12us", "12us,", ",1GB/s", "12,1.1", "us,GB/s", "-1us,1GB/s", "1us,0GB/s",
        "1us,-1GB/s", "nanus,1GB/s", "1us,infGB/s", "1us,1GB/s,1", "1s,1GB/s"}) {
    const auto network = ParseNetwork(text);
    ASSERT_FALSE(network.ok()) << text;
    EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(network.status().message()),
                AllOf(HasSubstr(text), HasSubstr("10gbe"), HasSubstr("12us,1.1GB/s")));
  }
}

}  // namespace
}  // namespace inlay

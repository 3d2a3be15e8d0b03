#include "tools/rank_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/printable.h"
#include "gemma_like/ranks/rank_pass.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {
namespace {

constexpr double kMostMessageBytes = kExchangeFloats * sizeof(float);  // of a gather

constexpr absl::string_view kLatency = "the latency of collectives";
constexpr absl::string_view kTransfer = "the bytes of collectives";
constexpr absl::string_view kCopying = "copying what is gathered";

struct NamedUnit {
  absl::string_view name;
  double size;
};
constexpr NamedUnit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}};
constexpr NamedUnit kRates[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};

// Whether the text is a finite number >= least, followed by one of the units.
bool ParseQuantity(absl::string_view text, absl::Span<const NamedUnit> units, double* value) {
  for (const NamedUnit& unit : units) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit.name)) continue;
    double x = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(number), &x)) return false;
    *value = x * unit.size;
    return std::isfinite(*value);
  }
  return false;
}

// Three digits, or all before the point.
std::string Digits(double x) { return Format("%.*f", x >= 100 ? 0 : x >= 10 ? 1 : 2, x); }

double AsDouble(size_t n) { return static_cast<double>(n); }

// Bytes of weights that a pass reads: each matrix once, but of experts only those that are chosen.
// At most all that there are, and at most what so many tokens read that choose different experts.
double WeightsRead(const PlannedWork& work, const PlannedPass& pass) {
  const double output = pass.outputs > 0 ? work.output.bytes : 0;
  const double layers = work.weights - work.output.bytes;
  return output + std::clamp(layers, work.layers.bytes, AsDouble(pass.tokens) * work.layers.bytes);
}

}  // namespace

absl::Span<const PlannedNetwork> PublishedNetworks() {
  static const auto& networks = *new std::vector<PlannedNetwork>{
      {.name = "10gbe", .latency = 20e-6, .bandwidth = 1.18e9},
      {.name = "100gbe-rdma", .latency = 2e-6, .bandwidth = 11.5e9},
      {.name = "shared-memory", .latency = 0.5e-6, .bandwidth = 8e9},
  };
  return networks;
}

absl::StatusOr<PlannedNetwork> ParseNetwork(absl::string_view text) {
  std::vector<absl::string_view> names;
  for (const PlannedNetwork& network : PublishedNetworks()) {
    if (network.name == text) return network;
    names.push_back(network.name);
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  PlannedNetwork own = {.name = std::string(text)};
  if (parts.size() != 2 || !ParseQuantity(parts[0], kTimes, &own.latency) ||
      !ParseQuantity(parts[1], kRates, &own.bandwidth) || own.latency < 0 || own.bandwidth <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        QuoteForMessage(text), " is no network: neither one of ", absl::StrJoin(names, ", "),
        " nor a latency and a bandwidth like 12us,1.1GB/s"));
  }
  return own;
}

PlannedWork SlowestOf(absl::Span<const PlannedWork> ranks) {
  PlannedWork slowest;
  const auto most = [](TokenWork& a, const TokenWork& b) {
    a = {.bytes = std::max(a.bytes, b.bytes),
         .ops = std::max(a.ops, b.ops),
         .collectives = std::max(a.collectives, b.collectives),
         .gathered = std::max(a.gathered, b.gathered)};
  };
  for (const PlannedWork& rank : ranks) {
    most(slowest.layers, rank.layers);
    most(slowest.output, rank.output);
    slowest.weights = std::max(slowest.weights, rank.weights);
    slowest.cache = std::max(slowest.cache, rank.cache);
    slowest.cache_read = std::max(slowest.cache_read, rank.cache_read);
  }
  return slowest;
}

double PlannedTime::Seconds() const {
  return std::max(reading, computing) + latency + transfer + copying;
}

absl::string_view PlannedTime::LargestPart() const {
  const std::pair<double, absl::string_view> parts[] = {{reading, "reading weights"},
                                                        {computing, "arithmetic"},
                                                        {latency, kLatency},
                                                        {transfer, kTransfer},
                                                        {copying, kCopying}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

PlannedTime& PlannedTime::operator+=(const PlannedTime& other) {
  reading += other.reading;
  computing += other.computing;
  latency += other.latency;
  transfer += other.transfer;
  copying += other.copying;
  return *this;
}

size_t CollectiveSteps(size_t machines) {
  size_t steps = 0;
  for (size_t reached = 1; reached < machines; reached *= 2) ++steps;
  return steps;
}

size_t SmallCollectives(const PlannedPass& pass, size_t layers) {
  constexpr size_t kEachPass = 3;
  return kEachPass + (pass.tokens >= Ranks::kCancelRows ? layers : 0);
}

PlannedTime TimeOfPass(const PlannedGroup& group, const PlannedPass& pass,
                       const PlannedMachine& machine, const PlannedNetwork& network) {
  const TokenWork& layers = group.work.layers;
  const TokenWork& output = group.work.output;
  const double tokens = AsDouble(pass.tokens), outputs = AsDouble(pass.outputs);
  PlannedTime time;
  time.reading =
      (WeightsRead(group.work, pass) + AsDouble(pass.conversations) * group.work.cache_read) /
      (machine.decode_share * machine.read_bandwidth);
  time.computing =
      (tokens * layers.ops + outputs * output.ops) / (machine.prefill_share * machine.ops);
  if (group.machines == 1) return time;
  const size_t to_first = pass.outputs > 0 && output.collectives > 0 ? 1 : 0;
  // Of the layers' gathers.
  const double bytes = tokens * layers.gathered;
  const double messages =
      layers.collectives == 0
          ? 0
          : AsDouble(layers.collectives) *
                std::ceil(bytes / AsDouble(layers.collectives) / kMostMessageBytes);
  const size_t others_to_all =
      SmallCollectives(pass, group.layers) + (pass.outputs > 0 ? output.collectives : 0) - to_first;
  const double others = AsDouble(group.machines - 1) / AsDouble(group.machines);
  time.latency = network.latency *
                 ((messages + AsDouble(others_to_all)) * AsDouble(CollectiveSteps(group.machines)) +
                  AsDouble(to_first));
  time.transfer = others * (bytes + outputs * output.gathered) / network.bandwidth;
  time.copying = bytes / machine.copying;
  return time;
}

PlannedTime TimeOfDecode(const PlannedGroup& group, size_t conversations,
                         const PlannedMachine& machine, const PlannedNetwork& network) {
  return TimeOfPass(
      group, {.tokens = conversations, .outputs = conversations, .conversations = conversations},
      machine, network);
}

PlannedTime TimeOfPrefill(const PlannedGroup& group, size_t tokens, size_t most,
                          const PlannedMachine& machine, const PlannedNetwork& network) {
  PlannedTime time;
  for (size_t done = 0; done < tokens;) {
    const size_t now = std::min(most, tokens - done);
    done += now;
    const PlannedPass pass = {.tokens = now, .outputs = done == tokens ? size_t{1} : 0};
    time += TimeOfPass(group, pass, machine, network);
  }
  return time;
}

size_t FastestOf(absl::Span<const PlannedSpeed> speeds) {
  size_t fastest = 0;
  for (size_t i = 1; i < speeds.size(); ++i) {
    if (speeds[i].time.Seconds() < speeds[fastest].time.Seconds()) fastest = i;
  }
  return fastest;
}

ScalingLoss LargestLoss(const PlannedTime& one_machine, const PlannedSpeed& speed) {
  const PlannedTime& time = speed.time;
  const double even =
      std::max(one_machine.reading, one_machine.computing) / AsDouble(speed.machines);
  ScalingLoss loss = {kLatency, time.latency};
  const auto compare = [&](absl::string_view what, double seconds) {
    if (seconds > loss.seconds) loss = {what, seconds};
  };
  compare(kTransfer, time.transfer);
  compare(kCopying, time.copying);
  compare("work that is not shared out evenly", std::max(time.reading, time.computing) - even);
  return loss;
}

std::string ScalingSentence(absl::string_view what, absl::Span<const PlannedSpeed> speeds) {
  const auto seconds = [&](size_t i) { return speeds[i].time.Seconds(); };
  const PlannedSpeed& fastest = speeds[FastestOf(speeds)];
  std::string sentence =
      absl::StrCat(what, " is fastest with ", Plural(fastest.machines, "machine"));
  if (fastest.machines > 1)
    AppendFormat(&sentence, ", %.1f times as fast as with one",
                 seconds(0) / fastest.time.Seconds());
  for (size_t i = 1; i < speeds.size(); ++i) {
    const size_t before = speeds[i - 1].machines, now = speeds[i].machines;
    const double could = AsDouble(now) / AsDouble(before) - 1;
    if (seconds(i - 1) / seconds(i) - 1 >= could / 2) continue;
    const ScalingLoss loss = LargestLoss(speeds.front().time, speeds[i]);
    return sentence + Format(
                          "; from %d to %d it gains less than half of what it could: of %s ms "
                          "with %d, %s are %s.\n",
                          before, now, Digits(1e3 * seconds(i)), now, Digits(1e3 * loss.seconds),
                          loss.what);
  }
  return sentence + "; each step up to there gains at least half of what it could.\n";
}

}  // namespace inlay

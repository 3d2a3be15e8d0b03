// What a model's speed would be on several machines that compute it together: an arithmetic on
// measured and published figures, no measurement.
#ifndef INLAY_TOOLS_RANK_PLAN_H_
#define INLAY_TOOLS_RANK_PLAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/token_work.h"

namespace inlay {

// Each machine of a group, with all its threads. The shares are what of the two peaks the engine
// reaches, everything included that it does beside reading weights and multiplying with them. The
// rate of copying is what one thread reached in prefill of two ranks (docs/ranks.md).
struct PlannedMachine {
  double read_bandwidth = 0;   // bytes per second
  double ops = 0;              // per second, of the dot products that the weights' type needs
  double decode_share = 0.85;  // of read_bandwidth, where reading takes longer than computing
  double prefill_share = 0.6;  // of ops, where computing does
  double copying = 3e9;        // bytes per second into and out of the messages of gathers
};

// A message of m bytes arrives after latency + m / bandwidth. A machine sends and receives at the
// same time, and no two pairs of machines share a link.
struct PlannedNetwork {
  std::string name;
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second
};

// The networks with published figures; docs/ranks.md has their sources.
absl::Span<const PlannedNetwork> PublishedNetworks();

// One of these by its name, or "12us,1.1GB/s": a latency in ns, us or ms, and a bandwidth in kB/s,
// MB/s or GB/s. InvalidArgument for anything else.
absl::StatusOr<PlannedNetwork> ParseNetwork(absl::string_view text);

// What the slowest of some ranks does: the most of each member.
PlannedWork SlowestOf(absl::Span<const PlannedWork> ranks);

// A model on a group of so many machines, one rank each.
struct PlannedGroup {
  size_t machines = 1;
  size_t layers = 0;
  PlannedWork work;  // of the slowest rank
};

// A pass of the group.
struct PlannedPass {
  size_t tokens = 1;         // of all conversations
  size_t outputs = 1;        // tokens whose logits are asked for
  size_t conversations = 1;  // each with a cache of which every token reads PlannedWork::cache_read
};

// The seconds of some passes, by what takes them. Reading and computing go on at the same time.
struct PlannedTime {
  double reading = 0;    // weights and caches
  double computing = 0;  // products with weights
  double latency = 0;    // of collectives
  double transfer = 0;   // the bytes of collectives
  double copying = 0;    // them into and out of messages

  double Seconds() const;
  // "reading weights", "arithmetic", "the latency of collectives", "the bytes of collectives" or
  // "copying what is gathered": what takes most of the time.
  absl::string_view LargestPart() const;

  PlannedTime& operator+=(const PlannedTime& other);
};

// Steps in which every rank of a group can have what each of the others had: in each it sends all
// that it has to one rank and receives as much from another (Bruck et al. 1997). The least whole
// number that is not below log2(machines).
size_t CollectiveSteps(size_t machines);

// Collectives of a pass beside the gathers of its layers and its output: what to do, whether the
// conversations fit, and whether the file is whole; and for longer passes whether to go on, before
// each layer.
size_t SmallCollectives(const PlannedPass& pass, size_t layers);

// One pass, on the roofline of the slowest machine (Williams, Waterman, Patterson 2009), plus the
// collectives, which overlap with nothing: a gather of m bytes among N ranks takes
// CollectiveSteps(N) latencies and (N - 1) / N * m / bandwidth (Thakur, Rabenseifner, Gropp 2005,
// section 4.1), and m / copying at every rank, since each has all m in the end. Of more than 1 MiB
// it is several such gathers (gemma_like/ranks/rank_pass.h); all gathers of the layers count as
// equally large here. The output's last gather is to one rank and takes one latency.
PlannedTime TimeOfPass(const PlannedGroup& group, const PlannedPass& pass,
                       const PlannedMachine& machine, const PlannedNetwork& network);

// A step of so many conversations, each with one token.
PlannedTime TimeOfDecode(const PlannedGroup& group, size_t conversations,
                         const PlannedMachine& machine, const PlannedNetwork& network);

// A prompt in passes of at most `most` tokens, of which the last gives logits.
PlannedTime TimeOfPrefill(const PlannedGroup& group, size_t tokens, size_t most,
                          const PlannedMachine& machine, const PlannedNetwork& network);

// One number of machines, with the time of one kind of work.
struct PlannedSpeed {
  size_t machines = 1;
  PlannedTime time;
};

// The index of the least time, and of these the one with the fewest machines. `speeds` is ordered
// by machines and not empty.
size_t FastestOf(absl::Span<const PlannedSpeed> speeds);

// What takes most of the time that `speed` is above an even share of one machine's: "the latency of
// collectives", "the bytes of collectives", "copying what is gathered" or "work that is not shared
// out evenly".
struct ScalingLoss {
  absl::string_view what;
  double seconds = 0;
};
ScalingLoss LargestLoss(const PlannedTime& one_machine, const PlannedSpeed& speed);

// Where `what` ("Decode") stops to scale and why, as a sentence that ends with a newline: the
// number of machines with the least time, and the first step of `speeds` that gains less than half
// of what its machines could. `speeds` as for FastestOf, of one machine and then of more.
std::string ScalingSentence(absl::string_view what, absl::Span<const PlannedSpeed> speeds);

}  // namespace inlay

#endif  // INLAY_TOOLS_RANK_PLAN_H_

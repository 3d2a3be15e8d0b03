#include "serve/scheduler/prompt_prefixes.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/steady_time.h"

namespace inlay::serve {
namespace {

// Tokens after a mark for which another snapshot does not pay.
constexpr size_t kNearMark = 32;

// Adds to the marks of a prompt of `size` tokens the places where the next is likely to part from
// it: where it parts from an earlier one itself, and before its last tokens, as many as that one
// had after the place, if these are written anew for each prompt.
void AddPlacesToPart(const PrefixCost& cost, size_t size, PromptReuse& reuse) {
  std::vector<size_t>& marks = reuse.marks;
  const bool is_new = cost.shared > cost.reused + kNearMark && cost.shared < size;
  const auto next = std::lower_bound(marks.begin(), marks.end(), cost.shared);
  const bool close = next != marks.end() && *next - cost.shared <= kNearMark;
  if (is_new && !close) marks.insert(next, cost.shared);

  // Prompts that part where many did before, as after instructions that they share, have no tail.
  if (cost.tail == 0 || !(is_new || cost.at_tail)) return;
  if (size <= cost.shared + kNearMark + cost.tail) return;
  const size_t tail_mark = size - cost.tail;
  const auto after = std::upper_bound(marks.begin(), marks.end(), tail_mark);
  if (after != marks.begin() && tail_mark - *std::prev(after) <= kNearMark) return;
  marks.insert(after, tail_mark);
  reuse.tail_mark = tail_mark;
}

}  // namespace

PromptPrefixes::PromptPrefixes(const SchedulerOptions& options, std::shared_ptr<BlockPool> pool,
                               const KVCache& empty, const MemoryBudget& memory)
    : shared_(options.shared_prefixes),
      stride_(options.snapshot_stride),
      pool_(std::move(pool)),
      empty_(empty),
      memory_(memory),
      snapshots_(pool_->limit_bytes()) {}

bool PromptPrefixes::Fetch(const Ticket& ticket, std::function<void(FetchedPrefix)> done) const {
  const AnswerRequest& request = ticket.request;
  // A prompt that is scored is computed from its first token on.
  if (shared_ == nullptr || !request.shared_owner.has_value() ||
      request.options.score_from.has_value())
    return false;
  const size_t have = snapshots_.Cost(request.prompt, request.prefix_owner).reused;
  return shared_->Fetch(request.prompt, *request.shared_owner, have, std::move(done));
}

void PromptPrefixes::TakeFetched(Ticket& ticket) {
  const FetchedPrefix fetched = std::exchange(ticket.fetched, {});
  if (fetched.bytes == nullptr) return;
  const AnswerRequest& request = ticket.request;
  // Another request may have brought or computed it meanwhile.
  const size_t have = snapshots_.Cost(request.prompt, request.prefix_owner).reused;
  if (have + 1 >= fetched.length) return;
  const size_t needed = memory_.BytesFor(fetched.length, 0);
  if (!MakeRoom(needed)) return;
  const std::unique_ptr<KVCache> cache = shared_->Load(fetched, request.prompt, empty_);
  if (cache == nullptr || !snapshots_.Insert(*cache, request.prefix_owner)) return;
  ++shared_hits_;
  shared_tokens_ += snapshots_.Cost(request.prompt, request.prefix_owner).reused - have;
}

PromptReuse PromptPrefixes::ReuseFor(Answer& answer) {
  const AnswerRequest& request = answer.ticket().request;
  PromptReuse reuse{.prefixes = &snapshots_, .stride = stride_};
  reuse.marks = request.marks;
  const PrefixCost cost = snapshots_.Cost(request.prompt, request.prefix_owner);
  answer.reusable = cost.reused;
  AddPlacesToPart(cost, request.prompt.size(), reuse);
  // A snapshot costs as much as the states that it keeps from being written over. The few tokens
  // after the last mark are not worth another, unless further answers start there.
  const bool near =
      !request.marks.empty() &&
      request.prompt.size() - std::min(request.prompt.size(), request.marks.back()) <= kNearMark;
  reuse.at_end = !near || request.choices > 1;
  reuse.owner = request.prefix_owner;
  reuse.at_snapshot = [this, &request](const KVCache& cache) { Offer(request, cache); };
  return reuse;
}

bool PromptPrefixes::MakeRoom(size_t bytes) {
  const auto there_is = [&] { return pool_->limit_bytes() - pool_->used_bytes() >= bytes; };
  while (!there_is() && DropOldest()) {
  }
  return there_is();
}

void PromptPrefixes::Keep(const AnswerRequest& request, const KVCache& conversation) {
  snapshots_.Insert(conversation, request.prefix_owner, {.prompt = request.prompt.size()});
  Offer(request, conversation);
}

void PromptPrefixes::Offer(const AnswerRequest& request, const KVCache& conversation) {
  if (shared_ == nullptr || !request.shared_owner.has_value()) return;
  shared_owners_.insert_or_assign(request.prefix_owner, *request.shared_owner);
  shared_->Offer(*request.shared_owner, conversation);
}

void PromptPrefixes::OfferAll(absl::Duration most_time) {
  if (shared_ == nullptr) return;
  const absl::Time end = SteadyNow() + most_time;
  // More would evict from the store what was offered first, which was used last.
  const uint64_t most_bytes = shared_->budget_bytes() / 2;
  // Of one conversation: its end, and the places before and after the prompt for its last answer,
  // since the next prompt may part from it there.
  constexpr ptrdiff_t kPlaces = 3;
  struct Offered {
    std::unique_ptr<KVCache> snapshot;  // a fork, which shares its memory
    int32_t owner;
  };
  std::vector<Offered> offered;
  uint64_t bytes = 0;
  snapshots_.Visit([&](const KVCache& snapshot, int32_t owner) {
    const absl::Span<const int32_t> tokens = snapshot.tokens();
    const auto goes_on = [&](const Offered& other) {
      const absl::Span<const int32_t> others = other.snapshot->tokens();
      return other.owner == owner && others.size() >= tokens.size() &&
             others.first(tokens.size()) == tokens;
    };
    if (!shared_owners_.contains(owner) || bytes + snapshot.allocated_bytes() > most_bytes ||
        std::count_if(offered.begin(), offered.end(), goes_on) >= kPlaces)
      return;
    absl::StatusOr<std::unique_ptr<KVCache>> fork = snapshot.Fork();
    if (!fork.ok()) return;
    bytes += snapshot.allocated_bytes();
    offered.push_back({*std::move(fork), owner});
  });
  for (const Offered& each : offered) {
    // One after the other, as each is copied to be stored.
    shared_->Finish(end - SteadyNow());
    if (SteadyNow() >= end) return;
    shared_->OfferLast(shared_owners_.at(each.owner), *each.snapshot);
  }
  shared_->Finish(end - SteadyNow());
}

}  // namespace inlay::serve

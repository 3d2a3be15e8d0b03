// What prompts begin with that was computed before: snapshots of this server's conversations, and
// states that servers leave for each other.
#ifndef INLAY_SERVE_SCHEDULER_PROMPT_PREFIXES_H_
#define INLAY_SERVE_SCHEDULER_PROMPT_PREFIXES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/prompt_reuse.h"
#include "serve/prefixes/shared_prefixes.h"
#include "serve/scheduler/answer.h"
#include "serve/scheduler/answer_request.h"
#include "serve/scheduler/memory_budget.h"
#include "serve/scheduler/scheduler_options.h"

namespace inlay::serve {

// Any thread may call Fetch; the scheduler's thread alone calls all others.
class PromptPrefixes {
 public:
  // Snapshots take memory of the pool, at most all of it. `empty`, a conversation of this pool, and
  // `memory` must outlive the object.
  PromptPrefixes(const SchedulerOptions& options, std::shared_ptr<BlockPool> pool,
                 const KVCache& empty, const MemoryBudget& memory);
  PromptPrefixes(const PromptPrefixes&) = delete;
  PromptPrefixes& operator=(const PromptPrefixes&) = delete;

  // Looks for a state of the ticket's prompt that another server has left. True: `done` will be
  // called with it, or with none; see SharedPrefixes::Fetch.
  bool Fetch(const Ticket& ticket, std::function<void(FetchedPrefix)> done) const;
  // Makes what Fetch has found, which is in the ticket, a snapshot.
  void TakeFetched(Ticket& ticket);

  // Where the answer's prompt may begin, and where it leaves snapshots. Sets Answer::reusable. What
  // this returns must outlive neither the answer nor this object.
  PromptReuse ReuseFor(Answer& answer);
  // Makes the conversation of an answer that has ended a snapshot: the next turn of its chat begins
  // with it.
  void Keep(const AnswerRequest& request, const KVCache& conversation);

  // Evicts the least recently used snapshot; false when there is none.
  bool DropOldest() { return snapshots_.DropOldest(); }
  // Evicts snapshots until this many bytes of the pool are free. False when they are not even then.
  bool MakeRoom(size_t bytes);

  // Leaves the conversations of which there are snapshots to other servers, or to this one after a
  // restart, and waits until they are stored, or for `most`.
  void OfferAll(absl::Duration most);

  size_t snapshots() const { return snapshots_.snapshots(); }
  size_t bytes() const { return snapshots_.bytes(); }
  // Prompts that began with a state from another server, and how many of their tokens no snapshot
  // of this server had.
  uint64_t shared_hits() const { return shared_hits_; }
  uint64_t shared_tokens() const { return shared_tokens_; }

 private:
  // Leaves a conversation of the request, of which a snapshot was stored, to other servers.
  void Offer(const AnswerRequest& request, const KVCache& conversation);

  const std::shared_ptr<SharedPrefixes> shared_;  // null: none are shared
  const size_t stride_;
  const std::shared_ptr<BlockPool> pool_;
  const KVCache& empty_;
  const MemoryBudget& memory_;
  PrefixCache snapshots_;
  // What all servers call an owner of prefixes, by its number here. None is erased: there are no
  // more than API keys have had names.
  std::unordered_map<int32_t, std::string> shared_owners_;
  uint64_t shared_hits_ = 0;
  uint64_t shared_tokens_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_PROMPT_PREFIXES_H_

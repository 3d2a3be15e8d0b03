// States of prompts that servers leave for each other, so that what one has computed no other has
// to.
#ifndef INLAY_SERVE_PREFIXES_SHARED_PREFIXES_H_
#define INLAY_SERVE_PREFIXES_SHARED_PREFIXES_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "cache/model_identity.h"
#include "io/store/snapshot_store.h"
#include "serve/prefixes/known_states.h"
#include "serve/prefixes/store_line.h"
#include "serve/prefixes/store_thread.h"

namespace inlay::serve {

struct SharedPrefixesOptions {
  SnapshotStoreOptions store;
  size_t ranks = 1;  // that have a part of each state, which only as many can use
  // A state is stored, or fetched, only where that saves at least this many tokens: computing fewer
  // would cost less. The same for all servers.
  size_t least_tokens = 256;
  // How long a request waits for a state before its prompt is computed.
  absl::Duration wait = absl::Milliseconds(100);
  absl::Duration rest = absl::Seconds(1);  // see StoreLine
  // Told when the store cannot be used, and when it can.
  std::function<void(absl::string_view sentence)> note = nullptr;
};

// Since the start.
struct SharedPrefixStats {
  bool up = false;             // now: the store can be used
  uint64_t waiting = 0;        // now: states to be stored
  uint64_t misses = 0;         // requests for which no state was there
  uint64_t late = 0;           // that did not get one in time
  uint64_t refused = 0;        // states that were damaged or another server's
  uint64_t fetched_bytes = 0;  // of states
  uint64_t stored = 0;         // states
  uint64_t stored_bytes = 0;
};

// A state as it was stored, or none.
struct FetchedPrefix {
  size_t length = 0;  // in tokens
  std::string root, name;
  std::shared_ptr<const std::string> bytes;
};

// A state is that of all servers whose fingerprint is the same and which compute for the same
// owner. No function waits for the store: what fails or takes too long costs the saving alone. Safe
// to use from several threads.
class SharedPrefixes {
 public:
  // `fingerprint`: what determines the bits of a state, the type of its rows included; `model`: see
  // KVCache::Save. The errors of OpenSnapshotStore; a store that is not reached is none.
  static absl::StatusOr<std::unique_ptr<SharedPrefixes>> Create(std::string fingerprint,
                                                                ModelIdentity model,
                                                                SharedPrefixesOptions options);
  ~SharedPrefixes();

  // Looks for the longest stored state of which `tokens` are a continuation, if that saves enough
  // beyond the `have` tokens whose state is at hand. True: `done` is called once, on another
  // thread, after options.wait at the latest; it must not throw, and the tokens must live until
  // then. False: it is not called, since nothing can be had.
  bool Fetch(absl::Span<const int32_t> tokens, absl::string_view owner, size_t have,
             std::function<void(FetchedPrefix)> done);

  // The state as a conversation that begins as `tokens` do, in the memory of `empty`'s pool. Null
  // where there is no memory, or where it is refused: then it is removed from the store.
  std::unique_ptr<KVCache> Load(const FetchedPrefix& fetched, absl::Span<const int32_t> tokens,
                                const KVCache& empty);

  // Stores the conversation's state for others, if it is worth it: it is longer by least_tokens,
  // and by a quarter, than what is stored of its beginning already. So what is written for a long
  // conversation, however many snapshots it has, is at most some five times its last state. The
  // copy is made before this returns; writing goes on without the caller.
  void Offer(absl::string_view owner, const KVCache& cache);
  // The same where nothing longer will follow: a quarter more is not asked for.
  void OfferLast(absl::string_view owner, const KVCache& cache);

  // Waits until what was offered is stored or lost, or for `most`.
  void Finish(absl::Duration most) { writes_.Finish(most); }

  SharedPrefixStats stats() const;
  // Of all states in the store.
  uint64_t budget_bytes() const { return options_.store.budget_bytes; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Search;

  SharedPrefixes(std::string fingerprint, ModelIdentity model, SharedPrefixesOptions options,
                 std::unique_ptr<SnapshotStore> reads, std::unique_ptr<SnapshotStore> writes);

  // On the thread of reads_.
  absl::Status Look(Search& search, SnapshotStore& store);
  absl::Status ReadState(const Search& search, uint64_t bytes, SnapshotStore& store,
                         FetchedPrefix& found);
  // `share`: by which share of its length the state must be longer than what is stored.
  void Offer(absl::string_view owner, const KVCache& cache, double share);
  absl::Status TryOffer(absl::string_view owner, const KVCache& cache, double share);

  const std::string fingerprint_;
  const ModelIdentity model_;
  const SharedPrefixesOptions options_;
  const uint64_t most_bytes_;  // of a state
  OutageNotes notes_;
  KnownStates known_;
  // Bytes of states that were fetched and are not loaded yet, and that wait to be stored.
  const std::shared_ptr<std::atomic<uint64_t>> held_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::atomic<uint64_t> misses_ = 0, late_ = 0, refused_ = 0, fetched_bytes_ = 0, stored_ = 0,
                        stored_bytes_ = 0;
  std::atomic<bool> stop_ = false;
  StoreThread writes_;
  StoreThread reads_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PREFIXES_SHARED_PREFIXES_H_

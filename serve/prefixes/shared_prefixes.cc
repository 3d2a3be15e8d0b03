#include "serve/prefixes/shared_prefixes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "cache/serialize.h"
#include "io/store/open_snapshot_store.h"
#include "serve/prefixes/prefix_names.h"

namespace inlay::serve {
namespace {

// One state takes at most this share of the budget, and fits into a value of Redis (512 MiB).
constexpr uint64_t kShareOfBudget = 4;
constexpr uint64_t kMostValue = uint64_t{511} << 20;
// At most kMostHeld states are in memory between this process and the store.
constexpr uint64_t kMostHeld = 4;
// While more of a conversation will follow, a state is stored if it is longer by this share.
constexpr double kLonger = 0.25;
// Only the longest kMostLengths lengths of a root are tried, kLengthsAtATime per request.
constexpr size_t kMostLengths = 4096;
constexpr size_t kLengthsAtATime = 256;

class TextSink final : public ByteSink {
 public:
  explicit TextSink(std::string& text) : text_(text) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  }

 private:
  std::string& text_;
};

// Bytes that are counted as held until nobody refers to them.
std::shared_ptr<const std::string> Hold(std::string text,
                                        const std::shared_ptr<std::atomic<uint64_t>>& held) {
  auto bytes = std::make_unique<const std::string>(std::move(text));
  *held += bytes->size();
  return std::shared_ptr<const std::string>(bytes.release(), [held](const std::string* gone) {
    *held -= gone->size();
    delete gone;
  });
}

}  // namespace

// One request's search.
struct SharedPrefixes::Search {
  absl::Span<const int32_t> tokens;
  std::string owner;
  size_t have = 0;
  Clock::time_point deadline;
  std::function<void(FetchedPrefix)> done;
  FetchedPrefix found;

  absl::Duration left() const { return absl::FromChrono(deadline - Clock::now()); }
};

absl::StatusOr<std::unique_ptr<SharedPrefixes>> SharedPrefixes::Create(
    std::string fingerprint, ModelIdentity model, SharedPrefixesOptions options) {
  // What cannot be written may still be read.
  SnapshotStoreOptions read_only = options.store;
  read_only.writes = false;
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<SnapshotStore> reads,
                         OpenSnapshotStore(std::move(read_only)));
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<SnapshotStore> writes, OpenSnapshotStore(options.store));
  return OrOutOfMemory("shared prefixes", [&]() -> absl::StatusOr<std::unique_ptr<SharedPrefixes>> {
    return std::unique_ptr<SharedPrefixes>(new SharedPrefixes(std::move(fingerprint),
                                                              std::move(model), std::move(options),
                                                              std::move(reads), std::move(writes)));
  });
}

SharedPrefixes::SharedPrefixes(std::string fingerprint, ModelIdentity model,
                               SharedPrefixesOptions options, std::unique_ptr<SnapshotStore> reads,
                               std::unique_ptr<SnapshotStore> writes)
    : fingerprint_(absl::StrCat(fingerprint, "/", kSavedVersion,
                                options.ranks == 1 ? "" : absl::StrCat("/", options.ranks))),
      model_(std::move(model)),
      options_(std::move(options)),
      most_bytes_(std::min(kMostValue, options_.store.budget_bytes / kShareOfBudget)),
      notes_(options_.note),
      known_(options_.store.expiry / 2),
      writes_(std::move(writes), StoreUse::kWrites, options_.rest, notes_,
              [this] { known_.Clear(); }),
      reads_(std::move(reads), StoreUse::kReads, options_.rest, notes_,
             [this] { known_.Clear(); }) {}

SharedPrefixes::~SharedPrefixes() { stop_ = true; }

bool SharedPrefixes::Fetch(absl::Span<const int32_t> tokens, absl::string_view owner, size_t have,
                           std::function<void(FetchedPrefix)> done) {
  // The last token is computed in any case.
  if (tokens.size() <= have + options_.least_tokens) return false;
  if (!reads_.ready() || *held_ > kMostHeld * most_bytes_) return false;
  const absl::Status added = OrOutOfMemory("a search", [&] {
    const auto search = std::make_shared<Search>();
    search->tokens = tokens;
    search->owner = std::string(owner);
    search->have = have;
    search->deadline = Clock::now() + absl::ToChronoNanoseconds(options_.wait);
    search->done = std::move(done);
    const bool taken =
        reads_.Add({.run = [this, search](SnapshotStore& store) { return Look(*search, store); },
                    .end = [search] { search->done(std::move(search->found)); }});
    return taken ? absl::OkStatus() : absl::UnavailableError("");
  });
  return added.ok();
}

absl::Status SharedPrefixes::Look(Search& search, SnapshotStore& store) {
  if (search.left() <= absl::ZeroDuration()) {
    ++late_;
    return absl::OkStatus();
  }
  const PrefixNames names(fingerprint_, search.owner, options_.least_tokens);
  FetchedPrefix found{.root = names.Root(search.tokens), .name = {}, .bytes = nullptr};
  INLAY_ASSIGN_OR_RETURN(std::vector<size_t> lengths, store.Lengths(found.root, search.left()));
  std::erase_if(lengths, [&](size_t length) {
    return length < search.have + options_.least_tokens || length > search.tokens.size();
  });
  std::sort(lengths.begin(), lengths.end());
  if (lengths.size() > kMostLengths) lengths.erase(lengths.begin(), lengths.end() - kMostLengths);
  std::vector<std::string> states = names.States(search.tokens, lengths);
  std::reverse(lengths.begin(), lengths.end());
  std::reverse(states.begin(), states.end());
  std::optional<SnapshotStore::Found> there;
  // Most lengths of a root that many conversations share are those of others, and may be longer
  // than all that this one has in common with any.
  for (size_t at = 0; at < states.size() && !there.has_value(); at += kLengthsAtATime) {
    if (at > 0 && search.left() <= absl::ZeroDuration()) {
      ++late_;
      return absl::OkStatus();
    }
    const auto some = absl::MakeConstSpan(states).subspan(at, kLengthsAtATime);
    INLAY_ASSIGN_OR_RETURN(there, store.Find(found.root, some, search.left()));
    if (there.has_value()) there->index += at;
  }
  if (!there.has_value() || there->bytes > most_bytes_) {
    ++misses_;
    return absl::OkStatus();
  }
  found.length = lengths[there->index];
  found.name = states[there->index];
  INLAY_RETURN_IF_ERROR(ReadState(search, there->bytes, store, found));
  if (found.bytes == nullptr) return absl::OkStatus();
  known_.Add(found.root, found.length, found.name);
  search.found = std::move(found);
  return absl::OkStatus();
}

absl::Status SharedPrefixes::ReadState(const Search& search, uint64_t bytes, SnapshotStore& store,
                                       FetchedPrefix& found) {
  std::string value;
  value.reserve(bytes);
  const absl::Duration time = search.left();
  while (value.size() < bytes) {
    const absl::Duration left = search.left();
    // What will not be there in time is given up at once, so that others need not wait for it.
    const double taken = absl::FDivDuration(time - left, time);
    if (taken * static_cast<double>(bytes) > static_cast<double>(value.size()) && taken > 0.1) {
      ++late_;
      return absl::OkStatus();
    }
    const size_t size = std::min<uint64_t>(SnapshotStore::kPieceBytes, bytes - value.size());
    const absl::StatusOr<bool> read = store.Read(found.name, value.size(), size, left, value);
    if (absl::IsDeadlineExceeded(read.status())) ++late_;
    INLAY_RETURN_IF_ERROR(read.status());
    if (!*read) {
      ++misses_;  // it was evicted meanwhile
      return absl::OkStatus();
    }
  }
  fetched_bytes_ += bytes;
  found.bytes = Hold(std::move(value), held_);
  return absl::OkStatus();
}

std::unique_ptr<KVCache> SharedPrefixes::Load(const FetchedPrefix& fetched,
                                              absl::Span<const int32_t> tokens,
                                              const KVCache& empty) {
  absl::StatusOr<std::unique_ptr<KVCache>> cache = empty.Fork();
  if (!cache.ok()) return nullptr;
  MemorySource source(
      {reinterpret_cast<const uint8_t*>(fetched.bytes->data()), fetched.bytes->size()});
  const absl::StatusOr<LoadOutcome> loaded = (*cache)->Load(model_, source);
  if (absl::IsResourceExhausted(loaded.status())) return nullptr;
  // Names are hashes: only the tokens themselves say whose state it is.
  const bool same = loaded.ok() && loaded->difference.empty() &&
                    (*cache)->tokens() == tokens.first(std::min(fetched.length, tokens.size()));
  if (same) return *std::move(cache);
  ++refused_;
  known_.Remove(fetched.root, fetched.length, fetched.name);
  (void)OrOutOfMemory("a job", [&] {
    writes_.Add({.run = [name = fetched.name](SnapshotStore& store) { return store.Remove(name); },
                 .end = [] {}});
    return absl::OkStatus();
  });
  return nullptr;
}

void SharedPrefixes::Offer(absl::string_view owner, const KVCache& cache) {
  Offer(owner, cache, kLonger);
}

void SharedPrefixes::OfferLast(absl::string_view owner, const KVCache& cache) {
  Offer(owner, cache, 0);
}

void SharedPrefixes::Offer(absl::string_view owner, const KVCache& cache, double share) {
  const size_t length = cache.length();
  if (length < options_.least_tokens || !writes_.ready() || *held_ > kMostHeld * most_bytes_)
    return;
  (void)OrOutOfMemory("a snapshot for others", [&] { return TryOffer(owner, cache, share); });
}

absl::Status SharedPrefixes::TryOffer(absl::string_view owner, const KVCache& cache, double share) {
  const size_t length = cache.length();
  const PrefixNames names(fingerprint_, owner, options_.least_tokens);
  const std::string root = names.Root(cache.tokens());
  std::vector<size_t> lengths = known_.Lengths(root, length);
  if (lengths.empty() || lengths.back() < length) lengths.push_back(length);
  const std::vector<std::string> states = names.States(cache.tokens(), lengths);
  size_t stored = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (known_.Has(root, lengths[i], states[i])) stored = lengths[i];
  }
  const auto longer = static_cast<size_t>(share * static_cast<double>(length));
  if (length - stored < std::max(options_.least_tokens, longer)) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> snapshot, cache.Fork());
  // Whose prompt ends here as well computes its last token again.
  INLAY_RETURN_IF_ERROR(snapshot->Trim(1));
  if (snapshot->allocated_bytes() * options_.ranks > most_bytes_) return absl::OkStatus();
  std::string bytes;
  TextSink sink(bytes);
  INLAY_RETURN_IF_ERROR(snapshot->Save(model_, sink));
  const auto held = Hold(std::move(bytes), held_);
  // Before the job is queued: the job may end at once, and forgets what it could not store.
  known_.Add(root, length, states.back());
  absl::Cleanup not_taken = [&] { known_.Remove(root, length, states.back()); };
  const bool taken =
      writes_.Add({.run = [this, root, length, name = states.back(),
                           held](SnapshotStore& store) -> absl::Status {
                     INLAY_ASSIGN_OR_RETURN(
                         const bool there,
                         store.Write(root, name, length, *held, [this] { return stop_.load(); }));
                     if (there) {
                       ++stored_;
                       stored_bytes_ += held->size();
                     } else {
                       known_.Remove(root, length, name);
                     }
                     return absl::OkStatus();
                   },
                   .end = [] {}});
  if (taken) std::move(not_taken).Cancel();
  return absl::OkStatus();
}

SharedPrefixStats SharedPrefixes::stats() const {
  return {.up = reads_.ready() && writes_.ready() && notes_.down() == 0,
          .waiting = writes_.waiting(),
          .misses = misses_,
          .late = late_,
          .refused = refused_,
          .fetched_bytes = fetched_bytes_,
          .stored = stored_,
          .stored_bytes = stored_bytes_};
}

}  // namespace inlay::serve

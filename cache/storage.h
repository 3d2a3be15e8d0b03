// The interface of a layer's cache storage, and several storages as one.
#ifndef INLAY_CACHE_STORAGE_H_
#define INLAY_CACHE_STORAGE_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cache/block_pool.h"
#include "cache/serialize.h"

namespace inlay {

using BlockVisitor = absl::FunctionRef<void(const void* block, size_t bytes)>;

// The cached rows and states of one sequence in one layer, whose length the cache passes in.
// Copying shares all blocks; a shared block is copied before it is written. All of these are called
// by HybridCache, which keeps the layers consistent:
//   Prepare(pool, length, count)  makes the positions [length, length + count) writable.
//       ResourceExhausted when the pool has no block; the caller then calls Abort. Rows below
//       `length` are unchanged in either case.
//   Commit(length)     publishes what was written since Prepare: the sequence now has this length.
//   Abort(length)      discards it: the sequence still has this length. Also called after a
//       Prepare that failed, or without one.
//   Truncate(length)   rewinds to a length that is not below RewindFloor(), or to 0.
//   Trim(pool, length, rewind)  gives back what only a rewind by more than `rewind` tokens needs,
//       which may raise RewindFloor(). Memory for a smaller copy may be lacking: the floor is the
//       same then, so that the ranks of a model agree on it.
//   RewindFloor()      the lowest length but 0 that can be rewound to exactly: tokens that are
//       appended after it give the same bits as if the dropped ones had never been there.
//   Save(writer, length, rewind)        writes the rows that tokens from length - rewind on need,
//       as far as they are kept.
//   Load(reader, pool, length, rewind)  replaces the contents by what Save wrote at this length. On
//       error nothing has changed: ResourceExhausted when the pool has no block, DataLoss when the
//       saved sizes or positions are impossible.
//   VisitBlocks(visit)  visit(block, bytes) for each block held, shared ones included.
template <class S>
concept Storage = std::copyable<S> &&
    requires(S s, const S c, BlockPool& pool, SectionWriter& writer, SectionReader& reader,
             size_t n, BlockVisitor visit) {
  { s.Prepare(pool, n, n) } -> std::same_as<absl::Status>;
  { s.Commit(n) } -> std::same_as<void>;
  { s.Abort(n) } -> std::same_as<void>;
  { s.Truncate(n) } -> std::same_as<void>;
  { s.Trim(pool, n, n) } -> std::same_as<void>;
  { c.RewindFloor() } -> std::same_as<size_t>;
  { c.Save(writer, n, n) } -> std::same_as<absl::Status>;
  { s.Load(reader, pool, n, n) } -> std::same_as<absl::Status>;
  { c.VisitBlocks(visit) } -> std::same_as<void>;
};

// Several storages of the same sequence that prepare, commit and truncate together. A Load that
// fails may have replaced some of them, unlike the Load of a single storage.
template <Storage... S>
class StorageTuple {
 public:
  StorageTuple() = default;
  explicit StorageTuple(S... storages) requires(sizeof...(S) > 0)
      : storages_(std::move(storages)...) {}

  template <size_t i>
  auto& Get() {
    return std::get<i>(storages_);
  }
  template <size_t i>
  const auto& Get() const {
    return std::get<i>(storages_);
  }

  absl::Status Prepare(BlockPool& pool, size_t length, size_t count) {
    return UntilError(storages_,
                      [&](auto& storage) { return storage.Prepare(pool, length, count); });
  }
  void Commit(size_t length) {
    ForEach(storages_, [&](auto& storage) { storage.Commit(length); });
  }
  void Abort(size_t length) {
    ForEach(storages_, [&](auto& storage) { storage.Abort(length); });
  }
  void Truncate(size_t length) {
    ForEach(storages_, [&](auto& storage) { storage.Truncate(length); });
  }
  void Trim(BlockPool& pool, size_t length, size_t rewind) {
    ForEach(storages_, [&](auto& storage) { storage.Trim(pool, length, rewind); });
  }
  size_t RewindFloor() const {
    size_t floor = 0;
    ForEach(storages_,
            [&](const auto& storage) { floor = std::max(floor, storage.RewindFloor()); });
    return floor;
  }
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const {
    return UntilError(storages_,
                      [&](const auto& storage) { return storage.Save(writer, length, rewind); });
  }
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind) {
    return UntilError(storages_,
                      [&](auto& storage) { return storage.Load(reader, pool, length, rewind); });
  }
  void VisitBlocks(BlockVisitor visit) const {
    ForEach(storages_, [&](const auto& storage) { storage.VisitBlocks(visit); });
  }

 private:
  template <class Tuple, class F>
  static void ForEach(Tuple& storages, F f) {
    std::apply([&](auto&... storage) { (f(storage), ...); }, storages);
  }
  template <class Tuple, class F>
  static absl::Status UntilError(Tuple& storages, F f) {
    absl::Status status;
    ForEach(storages, [&](auto& storage) {
      if (status.ok()) status = f(storage);
    });
    return status;
  }

  std::tuple<S...> storages_;
};

// The storage that a kind of mixer needs: its cache half. Each kind's header in cache/layers
// specialises it with
//   using Type = ...;                                     a Storage; StorageTuple<> for none
//   template <class Policy> static Type Make(RankShare);  of an empty sequence, for one rank
//   template <class Policy> static constexpr CacheBytes Bytes(RankShare);
//   template <class Policy> static constexpr size_t BytesRead(size_t length, RankShare);
//                           read by the token at position `length`
template <class Mixer>
struct MixerStorage;

}  // namespace inlay

#endif  // INLAY_CACHE_STORAGE_H_

// What every storage of a layer's past can do, and several storages as one.
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

// The past of one sequence in one layer, up to a length that the cache tells. Copying shares all
// blocks; whoever writes to a shared one first makes its own copy. All of these are called by
// HybridCache, which keeps the layers coherent:
//   Prepare(pool, length, count)  makes the positions [length, length + count) writable.
//       ResourceExhausted when the pool has no block; Abort follows then. What is stored below
//       `length` is unchanged in either case.
//   Commit(length)     publishes what was written since Prepare: the sequence now has this length.
//   Abort(length)      drops it: the sequence still has this length. Also after a Prepare that
//       failed, or that was not called.
//   Truncate(length)   goes back to a length that is not below RewindFloor().
//   RewindFloor()      the lowest length from which what follows has the same bits as if the tokens
//       after it had never been there.
//   Save(writer, length, rewind)        writes what tokens from length - rewind on need, as far as
//       it is kept.
//   Load(reader, pool, length, rewind)  replaces everything by what Save wrote at this length. On
//       error nothing has changed: ResourceExhausted when the pool has no block, DataLoss when what
//       is read is impossible.
//   VisitBlocks(visit)  visit(block, bytes) for each block held, shared ones included.
template <class S>
concept Storage = std::copyable<S> &&
    requires(S s, const S c, BlockPool& pool, SectionWriter& writer, SectionReader& reader,
             size_t n, BlockVisitor visit) {
  { s.Prepare(pool, n, n) } -> std::same_as<absl::Status>;
  { s.Commit(n) } -> std::same_as<void>;
  { s.Abort(n) } -> std::same_as<void>;
  { s.Truncate(n) } -> std::same_as<void>;
  { c.RewindFloor() } -> std::same_as<size_t>;
  { c.Save(writer, n, n) } -> std::same_as<absl::Status>;
  { s.Load(reader, pool, n, n) } -> std::same_as<absl::Status>;
  { c.VisitBlocks(visit) } -> std::same_as<void>;
};

// Several storages of the same sequence that prepare, publish and go back together. Load may leave
// some replaced and some not when it fails, unlike that of its parts.
template <Storage... S>
class StorageTuple {
 public:
  StorageTuple() = default;
  explicit StorageTuple(S... parts) requires(sizeof...(S) > 0) : parts_(std::move(parts)...) {}

  template <size_t i>
  auto& Get() {
    return std::get<i>(parts_);
  }
  template <size_t i>
  const auto& Get() const {
    return std::get<i>(parts_);
  }

  absl::Status Prepare(BlockPool& pool, size_t length, size_t count) {
    return UntilError(parts_, [&](auto& part) { return part.Prepare(pool, length, count); });
  }
  void Commit(size_t length) {
    ForEach(parts_, [&](auto& part) { part.Commit(length); });
  }
  void Abort(size_t length) {
    ForEach(parts_, [&](auto& part) { part.Abort(length); });
  }
  void Truncate(size_t length) {
    ForEach(parts_, [&](auto& part) { part.Truncate(length); });
  }
  size_t RewindFloor() const {
    size_t floor = 0;
    ForEach(parts_, [&](const auto& part) { floor = std::max(floor, part.RewindFloor()); });
    return floor;
  }
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const {
    return UntilError(parts_, [&](const auto& part) { return part.Save(writer, length, rewind); });
  }
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind) {
    return UntilError(parts_, [&](auto& part) { return part.Load(reader, pool, length, rewind); });
  }
  void VisitBlocks(BlockVisitor visit) const {
    ForEach(parts_, [&](const auto& part) { part.VisitBlocks(visit); });
  }

 private:
  template <class Tuple, class F>
  static void ForEach(Tuple& parts, F f) {
    std::apply([&](auto&... part) { (f(part), ...); }, parts);
  }
  template <class Tuple, class F>
  static absl::Status UntilError(Tuple& parts, F f) {
    absl::Status status;
    ForEach(parts, [&](auto& part) {
      if (status.ok()) status = f(part);
    });
    return status;
  }

  std::tuple<S...> parts_;
};

// The storage that a kind of mixer needs: its cache half. Each kind's header in cache/layers
// specialises it with
//   using Type = ...;                                     a Storage; StorageTuple<> for none
//   template <class Policy> static Type Make();           of an empty sequence
//   template <class Policy> static constexpr CacheBytes Bytes();
//   template <class Policy> static constexpr size_t BytesRead(size_t length);
//                           read for the token after `length` others
template <class Mixer>
struct MixerStorage;

}  // namespace inlay

#endif  // INLAY_CACHE_STORAGE_H_

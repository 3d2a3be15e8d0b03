// Ranks that are threads of one process.
#ifndef INLAY_TESTS_GEMMA_LIKE_RANKS_THREAD_RANKS_H_
#define INLAY_TESTS_GEMMA_LIKE_RANKS_THREAD_RANKS_H_

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gemma_like/ranks/rank_load.h"
#include "gemma_like/ranks/rank_worker.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// What the ranks of a group share.
struct ThreadGroup {
  // What a rank has called, with its buffer.
  struct Call {
    std::string what;
    char* bytes = nullptr;
    std::vector<size_t> sizes;
  };

  explicit ThreadGroup(size_t count)
      : calls(count), begin(static_cast<ptrdiff_t>(count)), end(static_cast<ptrdiff_t>(count)) {}

  std::vector<Call> calls;
  std::barrier<> begin;  // all have called
  std::barrier<> end;    // all have read what they need
  size_t collectives = 0;
  size_t bytes = 0;  // that the first rank has received
};

// Ends the process when ranks do not make the same calls.
class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(std::shared_ptr<ThreadGroup> group, size_t rank)
      // Every pass can be cancelled before every layer, and what is saved has many pieces.
      : Ranks(rank, group->calls.size(), 1, 16 << 10), group_(std::move(group)) {}

  void Broadcast(absl::Span<char> bytes, Deadline) override {
    Exchange({"broadcast", bytes.data(), {bytes.size()}}, [&] {
      if (rank() != 0) std::memcpy(bytes.data(), group_->calls[0].bytes, bytes.size());
    });
  }
  void Gather(absl::Span<const size_t> sizes, char* all, Deadline) override {
    Exchange({"gather", all, {sizes.begin(), sizes.end()}}, [&] { Collect(sizes, all); });
  }
  void GatherToFirst(absl::Span<const size_t> sizes, char* all, Deadline) override {
    Exchange({"gather to first", all, {sizes.begin(), sizes.end()}}, [&] {
      if (rank() == 0) Collect(sizes, all);
    });
  }

 private:
  void End(absl::string_view sentence) override {
    std::fprintf(stderr, "rank %zu: %s\n", rank(), std::string(sentence).c_str());
  }

  template <class Read>
  void Exchange(ThreadGroup::Call call, const Read& read) {
    std::vector<ThreadGroup::Call>& calls = group_->calls;
    calls[rank()] = std::move(call);
    group_->begin.arrive_and_wait();
    if (calls[rank()].what != calls[0].what || calls[rank()].sizes != calls[0].sizes) {
      Fail(calls[rank()].what + " while the first rank has a " + calls[0].what +
           ", or other sizes");
    }
    read();
    if (rank() == 0) ++group_->collectives;
    group_->end.arrive_and_wait();
  }

  void Collect(absl::Span<const size_t> sizes, char* all) {
    size_t at = 0;
    for (size_t r = 0; r < sizes.size(); ++r) {
      if (r != rank()) {
        std::memcpy(all + at, group_->calls[r].bytes + at, sizes[r]);
        if (rank() == 0) group_->bytes += sizes[r];
      }
      at += sizes[r];
    }
  }

  const std::shared_ptr<ThreadGroup> group_;
};

// A group whose ranks after the first serve in threads, until its RankLeader is destroyed.
class ServedThreadRanks {
 public:
  ServedThreadRanks(size_t count, const ModelLoader& load)
      : group_(std::make_shared<ThreadGroup>(count)) {
    for (size_t r = 1; r < count; ++r) {
      threads_.emplace_back(
          [group = group_, r, load] { ServeRank(std::make_shared<ThreadRanks>(group, r), load); });
    }
  }
  ~ServedThreadRanks() {
    for (std::thread& thread : threads_) thread.join();
  }

  std::shared_ptr<Ranks> First() const { return std::make_shared<ThreadRanks>(group_, 0); }
  // Of what the first rank has received.
  const ThreadGroup& group() const { return *group_; }

 private:
  const std::shared_ptr<ThreadGroup> group_;
  std::vector<std::thread> threads_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_RANKS_THREAD_RANKS_H_

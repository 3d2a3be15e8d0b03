#include "tools/ranks/mpi_ranks.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

using std::chrono::steady_clock;

size_t WorldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return static_cast<size_t>(rank);
}

size_t WorldSize() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return static_cast<size_t>(size);
}

int64_t Nanoseconds(steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

int64_t Now() { return Nanoseconds(steady_clock::now().time_since_epoch()); }

// Holds the time at which a collective is due while it runs.
class Due {
 public:
  Due(std::atomic<int64_t>& due, int64_t at) : due_(due) { due_.store(at); }
  ~Due() { due_.store(0); }

 private:
  std::atomic<int64_t>& due_;
};

}  // namespace

MpiRanks::MpiRanks(std::chrono::milliseconds deadline)
    : Ranks(WorldRank(), WorldSize()),
      deadline_(deadline),
      counts_(count()),
      offsets_(count()),
      watch_([this] { Watch(); }) {}

MpiRanks::~MpiRanks() {
  stop_.store(true);
  watch_.join();
}

int64_t MpiRanks::DueTime() const { return Now() + Nanoseconds(deadline_); }

void MpiRanks::Watch() {
  while (!stop_.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int64_t due = due_.load();
    if (due == 0 || Now() < due) continue;
    // MPI can only be called by the thread that waits; that this process ends ends the others.
    const std::string sentence = absl::StrCat(
        "inlay-mpi: rank ", rank(), " of ", count(), " waited ", deadline_.count(),
        " ms for the other ranks, longer than INLAY_RANK_DEADLINE allows: one of them hangs, or is "
        "slow\n");
    [[maybe_unused]] const ssize_t written = write(2, sentence.data(), sentence.size());
    _exit(1);
  }
}

// At first without pause, as the next token follows the last one soon, then with pauses, so that a
// group without work leaves its cores to others.
void MpiRanks::Await(MPI_Request request, Deadline deadline) {
  constexpr auto kBusy = std::chrono::milliseconds(2);
  constexpr auto kLongestPause = std::chrono::milliseconds(1);
  std::optional<Due> due;
  if (deadline == Deadline::kPassAtFirst && rank() == 0) due.emplace(due_, DueTime());
  const steady_clock::time_point start = steady_clock::now();
  auto pause = std::chrono::microseconds(20);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (steady_clock::now() - start < kBusy) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, kLongestPause);
  }
}

void MpiRanks::Broadcast(absl::Span<char> bytes, Deadline deadline) {
  constexpr size_t kMost = size_t{1} << 30;  // MPI counts with int
  for (size_t at = 0; at < bytes.size(); at += kMost) {
    const int size = static_cast<int>(std::min(kMost, bytes.size() - at));
    if (deadline != Deadline::kPass) {
      MPI_Request request;
      MPI_Ibcast(bytes.data() + at, size, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
      Await(request, deadline);
    } else {
      const Due due(due_, DueTime());
      MPI_Bcast(bytes.data() + at, size, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
  }
}

void MpiRanks::LayOut(absl::Span<const size_t> sizes) {
  size_t at = 0;
  for (size_t r = 0; r < sizes.size(); ++r) {
    counts_[r] = static_cast<int>(sizes[r]);
    offsets_[r] = static_cast<int>(at);
    at += sizes[r];
  }
  if (at > static_cast<size_t>(std::numeric_limits<int>::max())) {
    Fail(absl::StrCat("a gather of ", at, " bytes is more than MPI can count"));
  }
}

void MpiRanks::Gather(absl::Span<const size_t> sizes, char* all, Deadline deadline) {
  LayOut(sizes);
  if (deadline != Deadline::kPass) {
    MPI_Request request;
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts_.data(), offsets_.data(),
                    MPI_BYTE, MPI_COMM_WORLD, &request);
    return Await(request, deadline);
  }
  const Due due(due_, DueTime());
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts_.data(), offsets_.data(), MPI_BYTE,
                 MPI_COMM_WORLD);
}

void MpiRanks::GatherToFirst(absl::Span<const size_t> sizes, char* all, Deadline deadline) {
  LayOut(sizes);
  const bool is_first = rank() == 0;
  const void* const own = is_first ? MPI_IN_PLACE : all + offsets_[rank()];
  const int own_size = is_first ? 0 : counts_[rank()];
  if (deadline != Deadline::kPass) {
    MPI_Request request;
    MPI_Igatherv(own, own_size, MPI_BYTE, all, counts_.data(), offsets_.data(), MPI_BYTE, 0,
                 MPI_COMM_WORLD, &request);
    return Await(request, deadline);
  }
  const Due due(due_, DueTime());
  MPI_Gatherv(own, own_size, MPI_BYTE, all, counts_.data(), offsets_.data(), MPI_BYTE, 0,
              MPI_COMM_WORLD);
}

void MpiRanks::End(absl::string_view sentence) {
  std::fprintf(stderr, "inlay-mpi: rank %zu of %zu: %s\n", rank(), count(),
               std::string(sentence).c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace inlay

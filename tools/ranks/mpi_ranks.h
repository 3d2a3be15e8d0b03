// Ranks that are the processes of an MPI program.
#ifndef INLAY_TOOLS_RANKS_MPI_RANKS_H_
#define INLAY_TOOLS_RANKS_MPI_RANKS_H_

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "gemma_like/ranks/ranks.h"

namespace inlay {

// Those of MPI_COMM_WORLD. MPI is initialised with MPI_THREAD_SERIALIZED, before, and finalised
// after. Collectives of a pass are MPI's blocking ones, which are its fastest; a thread of each
// rank ends the process when one takes longer than `deadline`.
class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(std::chrono::milliseconds deadline);
  ~MpiRanks() override;

  void Broadcast(absl::Span<char> bytes, Deadline deadline) override;
  void Gather(absl::Span<const size_t> sizes, char* all, Deadline deadline) override;
  void GatherToFirst(absl::Span<const size_t> sizes, char* all, Deadline deadline) override;

 private:
  void End(absl::string_view sentence) override;

  // Waits for a collective that the other ranks may begin at any time, or at this one by
  // `deadline`.
  void Await(MPI_Request request, Deadline deadline);
  // Sets the counts and offsets of a gather.
  void LayOut(absl::Span<const size_t> sizes);
  int64_t DueTime() const;
  void Watch();

  const std::chrono::milliseconds deadline_;
  std::vector<int> counts_;
  std::vector<int> offsets_;
  // When the collective that this rank is in must have ended, on the steady clock, in nanoseconds;
  // 0 if it is in none.
  std::atomic<int64_t> due_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread watch_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_RANKS_MPI_RANKS_H_

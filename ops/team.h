// The threads that compute a forward pass together.
#ifndef INLAY_OPS_TEAM_H_
#define INLAY_OPS_TEAM_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "ops/cpu/float_environment.h"

namespace inlay {

// A thread's share of a phase: units [begin, end), computed by thread number `thread` of the team.
// Scratch memory indexed by this number is used by one thread at a time.
struct Share {
  size_t begin;
  size_t end;
  size_t thread;
};

// Memory that a thread will read soon.
struct MemoryAhead {
  const void* data = nullptr;
  size_t bytes = 0;
};

// Tells what a later phase reads first: Head returns it for range number `range` of `ranges` equal
// ranges of its units.
class PhaseAhead {
 public:
  virtual MemoryAhead Head(size_t range, size_t ranges) const = 0;

 protected:
  ~PhaseAhead() = default;
};

// A fixed set of threads, the caller among them. A forward pass is one region, and its ops are
// phases of it: Run distributes a phase's units and returns when all are computed. Ops only split
// work that is independent per output, so results depend neither on the number of threads nor
// on which of them computes what.
//
// Each thread has a range of a phase, the same one for the same phase, and claims bounded chunks of
// it in order; a thread whose range is empty steals chunks from the end of the others' ranges. So a
// thread that sleeps or waits for a processor delays nothing unless it is inside a chunk. A thread
// that is late with a chunk, because other programs use the processor too, gets no range for a
// while, and for longer each time that this happens again: waiting for it costs more than its help
// is worth.
//
// The threads block signals (ops/signals_blocked.h). A process that is forked from one with teams
// has none of their threads: there a team runs everything on the calling thread, also where another
// thread had a region when the process was forked.
class Team {
 public:
  // `threads` >= 1; 1 means that everything runs on the calling thread. Throws std::system_error
  // if the system cannot start a thread.
  explicit Team(size_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t threads() const { return threads_; }
  // How many of them have a range in the next phase: the others have been late.
  size_t active() const;

  // The use of a team by one caller; other callers wait until it ends. Results depend on the
  // floating-point environment, so a region sets the default one.
  class Region {
   public:
    explicit Region(Team& team);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

   private:
    Team& team_;
    std::lock_guard<std::mutex> lock_;
    FloatEnvironment environment_;
  };

  // Runs a phase: calls work(Share) for shares that together cover [0, units), each of `chunk` >= 1
  // units (the last one of fewer) or, where one thread computes all of them, of any number. If a
  // call throws, Run throws the same when all calls have ended. While threads wait for the end of
  // the phase and for the phases after it, they prefetch what they read first in the phase `ahead`.
  template <class Work>
  void Run(size_t units, size_t chunk, const Work& work, const PhaseAhead* ahead = nullptr) {
    RunPhase(
        {.units = units,
         .chunk = chunk,
         .work = &work,
         .call = [](const void* w, const Share& share) { (*static_cast<const Work*>(w))(share); },
         .ahead = ahead});
  }

  struct ForTests {
    std::function<void(size_t thread)> before_chunk = nullptr;
    size_t chunks = 0;       // a phase has at least this many, if it has as many units
    bool fetches = true;     // whether waiting threads prefetch for the phase ahead
    bool preempted = false;  // a thread that is late counts as one that lost its processor
  };
  // For tests, because small models have phases that are not worth another thread and threads do
  // not stall when a test needs it; and for a benchmark that measures what prefetching is worth.
  void Set(ForTests tests);

 private:
  struct Phase {
    size_t units;
    size_t chunk;
    const void* work;
    void (*call)(const void* work, const Share& share);
    const PhaseAhead* ahead;
  };
  struct Impl;
  struct Forks;

  void RunPhase(const Phase& phase);

  const size_t threads_;
  std::mutex mutex_;            // held by a region
  std::unique_ptr<Impl> impl_;  // nullptr with one thread, and in a forked process
};

// How many of a phase's `units` make a chunk, if all units together cost `nanoseconds`. Chunks are
// short enough for other threads to steal much of a late thread's work, and long enough for
// claiming them to cost nothing.
constexpr size_t UnitsOfChunk(size_t units, double nanoseconds, size_t threads) {
  constexpr double kShortest = 1000, kLongest = 16000;
  const double chunk =
      std::clamp(nanoseconds / static_cast<double>(4 * threads), kShortest, kLongest);
  const double fraction = nanoseconds > 0 ? std::min(chunk / nanoseconds, 1.0) : 1.0;
  return std::max<size_t>(1, static_cast<size_t>(static_cast<double>(units) * fraction));
}

// How many rows of `cols` columns make a chunk, for ops that compute a few elements per nanosecond.
// A few rows are not worth another thread.
constexpr size_t RowsOfChunk(size_t cols) {
  constexpr size_t kElements = 8192;  // a few microseconds
  return std::max<size_t>(1, kElements / std::max<size_t>(cols, 1));
}

// Runs a phase of such an op, which computes each row on its own: calls work(begin, end) for ranges
// of rows that together cover [0, rows).
template <class Work>
void ForRows(Team& team, size_t rows, size_t cols, const Work& work) {
  team.Run(rows, RowsOfChunk(cols), [&work](const Share& share) { work(share.begin, share.end); });
}

// The same for work that needs scratch memory for each thread: calls work(row, thread) for every
// row.
template <class Work>
void ForRowsOfThreads(Team& team, size_t rows, size_t cols, const Work& work) {
  team.Run(rows, RowsOfChunk(cols), [&work](const Share& share) {
    for (size_t row = share.begin; row < share.end; ++row) work(row, share.thread);
  });
}

}  // namespace inlay

#endif  // INLAY_OPS_TEAM_H_

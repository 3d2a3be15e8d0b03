#include "ops/team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/resource.h>
#endif

#include "hwy/cache_control.h"
#include "ops/signals_blocked.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

// How long a waiting thread stays awake. The phases of a decode step follow each other within a few
// microseconds, while waking a sleeping thread needs tens of them; on a busy machine a longer wait
// would cost other programs processor time. The caller waits kPatience times as long as it needed
// for a chunk, within these bounds; a thread that is not done then is late.
constexpr Clock::duration kAwake = std::chrono::microseconds(50);
constexpr Clock::duration kMostAwake = std::chrono::microseconds(500);
constexpr int kPatience = 4;

// The time that the caller loses, because it or a thread that it waits for had to give its
// processor to others, is added up. (Without that a thread may be late too, while the system gets
// memory for it: whoever computed its chunk would have been.) Of T threads each is worth 1 / T of
// the time that passes; half of that is forgiven as it passes, so that short work of other
// programs, such as a server's clients, is no reason to do without a thread. A loss above kMostLost
// means that there are more threads than processors, and one of them rests: it gets no range for a
// while, at first for about a time slice, and twice as long each time that it is late again within
// kForgivenRests rests, up to kLongestRest: there the next attempt, which costs some time slices,
// costs a few percent. kMostLost is some time slices, too: what a server's clients do when all hear
// of a step at once must not add up to it.
constexpr Clock::duration kMostLost = std::chrono::milliseconds(25);
constexpr int kForgivenRests = 8;
constexpr Clock::duration kFirstRest = std::chrono::milliseconds(4);
constexpr Clock::duration kLongestRest = std::chrono::milliseconds(1000);

constexpr size_t kLongPhase = 64;  // chunks: some hundred microseconds

// The most that a thread prefetches for a later phase: a fraction of the level 2 cache, which also
// holds what the phases before that one read.
constexpr size_t kMostAhead = size_t{192} << 10;
constexpr size_t kFetchStep = size_t{1} << 10;  // between two checks for work
constexpr size_t kCacheLine = 64;

// The processor time that the calling thread has used, if the system reports it.
Clock::duration ProcessorTime() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
#endif
  return {};
}

// How often the calling thread had to give its processor to another one; where the system does not
// report it, another number each time.
long Preemptions() {
#ifdef RUSAGE_THREAD
  rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) == 0) return usage.ru_nivcsw;
#endif
  static thread_local long unknown = 0;
  return ++unknown;
}

// Whether the calling thread had to give its processor to another one since `known` was counted,
// which is then counted again.
bool PreemptedSince(long& known) {
  const long before = std::exchange(known, Preemptions());
  return known != before;
}

// A range of chunks [begin, end) as one word, so that its owner and others claim chunks of it
// without a lock.
constexpr uint64_t RangeWord(uint64_t begin, uint64_t end) { return begin << 32 | end; }
constexpr size_t RangeBegin(uint64_t range) { return range >> 32; }
constexpr size_t RangeEnd(uint64_t range) { return range & 0xFFFFFFFF; }

}  // namespace

// A phase is published by writing `phase` and then the ranges. A thread reads `phase` only after it
// has claimed a chunk, which keeps the phase from ending; so a thread that comes late, however
// late, claims a chunk of the current phase, or none.
struct Team::Impl {
  // The state of one thread, on cache lines of its own (two, since CPUs fetch lines in pairs).
  struct alignas(2 * kCacheLine) Slot {
    std::atomic<uint64_t> range{0};    // its chunks that no thread has claimed
    std::atomic<uint32_t> wakings{0};  // a sleeping thread waits until it changes
    std::atomic<bool> asleep{false};
    std::atomic<bool> in_chunk{false};  // for the caller, to see which thread is late
    // Set by the caller, to be told with the end of the chunk whether the thread was preempted.
    std::atomic<bool> asked{false};
    bool preempted = false;
    long preemptions = 0;    // when it was last looked at; used by the thread itself
    size_t range_index = 0;  // the range's number, for PhaseAhead::Head
    MemoryAhead ahead;       // what the thread itself prefetches next
    // Used by the caller only.
    bool rests = false;
    Clock::time_point late;  // when it was last late
    Clock::duration rest{};  // how long it rested then
  };

  explicit Impl(size_t threads) : slots(threads) {
    const SignalsBlocked signals;
    try {
      for (size_t i = 1; i < threads; ++i) workers.emplace_back([this, i] { Serve(i); });
    } catch (...) {
      Stop();
      throw;
    }
  }

  ~Impl() { Stop(); }

  void Stop() {
    stop = true;
    for (size_t i = 1; i < slots.size(); ++i) Wake(slots[i]);
    for (std::thread& worker : workers) worker.join();
  }

  // Ends the rests that are over, and returns how many threads have a range in the next phase.
  size_t Gather() {
    if (resting > 0) {
      const Clock::time_point now = Clock::now();
      for (Slot& slot : slots) {
        if (slot.rests && now - slot.late >= slot.rest) EndRest(slot);
      }
    }
    return slots.size() - resting;
  }

  void EndRest(Slot& slot) {
    slot.rests = false;
    --resting;
  }

  // A phase may be long: a thread whose rest ends during it gets half of the caller's chunks that
  // are left.
  void Readmit() {
    const Clock::time_point now = Clock::now();
    for (Slot& slot : slots) {
      if (!slot.rests || now - slot.late < slot.rest) continue;
      uint64_t range = slots[0].range.load(std::memory_order_relaxed);
      size_t middle;
      do {
        middle = RangeBegin(range) + (RangeEnd(range) - RangeBegin(range)) / 2;
        if (middle == RangeBegin(range)) return;
      } while (!slots[0].range.compare_exchange_weak(range, RangeWord(RangeBegin(range), middle)));
      EndRest(slot);
      Give(slot, RangeWord(middle, RangeEnd(range)));
    }
  }

  // Sequentially consistent, like the worker's counterpart in Sleep: either this thread sees the
  // sleeper, or the worker sees the range and does not go to sleep.
  static void Give(Slot& slot, uint64_t range) {
    slot.range.store(range);
    if (slot.asleep.load()) Wake(slot);
  }

  void Run(Phase next) {
    if (tests.chunks > 0) {
      next.chunk = std::min(next.chunk, std::max<size_t>(1, next.units / tests.chunks));
    }
    const size_t chunks = (next.units + next.chunk - 1) / next.chunk;
    const size_t ranges = chunks > 1 ? std::min(Gather(), chunks) : 1;
    // A long phase is split into chunks for one thread, too: the rests of others may end meanwhile.
    if (ranges == 1 && chunks < kLongPhase) {
      if (tests.before_chunk) tests.before_chunk(0);
      return next.call(next.work, {0, next.units, 0});
    }
    assert(chunks <= UINT32_MAX);
    phase = next;
    phase_ranges = ranges;
    pending.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
    size_t index = 0;
    for (Slot& slot : slots) {
      if (!slot.rests && index < ranges) slot.range_index = index++;
    }
    index = 0;
    for (Slot& slot : slots) {
      if (slot.rests || index == ranges) continue;
      Give(slot, RangeWord(index * chunks / ranges, (index + 1) * chunks / ranges));
      ++index;
    }
    const Clock::time_point start = Clock::now();
    const size_t done = Work(0);
    AwaitOthers(start, done);
    if (!failed) return;
    failed = false;
    std::rethrow_exception(std::exchange(error, nullptr));
  }

  // Wakes the threads that will have ranges soon, before the first phase.
  void WakeActive() {
    Gather();
    for (size_t i = 1; i < slots.size(); ++i) {
      if (!slots[i].rests && slots[i].asleep.load()) Wake(slots[i]);
    }
  }

  // Computes chunks while there are any, its own first. Returns how many.
  size_t Work(size_t index) {
    Slot& own = slots[index];
    size_t chunk;
    uint32_t done = 0;
    while (ClaimFirst(own, chunk)) {
      if (done == 0) own.in_chunk.store(true, std::memory_order_relaxed);
      Do(index, chunk);
      ++done;
      if (index == 0 && resting > 0) Readmit();
    }
    if (done > 0) {
      if (phase.ahead != nullptr && tests.fetches)
        own.ahead = phase.ahead->Head(own.range_index, phase_ranges);
      if (Finish(own, done)) return done;
    }
    for (size_t i = 1; i < slots.size(); ++i) {
      Slot& other = slots[(index + i) % slots.size()];
      while (StealLast(other, chunk)) {
        own.in_chunk.store(true, std::memory_order_relaxed);
        Do(index, chunk);
        ++done;
        if (Finish(own, 1)) return done;
      }
    }
    return done;
  }

  static bool ClaimFirst(Slot& slot, size_t& chunk) {
    uint64_t range = slot.range.load(std::memory_order_acquire);
    do {
      chunk = RangeBegin(range);
      if (chunk == RangeEnd(range)) return false;
    } while (!slot.range.compare_exchange_weak(range, RangeWord(chunk + 1, RangeEnd(range)),
                                               std::memory_order_acquire));
    return true;
  }

  static bool StealLast(Slot& slot, size_t& chunk) {
    uint64_t range = slot.range.load(std::memory_order_acquire);
    do {
      if (RangeBegin(range) == RangeEnd(range)) return false;
      chunk = RangeEnd(range) - 1;
    } while (!slot.range.compare_exchange_weak(range, RangeWord(RangeBegin(range), chunk),
                                               std::memory_order_acquire));
    return true;
  }

  // A chunk may throw in any thread, for want of memory: the caller rethrows when all chunks are
  // done.
  void Do(size_t index, size_t chunk) {
    try {
      if (tests.before_chunk) tests.before_chunk(index);
      const size_t begin = chunk * phase.chunk;
      phase.call(phase.work, {begin, std::min(begin + phase.chunk, phase.units), index});
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }

  // Counts `chunks` as done. Returns whether they were the last ones of the phase.
  bool Finish(Slot& own, uint32_t chunks) {
    own.in_chunk.store(false, std::memory_order_relaxed);
    if (own.asked.load(std::memory_order_relaxed)) own.preempted = PreemptedSince(own.preemptions);
    if (pending.fetch_sub(chunks, std::memory_order_acq_rel) != chunks) return false;
    if (&own != &slots[0]) pending.notify_one();
    return true;
  }

  // Waits until done() for at most `most`, and prefetches what is ahead meanwhile.
  template <class Done>
  static bool WaitAwake(Slot& slot, Clock::duration most, const Done& done) {
    const char* data = static_cast<const char*>(slot.ahead.data);
    const size_t bytes = std::min(slot.ahead.bytes, kMostAhead);
    slot.ahead = {};
    for (size_t at = 0; at < bytes; at += kFetchStep) {
      if (done()) return true;
      for (size_t line = at; line < std::min(at + kFetchStep, bytes); line += kCacheLine) {
        // Into the level 2 cache: level 1 is too small for this and the data of the current phase.
        __builtin_prefetch(data + line, 0, 2);
      }
    }
    const Clock::time_point start = Clock::now();
    do {
      for (int i = 0; i < 32; ++i) {
        if (done()) return true;
        hwy::Pause();
      }
    } while (Clock::now() - start < most);
    return done();
  }

  // Waits for the other threads; the caller has done `chunks` chunks since the phase began.
  void AwaitOthers(Clock::time_point phase_start, size_t chunks) {
    const auto done = [this] { return pending.load(std::memory_order_acquire) == 0; };
    if (done()) return;
    Slot& own = slots[0];
    const Clock::time_point start = Clock::now();
    const Clock::duration chunk_time = (start - phase_start) / std::max<size_t>(chunks, 1);
    if (WaitAwake(own, std::clamp(kPatience * chunk_time, kAwake, kMostAwake), done)) return;
    // The caller sleeps from here on, so that others can use its processor, a late thread perhaps.
    Slot* late = nullptr;
    for (Slot& slot : slots) {
      if (&slot != &own && slot.in_chunk.load(std::memory_order_relaxed)) late = &slot;
    }
    if (late != nullptr) late->asked.store(true, std::memory_order_relaxed);
    const Clock::time_point asleep = Clock::now();
    for (uint32_t left; (left = pending.load(std::memory_order_acquire)) != 0;) pending.wait(left);
    const Clock::time_point now = Clock::now();
    slept += now - asleep;
    if (late == nullptr) return;
    late->asked.store(false, std::memory_order_relaxed);
    if (std::exchange(late->preempted, false) || tests.preempted) Lose(now - start, late, now);
  }

  // The caller has lost `time` to `slot`, or to an unknown thread if that is nullptr. If the loss
  // is too large, `slot` rests, or the first thread that does not rest already.
  void Lose(Clock::duration time, Slot* slot, Clock::time_point now) {
    Forgive(now);
    lost += time;
    if (lost < kMostLost) return;
    lost = Clock::duration();
    for (size_t i = 1; i < slots.size() && (slot == nullptr || slot->rests); ++i) slot = &slots[i];
    if (slot == nullptr || slot->rests) return;
    const bool again = now - slot->late < kForgivenRests * slot->rest;
    slot->rest = again ? std::min(2 * slot->rest, kLongestRest) : kFirstRest;
    slot->late = now;
    slot->rests = true;
    ++resting;
  }

  void BeginRegion() {
    WakeActive();
    region_start = Clock::now();
    region_used = ProcessorTime();
    forgiven = region_start;
    slots[0].preemptions = Preemptions();
    slept = Clock::duration();
  }

  // The caller may have lost its processor, to other programs or to threads of the team.
  void EndRegion() {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - region_start;
    const Clock::duration used = ProcessorTime() - region_used;
    const Clock::duration preempted = passed - used - slept;
    if (used > Clock::duration() && preempted > kAwake && PreemptedSince(slots[0].preemptions))
      Lose(preempted, nullptr, now);
    Forgive(now);
  }

  // Forgives a share of the time that has passed in the region.
  void Forgive(Clock::time_point now) {
    lost -= std::min(lost, (now - forgiven) / static_cast<int>(2 * slots.size()));
    forgiven = now;
  }

  static void Wake(Slot& slot) {
    slot.wakings.fetch_add(1);
    slot.wakings.notify_one();
  }

  static bool HasChunks(const Slot& slot) {
    const uint64_t range = slot.range.load();
    return RangeBegin(range) != RangeEnd(range);
  }

  void Sleep(Slot& slot) {
    const uint32_t wakings = slot.wakings.load();
    slot.asleep.store(true);
    if (!HasChunks(slot) && !stop.load()) slot.wakings.wait(wakings);
    slot.asleep.store(false);
    slot.preemptions = Preemptions();
  }

  void Serve(size_t index) {
    // A new thread inherits the environment of the thread that made it, which may not be the
    // default.
    const FloatEnvironment environment;
    Slot& slot = slots[index];
    while (!stop.load()) {
      if (WaitAwake(slot, kAwake, [&] { return HasChunks(slot); })) {
        Work(index);
      } else {
        Sleep(slot);
      }
    }
  }

  std::vector<Slot> slots;  // the first is the caller's
  std::atomic<bool> stop{false};
  // Written before a phase's ranges, read during the phase.
  Phase phase;
  size_t phase_ranges = 0;
  ForTests tests;
  alignas(2 * kCacheLine) std::atomic<uint32_t> pending{0};  // chunks that are not done
  // The first exception of this phase.
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  // Used by the caller only.
  size_t resting = 0;  // threads that rest
  Clock::time_point region_start;
  Clock::duration region_used;  // the caller's processor time at region_start
  Clock::duration slept;        // in the region, while others finished
  Clock::duration lost{};       // time lost and not yet forgiven
  Clock::time_point forgiven;   // when some was last forgiven
  std::vector<std::thread> workers;
};

// The teams of the process, which is what the child of a fork makes its own.
//
// No region is waited for before a fork: its pass may wait for the forking thread, such as for
// Python's lock in a callback. So in the child a region of another thread never ends, its mutex may
// be locked for ever, and nobody can join its threads: these are left as they are.
struct Team::Forks {
  Forks() {
    pthread_atfork([] { Get().mutex.lock(); }, [] { Get().mutex.unlock(); }, [] { Get().Renew(); });
  }

  static Forks& Get() {
    static Forks& forks = *new Forks;  // for processes that fork at their very end, too
    return forks;
  }

  void Renew() {
    for (Team* team : teams) {
      new (&team->mutex_) std::mutex;
      static_cast<void>(team->impl_.release());
    }
    mutex.unlock();
  }

  std::mutex mutex;  // guards what follows
  std::set<Team*> teams;
};

Team::Team(size_t threads) : threads_(threads) {
  assert(threads >= 1);
  if (threads > 1) impl_ = std::make_unique<Impl>(threads);
  const std::lock_guard<std::mutex> lock(Forks::Get().mutex);
  Forks::Get().teams.insert(this);
}

Team::~Team() {
  const std::lock_guard<std::mutex> lock(Forks::Get().mutex);
  Forks::Get().teams.erase(this);
}

size_t Team::active() const { return impl_ ? impl_->Gather() : 1; }

Team::Region::Region(Team& team) : team_(team), lock_(team.mutex_) {
  if (team.impl_) team.impl_->BeginRegion();
}

Team::Region::~Region() {
  if (team_.impl_) team_.impl_->EndRegion();
}

void Team::Set(ForTests tests) {
  if (impl_) impl_->tests = std::move(tests);
}

void Team::RunPhase(const Phase& phase) {
  assert(phase.chunk >= 1);
  if (phase.units == 0) return;
  if (impl_) {
    impl_->Run(phase);
  } else {
    phase.call(phase.work, {0, phase.units, 0});
  }
}

}  // namespace inlay

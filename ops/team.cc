#include "ops/team.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

#include "hwy/cache_control.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread that waits stays awake. The phases of a decode step follow each other within a
// few microseconds, while waking a sleeping thread takes tens of them; on a busy machine a longer
// wait would take the time of others. The caller waits kPatience times as long as it took for a
// chunk, within these bounds; who is not done then is late.
constexpr Clock::duration kAwake = std::chrono::microseconds(50);
constexpr Clock::duration kMostAwake = std::chrono::microseconds(500);
constexpr int kPatience = 4;

// What the caller loses, waiting for late threads or since it has no processor itself, is forgotten
// at this share of the time that passes: a little is chance. With more than kMostLost there are
// more threads than processors, and one of them rests: gets no range for a while, at first for
// about a time slice, and twice as long each time that it happens again within kForgivenRests
// rests, up to what makes the cost of the next attempt, some time slices, a few percent.
constexpr int kForgotten = 32;  // one part in so many
constexpr Clock::duration kMostLost = std::chrono::milliseconds(1);
constexpr int kForgivenRests = 8;
constexpr Clock::duration kFirstRest = std::chrono::milliseconds(4);
constexpr Clock::duration kLongestRest = std::chrono::milliseconds(1000);

constexpr size_t kLongPhase = 64;  // chunks: some hundred microseconds

// What a thread fetches at most for a later phase: a part of the level 2 cache, which holds what
// the phases before read as well.
constexpr size_t kMostAhead = size_t{192} << 10;
constexpr size_t kFetchStep = size_t{1} << 10;  // between two looks for work
constexpr size_t kCacheLine = 64;

// The processor time that the calling thread has had, where the system tells.
Clock::duration ProcessorTime() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
#endif
  return {};
}

// Chunks [begin, end) as one word, so that its owner and others take from it without a lock.
constexpr uint64_t RangeWord(uint64_t begin, uint64_t end) { return begin << 32 | end; }
constexpr size_t RangeBegin(uint64_t range) { return range >> 32; }
constexpr size_t RangeEnd(uint64_t range) { return range & 0xFFFFFFFF; }

}  // namespace

// A phase is published by writing `phase` and then the ranges. A thread reads `phase` only after it
// has taken a chunk, which keeps the phase from ending; so one that comes late, however late, takes
// a chunk of the phase that is there then, or none.
struct Team::Impl {
  // Of one thread, on cache lines of its own (two, since CPUs fetch lines in pairs).
  struct alignas(2 * kCacheLine) Slot {
    std::atomic<uint64_t> range{0};    // its chunks that nobody has taken
    std::atomic<uint32_t> wakings{0};  // a sleeping thread waits for the next
    std::atomic<bool> asleep{false};
    std::atomic<bool> in_chunk{false};  // for the caller, to see who is late
    size_t part = 0;                    // the range's number, for what is ahead
    MemoryAhead ahead;                  // of the thread itself
    // Of the caller.
    bool rests = false;
    Clock::time_point late;  // when it was last
    Clock::duration rest{};  // that followed
  };

  explicit Impl(size_t threads) : slots(threads) {
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

  // The threads that have a range in the next phase.
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

  // A phase may be long: who has rested meanwhile gets half of what the caller has left.
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

  // Sequentially consistent, as the worker's counterpart in Sleep: either this thread sees the
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
    const size_t parts = chunks > 1 ? std::min(Gather(), chunks) : 1;
    // A long phase is cut for one thread, too: others may come back from their rest meanwhile.
    if (parts == 1 && chunks < kLongPhase) {
      if (tests.before_chunk) tests.before_chunk(0);
      return next.call(next.work, {0, next.units, 0});
    }
    assert(chunks <= UINT32_MAX);
    phase = next;
    phase_parts = parts;
    pending.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
    size_t part = 0;
    for (Slot& slot : slots) {
      if (!slot.rests && part < parts) slot.part = part++;
    }
    part = 0;
    for (Slot& slot : slots) {
      if (slot.rests || part == parts) continue;
      Give(slot, RangeWord(part * chunks / parts, (part + 1) * chunks / parts));
      ++part;
    }
    const Clock::time_point start = Clock::now();
    const size_t done = Work(0);
    AwaitOthers(start, done);
    if (!failed) return;
    failed = false;
    std::rethrow_exception(std::exchange(error, nullptr));
  }

  // Threads that will have ranges soon get up meanwhile.
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
    while (TakeFirst(own, chunk)) {
      if (done == 0) own.in_chunk.store(true, std::memory_order_relaxed);
      Do(index, chunk);
      ++done;
      if (index == 0 && resting > 0) Readmit();
    }
    if (done > 0) {
      if (phase.ahead != nullptr && tests.fetches)
        own.ahead = phase.ahead->Head(own.part, phase_parts);
      if (Finish(own, done)) return done;
    }
    for (size_t i = 1; i < slots.size(); ++i) {
      Slot& other = slots[(index + i) % slots.size()];
      while (TakeLast(other, chunk)) {
        own.in_chunk.store(true, std::memory_order_relaxed);
        Do(index, chunk);
        ++done;
        if (Finish(own, 1)) return done;
      }
    }
    return done;
  }

  static bool TakeFirst(Slot& slot, size_t& chunk) {
    uint64_t range = slot.range.load(std::memory_order_acquire);
    do {
      chunk = RangeBegin(range);
      if (chunk == RangeEnd(range)) return false;
    } while (!slot.range.compare_exchange_weak(range, RangeWord(chunk + 1, RangeEnd(range)),
                                               std::memory_order_acquire));
    return true;
  }

  static bool TakeLast(Slot& slot, size_t& chunk) {
    uint64_t range = slot.range.load(std::memory_order_acquire);
    do {
      if (RangeBegin(range) == RangeEnd(range)) return false;
      chunk = RangeEnd(range) - 1;
    } while (!slot.range.compare_exchange_weak(range, RangeWord(RangeBegin(range), chunk),
                                               std::memory_order_acquire));
    return true;
  }

  // Memory may run out in any thread: the caller hears of it when all chunks are done.
  void Do(size_t index, size_t chunk) {
    try {
      if (tests.before_chunk) tests.before_chunk(index);
      const size_t begin = chunk * phase.chunk;
      phase.call(phase.work, {begin, std::min(begin + phase.chunk, phase.units), index});
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }

  // Whether these were the last ones of the phase.
  bool Finish(Slot& own, uint32_t chunks) {
    own.in_chunk.store(false, std::memory_order_relaxed);
    if (pending.fetch_sub(chunks, std::memory_order_acq_rel) != chunks) return false;
    if (&own != &slots[0]) pending.notify_one();
    return true;
  }

  // Waits until done() for at most `most`, and fetches what is ahead meanwhile.
  template <class Done>
  static bool WaitAwake(Slot& slot, Clock::duration most, const Done& done) {
    const char* data = static_cast<const char*>(slot.ahead.data);
    const size_t bytes = std::min(slot.ahead.bytes, kMostAhead);
    slot.ahead = {};
    for (size_t at = 0; at < bytes; at += kFetchStep) {
      if (done()) return true;
      for (size_t line = at; line < std::min(at + kFetchStep, bytes); line += kCacheLine) {
        // For the level 2 cache: the first is too small for what is ahead and what is at hand.
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

  // The caller has done so many chunks since the phase's beginning.
  void AwaitOthers(Clock::time_point phase_start, size_t chunks) {
    const auto done = [this] { return pending.load(std::memory_order_acquire) == 0; };
    if (done()) return;
    Slot& own = slots[0];
    const Clock::time_point start = Clock::now();
    const Clock::duration chunk_time = (start - phase_start) / std::max<size_t>(chunks, 1);
    if (WaitAwake(own, std::clamp(kPatience * chunk_time, kAwake, kMostAwake), done)) return;
    // Who wants this processor may have it now, a late thread among them.
    Slot* late = nullptr;
    for (Slot& slot : slots) {
      if (&slot != &own && slot.in_chunk.load(std::memory_order_relaxed)) late = &slot;
    }
    const Clock::time_point asleep = Clock::now();
    for (uint32_t left; (left = pending.load(std::memory_order_acquire)) != 0;) pending.wait(left);
    const Clock::time_point now = Clock::now();
    slept += now - asleep;
    Lose(now - start, late, now);
  }

  // The caller has lost so much time to `slot`, or, with nullptr, to it does not know whom: then
  // the first thread that does not rest already.
  void Lose(Clock::duration time, Slot* slot, Clock::time_point now) {
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
    slept = Clock::duration();
  }

  // The caller may have lost its processor, to other programs or to threads of the team.
  void EndRegion() {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - region_start;
    const Clock::duration used = ProcessorTime() - region_used;
    const Clock::duration taken = passed - used - slept;
    if (used > Clock::duration() && taken > kAwake) Lose(taken, nullptr, now);
    lost -= std::min(lost, passed / kForgotten);
  }

  static void Wake(Slot& slot) {
    slot.wakings.fetch_add(1);
    slot.wakings.notify_one();
  }

  static bool HasChunks(const Slot& slot) {
    const uint64_t range = slot.range.load();
    return RangeBegin(range) != RangeEnd(range);
  }

  void Sleep(Slot& slot) const {
    const uint32_t wakings = slot.wakings.load();
    slot.asleep.store(true);
    if (!HasChunks(slot) && !stop.load()) slot.wakings.wait(wakings);
    slot.asleep.store(false);
  }

  void Serve(size_t index) {
    // A thread starts with the environment of the one that made it.
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
  size_t phase_parts = 0;
  ForTests tests;
  alignas(2 * kCacheLine) std::atomic<uint32_t> pending{0};  // chunks that are not done
  // Of the first that threw in this phase.
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  // Of the caller.
  size_t resting = 0;  // threads
  Clock::time_point region_start;
  Clock::duration region_used;  // processor time before
  Clock::duration slept;        // in the region, until others were done
  Clock::duration lost{};       // and not forgotten
  std::vector<std::thread> workers;
};

Team::Team(size_t threads) : threads_(threads) {
  assert(threads >= 1);
  if (threads > 1) impl_ = std::make_unique<Impl>(threads);
}

Team::~Team() = default;

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

size_t UsableCores() {
#ifdef __linux__
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
    return static_cast<size_t>(std::max(1, CPU_COUNT(&cores)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace inlay

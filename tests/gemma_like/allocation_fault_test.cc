// Memory that runs out at the Nth allocation, for every N that an operation on a cache needs: an
// error, the conversation as it was, and the same operation again with the right bits.
//
// This program's own operator new and aligned_alloc count and fail.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "cache/byte_stream.h"
#include "gemma_like/generate.h"
#include "tests/gemma_like/family_fixture.h"

namespace {

// Of the thread that runs the test; the models here have no other.
thread_local long allocations_left = -1;  // until one fails; -1: none will
thread_local bool has_failed = false;

bool Fails() {
  if (allocations_left < 0) return false;
  if (allocations_left-- > 0) return false;
  has_failed = true;  // one failure, then there is memory again
  return true;
}

void* NewMemory(size_t bytes, size_t alignment) {
  void* memory = nullptr;
  if (Fails() || posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0)
    return nullptr;
  return memory;
}

void* NewOrThrow(size_t bytes, size_t alignment) {
  void* const memory = NewMemory(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) __THROW {
  return NewMemory(bytes, alignment);
}
void* operator new(size_t bytes) { return NewOrThrow(bytes, kUsual); }
void* operator new[](size_t bytes) { return NewOrThrow(bytes, kUsual); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return NewOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return NewOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return NewMemory(bytes, kUsual);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return NewMemory(bytes, kUsual);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

namespace inlay {
namespace {

class AllocationFaultTest : public FamilyTest {
 protected:
  // Runs `act` until no allocation of it fails, each time with the next one failing. What throws
  // must be bad_alloc; what returns must return an error. `check` looks at what is left.
  // Returns how many failures were survived.
  static int Sweep(const std::function<absl::Status()>& act, const std::function<void()>& check) {
    for (int n = 0;; ++n) {
      absl::Status status;
      bool threw = false;
      has_failed = false;
      allocations_left = n;
      try {
        status = act();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      allocations_left = -1;
      if (!has_failed) {
        EXPECT_TRUE(status.ok() && !threw) << status;
        return n;
      }
      EXPECT_TRUE(threw || absl::IsResourceExhausted(status)) << status;
      check();
      if (::testing::Test::HasFatalFailure()) return n;
    }
  }

  Conversation AtLength(size_t length) {
    Conversation c{NewCache(), 0};
    AppendAndCompare(*models_[0], {&c}, {length});
    return c;
  }

  absl::Status Append(Conversation& c, size_t count) {
    std::vector<float> logits(vocab_);
    const SequenceStep step{
        .cache = c.cache.get(),
        .tokens = absl::MakeConstSpan(texts_[0]).subspan(c.cache->length(), count)};
    return models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, vocab_));
  }

  // A fork of it has the right bits from here on; the conversation itself stays untouched.
  void ExpectIntact(const Conversation& c, size_t length) {
    ASSERT_EQ(c.cache->length(), length);
    Conversation fork{c.cache->Fork(), 0};
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&fork}, {70}));
  }
};

INSTANTIATE_TEST_SUITE_P(Families, AllocationFaultTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AllocationFaultTest, Append) {
  int survived = 0;
  for (const size_t length : {size_t{1}, size_t{31}, size_t{64}, size_t{120}}) {
    for (const size_t count : {size_t{1}, size_t{40}, size_t{130}}) {
      Conversation c = AtLength(length);
      survived += Sweep([&] { return Append(c, count); }, [&] { ExpectIntact(c, length); });
      ExpectIntact(c, length + count);
    }
  }
  EXPECT_GT(survived, 20);
  std::printf("%d failures survived\n", survived);
}

TEST_P(AllocationFaultTest, AppendToAFork) {
  const Conversation origin = AtLength(100);
  Conversation fork;
  const int survived = Sweep(
      [&]() -> absl::Status {
        fork = {origin.cache->Fork(), 0};
        return Append(fork, 5);
      },
      [&] {
        ExpectIntact(origin, 100);
        if (fork.cache != nullptr) ExpectIntact(fork, 100);
        fork.cache.reset();
      });
  ExpectIntact(fork, 105);
  ExpectIntact(origin, 100);
  EXPECT_GT(survived, 3);
}

TEST_P(AllocationFaultTest, Rewind) {
  Conversation c = AtLength(100);
  EXPECT_EQ(Sweep([&] { return c.cache->Rewind(90); }, [&] { ExpectIntact(c, 100); }), 0);
  ExpectIntact(c, 90);
}

TEST_P(AllocationFaultTest, SaveAndLoad) {
  const Conversation c = AtLength(100);
  std::vector<uint8_t> bytes;
  const auto save = [&] {
    bytes = {};
    MemorySink sink(bytes);
    return c.cache->Save(1, sink);
  };
  EXPECT_GT(Sweep(save, [&] { ExpectIntact(c, 100); }), 3);
  Conversation into = AtLength(33);
  const auto load = [&] {
    MemorySource source(bytes);
    return into.cache->Load(1, source);
  };
  EXPECT_GT(Sweep(load, [&] { ExpectIntact(into, 33); }), 2);
  ExpectIntact(into, 100);
}

TEST_P(AllocationFaultTest, PromptOfManyBatches) {
  Conversation c = AtLength(10);
  std::vector<float> logits(vocab_);
  const auto prefill = [&] {
    return Prefill(*models_[0], *c.cache, absl::MakeConstSpan(texts_[0]).subspan(10, 900),
                   FloatRows(logits.data(), 1, vocab_));
  };
  EXPECT_GT(Sweep(prefill, [&] { ExpectIntact(c, 10); }), 5);
  ExpectIntact(c, 910);
}

}  // namespace
}  // namespace inlay

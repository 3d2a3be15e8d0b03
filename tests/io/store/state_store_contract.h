// What every state store must do, as functions that the tests of each call.
#ifndef INLAY_TESTS_IO_STATE_STORE_CONTRACT_H_
#define INLAY_TESTS_IO_STATE_STORE_CONTRACT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "io/store/state_store.h"
#include "tests/must.h"

namespace inlay {

using StateBytes = std::vector<uint8_t>;

inline StateBytes RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  StateBytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// In pieces of different sizes.
inline absl::Status PutState(StateStore& store, absl::string_view key, const StateBytes& bytes) {
  absl::StatusOr<std::unique_ptr<StateWriter>> writer = store.Put(key);
  if (!writer.ok()) return writer.status();
  size_t piece = 1;
  for (size_t at = 0; at < bytes.size(); piece = piece * 3 + 1) {
    const size_t n = std::min(piece, bytes.size() - at);
    absl::Status status = (*writer)->Append(absl::MakeConstSpan(bytes).subspan(at, n));
    if (!status.ok()) return status;
    at += n;
  }
  return (*writer)->Commit();
}

inline absl::StatusOr<StateBytes> GetState(StateStore& store, absl::string_view key) {
  absl::StatusOr<std::unique_ptr<StateReader>> reader = store.Get(key);
  if (!reader.ok()) return reader.status();
  // What is left is a claim: grow as bytes come.
  StateBytes bytes;
  size_t piece = 1;
  while ((*reader)->remaining() > 0) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(piece, (*reader)->remaining()));
    bytes.resize(bytes.size() + n);
    absl::Status status = (*reader)->Read(absl::MakeSpan(bytes).last(n));
    if (!status.ok()) return status;
    piece = std::min<size_t>(piece * 2 + 1, size_t{1} << 24);
  }
  uint8_t byte;
  EXPECT_EQ((*reader)->Read({&byte, 1}).code(), absl::StatusCode::kOutOfRange);
  return bytes;
}

inline void ExpectState(StateStore& store, absl::string_view key, const StateBytes& bytes) {
  absl::StatusOr<StateBytes> got = GetState(store, key);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == bytes) << got->size() << " bytes, not " << bytes.size();
}

inline void CheckRoundTrips(StateStore& store) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, kMiB - 1, kMiB, kMiB + 1, 3 * kMiB + 5}) {
    const StateBytes bytes = RandomBytes(size, size);
    ASSERT_TRUE(PutState(store, "round-trip", bytes).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectState(store, "round-trip", bytes));
  }
}

// What ReadBeginning gives of states that are shorter, as long and longer.
inline void CheckBeginnings(StateStore& store) {
  constexpr size_t kMost = 4128;
  EXPECT_EQ(store.ReadBeginning("none", kMost).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.ReadBeginning("no key", kMost).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const size_t size : {size_t{0}, size_t{1}, kMost - 8, kMost - 1, kMost, kMost + 1, kMost + 8,
                            size_t{1} << 20, size_t{2'500'000}}) {
    const StateBytes bytes = RandomBytes(size, size);
    ASSERT_TRUE(PutState(store, "a", bytes).ok());
    const StateBeginning beginning = Must(store.ReadBeginning("a", kMost));
    EXPECT_EQ(beginning.state_bytes, size);
    EXPECT_EQ(
        beginning.bytes,
        std::string(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min(size, kMost))))
        << size;
  }
}

inline void CheckReplacing(StateStore& store) {
  const StateBytes old = RandomBytes(2'000'000, 1);
  ASSERT_TRUE(PutState(store, "replaced", old).ok());
  {
    auto writer = store.Put("replaced");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(RandomBytes(1'500'000, 2)).ok());
    ExpectState(store, "replaced", old);
  }  // dropped without Commit
  ExpectState(store, "replaced", old);
  ASSERT_TRUE(PutState(store, "replaced", {1, 2, 3}).ok());
  ExpectState(store, "replaced", {1, 2, 3});
}

inline absl::Status PutOver(StateStore& store, absl::string_view key, StateTag replaced,
                            uint8_t value) {
  absl::StatusOr<std::unique_ptr<StateWriter>> writer = store.PutOver(key, replaced);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Append({&value, 1});
  return status.ok() ? (*writer)->Commit() : status;
}

inline StateTag TagOf(StateStore& store, absl::string_view key) {
  absl::StatusOr<std::unique_ptr<StateReader>> reader = store.Get(key);
  return reader.ok() ? (*reader)->tag() : kNoStateTag;
}

// `other` has the same states.
inline void CheckTags(StateStore& store, StateStore& other) {
  constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
  EXPECT_EQ(PutOver(store, "tagged", 7, 1).code(), kAborted) << "there is none to replace";
  EXPECT_TRUE(PutOver(store, "tagged", kNoStateTag, 2).ok());
  EXPECT_EQ(PutOver(other, "tagged", kNoStateTag, 3).code(), kAborted);
  ExpectState(store, "tagged", {2});
  const StateTag first = TagOf(store, "tagged");
  EXPECT_NE(first, kNoStateTag);
  EXPECT_EQ(TagOf(other, "tagged"), first);
  EXPECT_TRUE(PutOver(other, "tagged", first, 4).ok());
  EXPECT_EQ(PutOver(store, "tagged", first, 5).code(), kAborted);
  ExpectState(store, "tagged", {4});
  // Whoever asks for no tag replaces any, and what is stored again is another state.
  ASSERT_TRUE(PutState(store, "tagged", {4}).ok());
  const StateTag third = TagOf(store, "tagged");
  EXPECT_NE(third, first);
  ASSERT_TRUE(store.Delete("tagged").ok());
  EXPECT_EQ(PutOver(store, "tagged", third, 6).code(), kAborted);
  ASSERT_TRUE(PutOver(store, "tagged", kNoStateTag, 4).ok());
  EXPECT_EQ(PutOver(other, "tagged", third, 6).code(), kAborted);
  EXPECT_EQ(PutOver(other, "tagged", first, 6).code(), kAborted);
  ExpectState(store, "tagged", {4});
}

// Of all that count up at the same time, none loses a step.
inline void CheckRacingTags(StateStore& store, StateStore& other) {
  constexpr int kThreads = 4, kSteps = 20;
  ASSERT_TRUE(PutState(store, "count", {0}).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store = t % 2 == 0 ? store : other] {
      for (int step = 0; step < kSteps;) {
        const auto reader = store.Get("count");
        ASSERT_TRUE(reader.ok()) << reader.status();
        uint8_t value = 0;
        if (!(*reader)->Read({&value, 1}).ok()) continue;
        const absl::Status status =
            PutOver(store, "count", (*reader)->tag(), static_cast<uint8_t>(value + 1));
        if (status.ok()) ++step;
        ASSERT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectState(store, "count", {kThreads * kSteps});
}

inline void CheckDeleting(StateStore& store) {
  ASSERT_TRUE(PutState(store, "a", {1}).ok());
  ASSERT_TRUE(PutState(store, "b", {2}).ok());
  EXPECT_TRUE(store.Delete("a").ok());
  EXPECT_EQ(store.Delete("a").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.Get("a").status().code(), absl::StatusCode::kNotFound);
  ExpectState(store, "b", {2});
}

inline std::vector<std::string> ListStates(StateStore& store, absl::string_view prefix) {
  absl::StatusOr<std::vector<std::string>> keys = store.List(prefix);
  EXPECT_TRUE(keys.ok()) << keys.status();
  return keys.ok() ? *std::move(keys) : std::vector<std::string>();
}

// An empty store, of which `many` states are listed at once.
inline void CheckListing(StateStore& store, int many_states) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(ListStates(store, ""), Keys{});
  for (const char* key : {"b", "a.1", "a.2", "ab", "A", "a-"})
    ASSERT_TRUE(PutState(store, key, {1}).ok());
  const auto unfinished = store.Put("a.3");
  ASSERT_TRUE(unfinished.ok());
  ASSERT_TRUE((*unfinished)->Append(RandomBytes(1'200'000, 1)).ok());
  EXPECT_EQ(ListStates(store, ""), (Keys{"A", "a-", "a.1", "a.2", "ab", "b"}));
  EXPECT_EQ(ListStates(store, "a"), (Keys{"a-", "a.1", "a.2", "ab"}));
  EXPECT_EQ(ListStates(store, "a."), (Keys{"a.1", "a.2"}));
  EXPECT_EQ(ListStates(store, "a.1"), (Keys{"a.1"}));
  EXPECT_EQ(ListStates(store, "c"), Keys{});
  // No pattern is meant.
  for (const char* prefix : {"*", "?", "a*", "[a-b]", "a\\", "[^b]"})
    EXPECT_EQ(ListStates(store, prefix), Keys{}) << prefix;
  ASSERT_TRUE((*unfinished)->Commit().ok());
  ASSERT_TRUE(store.Delete("a.1").ok());
  EXPECT_EQ(ListStates(store, "a."), (Keys{"a.2", "a.3"}));
  Keys many;
  for (int i = 0; i < many_states; ++i) {
    many.push_back("many." + std::to_string(10000 + i));
    ASSERT_TRUE(PutState(store, many.back(), {1}).ok());
  }
  EXPECT_EQ(ListStates(store, "many."), many);
}

inline size_t CountStates(StateStore& store, absl::string_view prefix) {
  const absl::StatusOr<size_t> count = store.Count(prefix);
  EXPECT_TRUE(count.ok()) << count.status();
  return count.value_or(~size_t{0});
}

// An empty store; `other` has the same states.
inline void CheckCounting(StateStore& store, StateStore& other) {
  ASSERT_TRUE(PutState(store, "a.1", {1}).ok());
  EXPECT_EQ(CountStates(store, ""), 1u);
  for (const char* key : {"a.2", "ab", "b", "Z", "a-"}) ASSERT_TRUE(PutState(store, key, {1}).ok());
  ASSERT_TRUE(PutState(store, "a.2", {2}).ok());
  EXPECT_EQ(CountStates(store, ""), 6u);
  EXPECT_EQ(CountStates(store, "a"), 4u);
  EXPECT_EQ(CountStates(store, "a."), 2u);
  EXPECT_EQ(CountStates(store, "a.2"), 1u);
  for (const char* prefix : {"c", "*", "~", "a.22", "\xff"})
    EXPECT_EQ(CountStates(store, prefix), 0u) << prefix;
  const auto dropped = store.Put("a.3");
  ASSERT_TRUE(dropped.ok());
  ASSERT_TRUE(store.Delete("a.1").ok());
  EXPECT_FALSE(store.Delete("a.1").ok());
  EXPECT_EQ(CountStates(store, "a."), 1u);
  // What others have changed counts once a list has shown it.
  ASSERT_TRUE(PutState(other, "a.4", {1}).ok());
  ASSERT_TRUE(other.Delete("a.2").ok());
  ASSERT_TRUE(PutState(other, "a.5", {1}).ok());
  EXPECT_EQ(ListStates(store, "a."), (std::vector<std::string>{"a.4", "a.5"}));
  EXPECT_EQ(CountStates(store, "a."), 2u);
  EXPECT_EQ(CountStates(store, ""), 6u);
}

// While many states are stored and deleted, some counts and lists begin.
inline void CheckCountingMeanwhile(StateStore& store) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 60; ++i) {
        const std::string key = "m." + std::to_string(t) + "-" + std::to_string(i);
        EXPECT_TRUE(PutState(store, key, {1}).ok());
        if (i % 3 == 0) {
          EXPECT_TRUE(store.Delete(key).ok());
        }
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(CountStates(store, "m."), 183u);
    ListStates(store, "m.");
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CountStates(store, "m."), 120u);
  EXPECT_EQ(ListStates(store, "m.").size(), 120u);
}

inline void CheckKeys(StateStore& store) {
  for (const std::string key :
       {"", ".", "..", ".hidden", "a/b", "../a", "/etc/passwd", "a b", "a:b", "a\n", "\xc3\xa4"}) {
    EXPECT_EQ(store.Put(key).status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(store.Get(key).status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(store.Delete(key).code(), absl::StatusCode::kInvalidArgument) << key;
  }
  EXPECT_FALSE(store.Put(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(store.Put(std::string(101, 'a')).ok());
  EXPECT_TRUE(PutState(store, std::string(100, 'a'), {1}).ok());
  EXPECT_TRUE(PutState(store, "Az09._-", {1}).ok());
}

// Whoever reads while others write gets one of the states whole, or an error.
inline void CheckConcurrentUse(StateStore& store) {
  const StateBytes states[2] = {RandomBytes(1'300'000, 1), RandomBytes(2'200'000, 2)};
  ASSERT_TRUE(PutState(store, "shared", states[0]).ok());
  std::vector<std::thread> threads;
  for (const StateBytes& state : states) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(PutState(store, "shared", state).ok());
    });
  }
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<StateBytes> got = GetState(store, "shared");
    if (got.ok()) {
      EXPECT_TRUE(*got == states[0] || *got == states[1]);
    }
  }
  for (std::thread& thread : threads) thread.join();
  absl::StatusOr<StateBytes> got = GetState(store, "shared");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == states[0] || *got == states[1]);
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STATE_STORE_CONTRACT_H_

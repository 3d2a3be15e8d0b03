// Memory that runs out at the Nth allocation, for every N that an operation needs: an error, what
// there was stays as it was, and the same operation again gives the right bits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/status_macros.h"
#include "cache/block_pool.h"
#include "cache/model_identity.h"
#include "configs/bard.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/prefix_index.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/json_schema.h"
#include "gemma_like/grammar/token_trie.h"
#include "gemma_like/load_model.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/ranks/rank_leader.h"
#include "gemma_like/ranks/ranks.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "tests/failing_memory.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/ranks/ranked_file.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using failing_memory::Fault;
using failing_memory::Threads;

constexpr char kRankedPath[] = "tests/golden/models/gemma3-tiny-q4_0.gguf";

constexpr Fault kFaults[] = {Fault::kOnce, Fault::kFromThenOn};

enum class Error {
  kStatus,           // ResourceExhausted
  kStatusOrWithout,  // or none, where it can do without that memory
};

// Runs `act` until no allocation of it fails, each time with a later one failing: the next one, or
// about a `coarse`-th of those before later. `check` looks at what is left. Returns how many
// failures were survived.
int Sweep(Fault fault, const std::function<absl::Status()>& act, const std::function<void()>& check,
          Error error = Error::kStatus, long coarse = 1'000'000, Threads threads = Threads::kAll) {
  int survived = 0;
  for (long n = 0;; n += 1 + n / coarse) {
    absl::Status status;
    failing_memory::FailAfter(n, fault, threads);
    try {
      status = act();
    } catch (const std::bad_alloc&) {
      status = absl::InternalError("std::bad_alloc came out");
    }
    failing_memory::Stop();
    if (!failing_memory::has_failed) {
      EXPECT_TRUE(status.ok()) << status;
      std::printf("%d failures survived\n", survived);
      return survived;
    }
    EXPECT_TRUE(status.ok() ? error == Error::kStatusOrWithout : absl::IsResourceExhausted(status))
        << "allocation " << n << ": " << status;
    // Only where there is no memory for a sentence either is there none.
    EXPECT_TRUE(status.ok() || !status.message().empty() || fault == Fault::kFromThenOn)
        << "allocation " << n;
    check();
    if (::testing::Test::HasFailure()) return survived;
    ++survived;
  }
}

class AllocationFaultTest : public FamilyTest {
 protected:
  void SetUp() override {
    FamilyTest::SetUp();
    logits_.resize(vocab_);
  }

  Conversation AtLength(size_t length, std::shared_ptr<BlockPool> pool = nullptr) {
    Conversation c{NewCache(std::move(pool)), 0};
    AppendAndCompare(*models_[0], {&c}, {length});
    return c;
  }

  absl::Status Append(Conversation& c, size_t count) {
    const SequenceStep step{
        .cache = c.cache.get(),
        .tokens = absl::MakeConstSpan(texts_[0]).subspan(c.cache->length(), count)};
    return models_[0]->Forward({&step, 1}, FloatRows(logits_.data(), 1, vocab_));
  }

  // A fork of it has the right bits from here on; the conversation itself stays untouched.
  void ExpectIntact(const Conversation& c, size_t length) {
    ASSERT_EQ(c.cache->length(), length);
    Conversation fork{Must(c.cache->Fork()), 0};
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&fork}, {70}));
  }

  std::vector<float> logits_;
};

INSTANTIATE_TEST_SUITE_P(Families, AllocationFaultTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AllocationFaultTest, Append) {
  int survived = 0;
  for (const Fault fault : kFaults) {
    for (const size_t length : {size_t{1}, size_t{31}, size_t{64}, size_t{120}}) {
      for (const size_t count : {size_t{1}, size_t{40}, size_t{130}}) {
        Conversation c = AtLength(length);
        // It does without where the pool can give back what it has kept of an earlier failure.
        const auto check = [&] {
          const bool done = c.cache->length() == length + count;
          ExpectIntact(c, done ? length + count : length);
          if (done) c = AtLength(length);
        };
        survived += Sweep(
            fault, [&] { return Append(c, count); }, check, Error::kStatusOrWithout);
        ExpectIntact(c, length + count);
      }
    }
  }
  EXPECT_GT(survived, 20);
}

TEST_P(AllocationFaultTest, AppendToAFork) {
  const Conversation origin = AtLength(100);
  for (const Fault fault : kFaults) {
    Conversation fork;
    const auto act = [&]() -> absl::Status {
      INLAY_ASSIGN_OR_RETURN(fork.cache, origin.cache->Fork());
      return Append(fork, 5);
    };
    const auto check = [&] {
      ExpectIntact(origin, 100);
      if (fork.cache != nullptr) ExpectIntact(fork, fork.cache->length() == 105 ? 105 : 100);
      fork.cache.reset();
    };
    EXPECT_GT(Sweep(fault, act, check, Error::kStatusOrWithout), 3);
    ExpectIntact(fork, 105);
    ExpectIntact(origin, 100);
  }
}

TEST_P(AllocationFaultTest, Rewind) {
  Conversation c = AtLength(100);
  const auto rewind = [&] { return c.cache->Rewind(90); };
  EXPECT_EQ(Sweep(Fault::kOnce, rewind, [&] { ExpectIntact(c, 100); }), 0);
  ExpectIntact(c, 90);
  // Nor does one whose tokens a fork shares; the append after it copies them.
  for (const Fault fault : kFaults) {
    Conversation shared = AtLength(100);
    Conversation fork{Must(shared.cache->Fork()), 0};
    const auto rewind_shared = [&] { return shared.cache->Rewind(90); };
    EXPECT_EQ(Sweep(fault, rewind_shared, [&] {}), 0);
    const auto check = [&] {
      const bool done = shared.cache->length() == 95;
      ExpectIntact(shared, done ? 95 : 90);
      if (!done) return;
      shared = {Must(fork.cache->Fork()), 0};
      ASSERT_TRUE(shared.cache->Rewind(90).ok());
    };
    Sweep(
        fault, [&] { return Append(shared, 5); }, check, Error::kStatusOrWithout);
    ExpectIntact(shared, 95);
    ExpectIntact(fork, 100);
  }
}

TEST_P(AllocationFaultTest, SaveAndLoad) {
  for (const Fault fault : kFaults) {
    const Conversation c = AtLength(100);
    std::vector<uint8_t> bytes;
    const auto save = [&] {
      bytes = {};
      MemorySink sink(bytes);
      return c.cache->Save({.weights_hash = 1}, sink);
    };
    EXPECT_GT(Sweep(fault, save, [&] { ExpectIntact(c, 100); }), 3);
    Conversation into = AtLength(33);
    const auto load = [&] {
      MemorySource source(bytes);
      return into.cache->Load({.weights_hash = 1}, source).status();
    };
    const auto check = [&] {
      const bool done = into.cache->length() == 100;
      ExpectIntact(into, done ? 100 : 33);
      if (done) into = AtLength(33);
    };
    EXPECT_GT(Sweep(fault, load, check, Error::kStatusOrWithout), 2);
    ExpectIntact(into, 100);
  }
}

TEST_P(AllocationFaultTest, PromptOfManyBatches) {
  for (const Fault fault : kFaults) {
    Conversation c = AtLength(10);
    const auto prefill = [&] {
      return Prefill(*models_[0], *c.cache, absl::MakeConstSpan(texts_[0]).subspan(10, 900),
                     FloatRows(logits_.data(), 1, vocab_));
    };
    // Nothing is lost where only a trim between batches finds no memory.
    const auto check = [&] {
      ExpectIntact(c, c.cache->length() == 910 ? 910 : 10);
      if (c.cache->length() == 910) c = AtLength(10);
    };
    EXPECT_GT(Sweep(fault, prefill, check, Error::kStatusOrWithout), 5);
    ExpectIntact(c, 910);
  }
}

TEST_P(AllocationFaultTest, PrefixCache) {
  const auto prompt = absl::MakeConstSpan(texts_[0]).first(200);
  for (const Fault fault : kFaults) {
    PrefixCache prefixes(size_t{1} << 30);
    const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
    const Conversation kept = AtLength(150, pool);
    ASSERT_TRUE(prefixes.Insert(*kept.cache));
    const size_t bytes = prefixes.bytes();
    Conversation c = AtLength(120, pool);
    const auto insert = [&] {
      const bool inserted = prefixes.Insert(*c.cache);
      return inserted ? absl::OkStatus()
                      : absl::Status(absl::StatusCode::kResourceExhausted,
                                     fault == Fault::kOnce ? "not kept" : "");
    };
    // A snapshot for which there is no memory to trim it is stored as it is.
    const auto check = [&] {
      EXPECT_LE(prefixes.snapshots(), 2u);
      if (prefixes.snapshots() == 1) {
        EXPECT_EQ(prefixes.bytes(), bytes);
      }
    };
    EXPECT_GT(Sweep(fault, insert, check, Error::kStatusOrWithout), 2);
    EXPECT_EQ(prefixes.snapshots(), 2u);
    PrefixCache undisturbed(size_t{1} << 30);
    ASSERT_TRUE(undisturbed.Insert(*kept.cache) && undisturbed.Insert(*c.cache));
    EXPECT_EQ(prefixes.bytes(), undisturbed.bytes());
    // Where only a snapshot finds no memory, the prompt does without.
    c = {NewCache(pool), 0};
    for (long n = 0;; ++n) {
      failing_memory::FailAfter(n, fault);
      const absl::Status status = PrefillThrough(prefixes, *models_[0], *c.cache, prompt, 64,
                                                 FloatRows(logits_.data(), 1, vocab_))
                                      .status();
      failing_memory::Stop();
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(c.cache->length(), status.ok() ? prompt.size() : 0);
      if (status.ok()) {
        EXPECT_EQ(BitsOf(logits_.data(), vocab_), expected_[0][prompt.size() - 1]);
        c = {NewCache(pool), 0};
      }
      if (!failing_memory::has_failed || HasFailure()) break;
    }
    while (prefixes.DropOldest()) {
    }
    EXPECT_EQ(prefixes.bytes(), 0u);
  }
}

// Threads that are new have no scratch memory yet: it may run out in any of them.
TEST_P(AllocationFaultTest, LoadAndFirstPrompt) {
  const auto prompt = absl::MakeConstSpan(texts_[0]).first(40);
  int survived = 0;
  for (const Fault fault : kFaults) {
    const auto load = [&]() -> absl::Status {
      auto model = GetParam().config.load(file_, {.threads = 3});
      if (!model.ok()) return model.status();
      INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                             (*model)->CreateCache({}, GetParam().type));
      return Prefill(**model, *cache, prompt, FloatRows(logits_.data(), 1, vocab_));
    };
    survived += Sweep(
        fault, load, [] {}, Error::kStatus, 20);
    EXPECT_EQ(BitsOf(logits_.data(), vocab_), expected_[0][prompt.size() - 1]);
  }
  EXPECT_GT(survived, 100);
}

TEST(AllocationFault, LoadModelReturnsAStatus) {
  for (const Fault fault : kFaults) {
    const auto load = [path = std::string(kBardPath)] {
      return LoadModel(path, {.threads = 3}).status();
    };
    EXPECT_GT(Sweep(
                  fault, load, [] {}, Error::kStatus, 20),
              100);
  }
}

TEST(AllocationFault, Encode) {
  const LoadedModel model = LoadBard();
  for (const Fault fault : kFaults) {
    const auto encode = [&] {
      return model.tokenizer->Encode("Shall I compare thee to a summer's day?").status();
    };
    EXPECT_GT(Sweep(fault, encode, [] {}), 3);
  }
}

// What a model takes, and nothing else: blocks of the conversation and what an op keeps per thread
// are there already, of the one before. In a batch of one token the weights are not hidden behind
// what a large one may take and does not.
TEST(AllocationFault, NothingIsTakenBesideThePlan) {
  constexpr size_t kObjects = 16384;  // and bookkeeping
  const std::string path = TempPath("planned.gguf");
  const auto bard = GgufFile::Open(kBardPath);
  ASSERT_TRUE(bard.ok()) << bard.status();
  const auto pool = std::make_shared<BlockPool>();
  bool first = true;
  for (const WeightType type : {WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
    ASSERT_TRUE(Requantize(*bard, {.type = type}, path).ok());
    auto opened = GgufFile::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto file = std::make_shared<const GgufFile>(*std::move(opened));
    const auto entry = FindConfig(*file);
    ASSERT_TRUE(entry.ok()) << entry.status();
    for (const size_t batch : {size_t{512}, size_t{512}, size_t{1}}) {
      const ModelMemory plan = (*entry)->memory(*file, {.max_batch = batch});
      const std::vector<int32_t> tokens(batch, 5);
      std::vector<float> logits(Bard::kVocabSize);
      const size_t before = failing_memory::held;
      const auto model = (*entry)->load(file, {.max_batch = batch});
      ASSERT_TRUE(model.ok()) << model.status();
      const auto cache = Must((*model)->CreateCache({.pool = pool}));
      const SequenceStep step{.cache = cache.get(), .tokens = tokens};
      ASSERT_TRUE((*model)->Forward({&step, 1}, FloatRows(logits.data(), 1, logits.size())).ok());
      const size_t taken = failing_memory::held - before;
      if (std::exchange(first, false)) continue;
      EXPECT_LE(taken, plan.total() + kObjects);
      EXPECT_GE(taken + plan.total() / 5, plan.total()) << "the plan is idle";
    }
  }
  std::remove(path.c_str());
}

// An answer may end anywhere: what was said until then is the conversation, and it goes on with the
// right bits.
TEST(AllocationFault, Generate) {
  const LoadedModel model = LoadBard();
  const auto prompt = model.tokenizer->Encode("ROMEO:\nAy, ay, ay, ay, ay");
  ASSERT_TRUE(prompt.ok());
  const size_t length = prompt->size();
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 8;
  options.ignore_eos = true;
  options.draft = 4;
  for (const Fault fault : kFaults) {
    std::unique_ptr<KVCache> cache;
    const auto generate = [&] {
      return Generate(*model.engine, *model.tokenizer, *cache, *prompt, options).status();
    };
    const auto check = [&] {
      EXPECT_TRUE(cache->length() == 0 || cache->length() >= length) << cache->length();
      const auto straight = Must(model.engine->CreateCache({}));
      std::vector<int32_t> tokens(cache->tokens().begin(), cache->tokens().end());
      tokens.push_back(7);
      const std::vector<float> all = Append(*model.engine, *straight, tokens);
      const std::vector<float> last =
          Append(*model.engine, *cache, absl::MakeConstSpan(tokens).last(1));
      EXPECT_TRUE(
          std::equal(last.begin(), last.end(), all.end() - static_cast<ptrdiff_t>(last.size())));
      cache = Must(model.engine->CreateCache({}));
    };
    cache = Must(model.engine->CreateCache({}));
    EXPECT_GT(Sweep(fault, generate, check, Error::kStatusOrWithout, 30), 20);
    EXPECT_EQ(cache->length(), length + 8);
  }
}

// A sequence for which there is no memory leaves nothing of itself, nor does one whose place could
// not be joined with what is below it.
TEST(AllocationFault, PrefixIndex) {
  using Tokens = std::vector<int32_t>;
  const Tokens kept = {1, 2, 3, 4}, added = {1, 2, 5}, other = {1, 9};
  for (const Fault fault : kFaults) {
    PrefixIndex<int> index;
    index.Insert(kept, 0, 1);
    const auto insert = [&]() -> absl::Status {
      const size_t held = failing_memory::held;
      try {
        index.Insert(added, 0, 2);
      } catch (const std::bad_alloc&) {
        failing_memory::Stop();
        EXPECT_EQ(failing_memory::held, held);
        return absl::ResourceExhaustedError("there is not enough memory for a sequence");
      }
      return absl::OkStatus();
    };
    const auto check = [&] {
      EXPECT_EQ(index.Find(added).value, 1);
      EXPECT_EQ(index.Find(added).length, 2u);
    };
    EXPECT_GT(Sweep(fault, insert, check), 3);
    EXPECT_EQ(index.Find(added).value, 2);

    failing_memory::FailAfter(0, fault);
    index.Erase(added);
    failing_memory::Stop();
    EXPECT_TRUE(failing_memory::has_failed) << "the two nodes of the other one were joined";
    EXPECT_EQ(index.Beyond(other), 1);
    index.Erase(kept);
    ASSERT_EQ(index.Shared(added), 0u);
    EXPECT_EQ(index.Beyond(other), 0);
  }
}

// A prompt that breaks off for lack of memory goes back to the conversation before it, whatever
// memory is left; so do the copies at other ranks.
TEST(AllocationFault, RanksRestoreWithoutMemory) {
  const RankedFile ranked(2, kRankedPath);
  Engine& engine = *ranked.model()->engine;
  for (const Fault fault : kFaults) {
    const auto cache = Must(engine.CreateCache({}));
    const auto expected = Append(engine, *cache, std::vector<int32_t>(40, 3));
    const auto empty = Must(engine.CreateCache({.pool = cache->shared_pool()}));
    std::vector<std::unique_ptr<KVCache>> before;
    for (size_t i = 0; i < 20; ++i) before.push_back(Must((i % 2 == 0 ? empty : cache)->Fork()));
    for (const auto& fork : before) {
      EXPECT_EQ(Sweep(
                    fault, [&] { return cache->Restore(std::move(*fork)); }, [] {}, Error::kStatus,
                    1'000'000, Threads::kThisOne),
                0);
    }
    EXPECT_EQ(cache->length(), 40u);
    ASSERT_TRUE(cache->Restore(std::move(*empty)).ok());
    EXPECT_EQ(Append(engine, *cache, std::vector<int32_t>(40, 3)), expected);
  }
}

// A group of one rank that goes on after its end, here without faults.
class LoneRanks final : public Ranks {
 public:
  struct Ended {};

  LoneRanks() : Ranks(0, 1) {}
  void Broadcast(absl::Span<char>, Deadline) override {}
  void Gather(absl::Span<const size_t>, char*, Deadline) override {}
  void GatherToFirst(absl::Span<const size_t>, char*, Deadline) override {}

 private:
  void End(absl::string_view) override {
    failing_memory::Stop();
    throw Ended();
  }
};

// Others of the group wait for the first one's share for any time: once they know of the model an
// error is that of loading, or ends them.
TEST(AllocationFault, TheFirstRankLeavesNobodyWaitingForAModel) {
  const auto leader = std::make_shared<RankLeader>(std::make_shared<LoneRanks>());
  const std::string path = kRankedPath;
  size_t ended = 0;
  for (const Fault fault : kFaults) {
    absl::StatusOr<LoadedModel> model;
    const auto load = [&]() -> absl::Status {
      try {
        model = leader->LoadModel(path, {});
        return model.status();
      } catch (const LoneRanks::Ended&) {
        ++ended;
        return absl::ResourceExhaustedError("the ranks have ended");
      }
    };
    const auto drop = [&] { model = absl::UnknownError("dropped"); };
    EXPECT_GT(Sweep(fault, load, drop, Error::kStatusOrWithout, 20), 50);
    drop();
  }
  EXPECT_GT(ended, 2u);
}

TEST(AllocationFault, TheFirstRankEndsTheOthersWithoutMemory) {
  auto leader = std::make_shared<RankLeader>(std::make_shared<LoneRanks>());
  failing_memory::FailAfter(0, Fault::kFromThenOn, Threads::kThisOne);
  leader.reset();
  failing_memory::Stop();
  EXPECT_FALSE(failing_memory::has_failed);
}

TEST(AllocationFault, ABlockPoolGivesFreeBlocksBackBeforeItFails) {
  BlockPool pool;
  BlockRef small = pool.Allocate(1000);
  const BlockRef large = pool.Allocate(5000);
  const auto allocate = [&](size_t bytes, Fault fault) {
    failing_memory::FailAfter(0, fault);
    const bool allocated = static_cast<bool>(pool.Allocate(bytes));
    failing_memory::Stop();
    EXPECT_TRUE(failing_memory::has_failed);
    EXPECT_EQ(pool.used_bytes(), small ? 6000u : 5000u);
    return allocated;
  };
  EXPECT_FALSE(allocate(5000, Fault::kOnce)) << "no block was free";
  small = BlockRef();
  EXPECT_TRUE(allocate(5000, Fault::kOnce)) << "the block of 1000 bytes was free";
  EXPECT_FALSE(allocate(1000, Fault::kFromThenOn)) << "that was not enough";
}

// A conversation for which there was no memory leaves no number to another one in its place.
TEST(AllocationFault, RanksForgetWhatWasNotMade) {
  const RankedFile ranked(2, kRankedPath);
  Engine& engine = *ranked.model()->engine;
  const LoadedModel alone = Must(LoadModel(kRankedPath));
  const auto cache = Must(engine.CreateCache({}));
  Append(engine, *cache, std::vector<int32_t>(40, 3));
  std::unique_ptr<KVCache> made;
  // Other ranks' threads may still be at what the first one has told them.
  const auto sweep = [](Fault fault, const std::function<absl::Status()>& act,
                        const std::function<void()>& check) {
    return Sweep(fault, act, check, Error::kStatus, 1'000'000, Threads::kThisOne);
  };
  const auto fork = [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(made, cache->Fork());
    return absl::OkStatus();
  };
  const auto create = [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(made, engine.CreateCache({}));
    return absl::OkStatus();
  };
  const auto check = [&] {
    EXPECT_EQ(made, nullptr);
    const auto other = Must(alone.engine->CreateCache({}));
    const int32_t token = 3;
    const SequenceStep step{.cache = other.get(), .tokens = {&token, 1}, .logit_rows = 0};
    EXPECT_EQ(engine.Forward({&step, 1}, FloatRows(nullptr, 0, 0)).code(),
              absl::StatusCode::kInvalidArgument);
  };
  for (const Fault fault : kFaults) {
    EXPECT_GT(sweep(fault, fork, check), 2);
    made = nullptr;
    EXPECT_GT(sweep(fault, create, check), 2);
    made = nullptr;
  }
  EXPECT_EQ(Append(engine, *cache, std::vector<int32_t>(1, 3)).size(), engine.info().vocab_size);
}

// A grammar that was broken off in the middle of a change gives the same answers afterwards.
TEST(AllocationFault, GrammarMatcher) {
  // Outside, since destructors of nlohmann's JSON values need memory.
  const auto compiled = Must(CompileJsonSchema(
      R"({"type":"object","properties":{"a":{"type":"string","maxLength":5},"b":{"type":"array"}}})"));
  const std::vector<std::string> pieces = {"{\"", "a",  "b", "\"", ": ",
                                           "[1",  "xy", "}", "]",  "}, \""};
  const std::string text = R"({"b": [1, {"c": []}], "a": "xyz"})";
  for (const Fault fault : kFaults) {
    std::shared_ptr<const TokenTrie> tokens;
    std::shared_ptr<CompiledGrammar> grammar;
    const auto create = [&]() -> absl::Status {
      INLAY_ASSIGN_OR_RETURN(tokens, TokenTrie::Create(pieces, {}));
      INLAY_ASSIGN_OR_RETURN(grammar, CompiledGrammar::Create(compiled, {.tokens = tokens}));
      return absl::OkStatus();
    };
    EXPECT_GT(Sweep(
                  fault, create, [&] { EXPECT_EQ(grammar, nullptr); }, Error::kStatus, 30),
              20);
    const auto other = grammar;
    ASSERT_TRUE(create().ok());
    GrammarMatcher matcher(grammar), reference(other);
    int survived = 0;
    for (const char c : text) {
      const auto step = [&]() -> absl::Status {
        INLAY_RETURN_IF_ERROR(matcher.Allowed().status());
        INLAY_ASSIGN_OR_RETURN(const bool accepted, matcher.AcceptBytes({&c, 1}));
        EXPECT_TRUE(accepted);
        return absl::OkStatus();
      };
      const auto same = [&] { EXPECT_EQ(Must(matcher.Allowed()), Must(reference.Allowed())); };
      survived += Sweep(fault, step, same, Error::kStatus, 5);
      ASSERT_TRUE(Must(reference.AcceptBytes({&c, 1})));
      same();
    }
    EXPECT_GT(survived, 100);
    EXPECT_TRUE(Must(matcher.CanEnd()));
  }
}

}  // namespace
}  // namespace inlay

// Random programs of append, abort, rewind, fork, save and load: after each, the next token's
// logits have the bits of a run that did nothing but append.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/model_identity.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tiny_models.h"
#include "tests/must.h"

namespace inlay {
namespace {

constexpr size_t kMost = 400;  // tokens of a conversation
constexpr size_t kFork = 70;   // where the two texts part

int32_t TokenOf(size_t text, size_t position) {
  return static_cast<int32_t>((position * 11 + (position < kFork ? 0 : text * 17)) % 48);
}

std::vector<int32_t> Tokens(size_t text, size_t from, size_t count) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = TokenOf(text, from + i);
  return tokens;
}

// The bits of the logits after each token of a text, from a run token by token.
const std::vector<uint64_t>& Reference(size_t family, size_t text) {
  static auto& known = *new std::map<std::pair<size_t, size_t>, std::vector<uint64_t>>;
  auto [at, is_new] = known.try_emplace({family, text});
  if (!is_new) return at->second;
  Engine& engine = *TinyModels()[family].engine;
  const auto cache = Must(engine.CreateCache({.max_length = kMost}));
  std::vector<float> logits;
  for (size_t i = 0; i < kMost; ++i) {
    MustAppend(engine, *cache, Tokens(text, i, 1), &logits);
    at->second.push_back(BitsOf(logits.data(), logits.size()));
  }
  return at->second;
}

struct Branch {
  std::unique_ptr<KVCache> cache;
  size_t text = 0;
  size_t greatest = 0;  // length that it has had: rewinds are guaranteed from there
};

class Program {
 public:
  Program(FuzzInput& input, size_t family)
      : input_(input),
        family_(family),
        engine_(*TinyModels()[family].engine),
        // Often too small for what the program asks.
        pool_(std::make_shared<BlockPool>(BlockPool::Options{
            .limit_bytes = input.Byte() % 2 == 0 ? SIZE_MAX : input.UpTo(1 << 20),
            .poison = true})) {
    branches_.push_back(NewBranch());
  }

  void Run() {
    while (!input_.empty()) Step();
    INLAY_FUZZ_CHECK(pool_->used_bytes() <= pool_->limit_bytes());
    branches_.clear();
    INLAY_FUZZ_CHECK(pool_->used_bytes() == 0);
  }

 private:
  Branch NewBranch() {
    return {Must(engine_.CreateCache({.max_length = kMost, .pool = pool_})), 0, 0};
  }

  void Step() {
    Branch& branch = branches_[input_.UpTo(branches_.size() - 1)];
    KVCache& cache = *branch.cache;
    const size_t length = cache.length();
    if (length <= kFork) branch.text = input_.Byte() % 2;
    switch (input_.Byte() % 8) {
      case 0:
        return Abort(cache);
      case 1: {
        const size_t position = input_.UpTo(length + 1);
        const size_t floor = cache.RewindFloor();
        INLAY_FUZZ_CHECK(floor + cache.rewind_depth() <= branch.greatest || floor == 0);
        const bool possible =
            position == 0 || position == length || (position < length && position >= floor);
        INLAY_FUZZ_CHECK(cache.Rewind(position).ok() == possible);
        INLAY_FUZZ_CHECK(cache.length() == (possible ? position : length));
        return;
      }
      case 2:
        if (branches_.size() < 4) {
          branches_.push_back({Must(cache.Fork()), branch.text, branch.greatest});
        } else {
          branches_.erase(branches_.begin() + static_cast<ptrdiff_t>(input_.UpTo(3)));
        }
        return;
      case 3:
        return SaveAndLoad(branch);
      case 4:
        return Append({&branch, &branches_[input_.UpTo(branches_.size() - 1)]});
      default:
        return Append({&branch});
    }
  }

  // In one batch; a branch given twice is one that must be refused.
  void Append(std::vector<Branch*> branches) {
    std::vector<SequenceStep> steps;
    std::vector<std::vector<int32_t>> tokens;
    std::vector<size_t> lengths;
    for (const Branch* branch : branches) {
      lengths.push_back(branch->cache->length());
      tokens.push_back(
          Tokens(branch->text, lengths.back(), 1 + input_.UpTo(input_.Byte() % 4 == 0 ? 150 : 3)));
    }
    bool fits = branches.size() < 2 || branches[0] != branches[1];
    for (size_t i = 0; i < branches.size(); ++i) {
      steps.push_back({.cache = branches[i]->cache.get(), .tokens = tokens[i]});
      fits = fits && lengths[i] + tokens[i].size() <= kMost;
    }
    const size_t vocab = engine_.info().vocab_size;
    std::vector<float> logits(steps.size() * vocab);
    const absl::Status status =
        engine_.Forward(steps, FloatRows(logits.data(), steps.size(), vocab));
    INLAY_FUZZ_CHECK(status.ok() ? fits : !fits || absl::IsResourceExhausted(status));
    INLAY_FUZZ_CHECK(!absl::IsResourceExhausted(status) || pool_->limit_bytes() != SIZE_MAX);
    for (size_t i = 0; i < branches.size(); ++i) {
      const size_t length = lengths[i] + (status.ok() ? tokens[i].size() : 0);
      INLAY_FUZZ_CHECK(branches[i]->cache->length() == length);
      if (!status.ok()) continue;
      branches[i]->greatest = std::max(branches[i]->greatest, length);
      INLAY_FUZZ_CHECK(BitsOf(&logits[i * vocab], vocab) ==
                       Reference(family_, branches[i]->text)[length - 1]);
    }
  }

  // Of other tokens, which must leave no trace.
  void Abort(KVCache& cache) {
    const size_t length = cache.length();
    const std::vector<int32_t> wrong(1 + input_.UpTo(150), 1);
    size_t polls = input_.UpTo(static_cast<size_t>(TinyModels()[family_].family.layers));
    const SequenceStep step{.cache = &cache, .tokens = wrong, .logit_rows = 0};
    const absl::Status status = engine_.Forward(
        {&step, 1}, FloatRows(nullptr, 0, engine_.info().vocab_size), [&] { return polls-- == 0; });
    INLAY_FUZZ_CHECK(!status.ok() && cache.length() == length);
  }

  void SaveAndLoad(Branch& from) {
    std::vector<uint8_t> bytes;
    MemorySink sink(bytes);
    INLAY_FUZZ_CHECK(from.cache->Save({}, sink).ok());
    Branch& into = branches_[input_.UpTo(branches_.size() - 1)];
    const bool whole = input_.Byte() % 4 != 0;
    if (!whole) bytes.resize(input_.UpTo(bytes.size() - 1));
    const size_t length = from.cache->length();
    const size_t before = into.cache->length();
    MemorySource source(bytes);
    const absl::Status status = into.cache->Load({}, source).status();
    INLAY_FUZZ_CHECK(!status.ok() || whole);
    INLAY_FUZZ_CHECK(!whole || status.ok() || absl::IsResourceExhausted(status));
    INLAY_FUZZ_CHECK(into.cache->length() == (status.ok() ? length : before));
    if (!status.ok()) return;
    into.text = from.text;
    into.greatest = from.greatest;
  }

  FuzzInput& input_;
  size_t family_;
  Engine& engine_;
  std::shared_ptr<BlockPool> pool_;
  std::vector<Branch> branches_;
};

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  const size_t family = input.UpTo(TinyModels().size() - 1);
  Program(input, family).Run();
  return 0;
}

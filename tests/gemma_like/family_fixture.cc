#include "tests/gemma_like/family_fixture.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "gemma_like/files/synth.h"
#include "tests/must.h"
#include "tests/ops/sharing_team.h"
#include "tests/temp_folder.h"

namespace inlay {

void FamilyTest::SetUp() {
  const std::string path = TempPath(GetParam().name + ".gguf");
  ASSERT_TRUE(WriteSynth(GetParam().config.synth(), {.type = GetParam().weights}, 7, path).ok());
  auto opened = GgufFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  file_ = std::make_shared<const GgufFile>(*std::move(opened));
  for (size_t threads : {1, 2, 3}) {
    auto model = GetParam().config.load(file_, {.team = std::make_shared<SharingTeam>(threads)});
    ASSERT_TRUE(model.ok()) << model.status();
    models_.push_back(*std::move(model));
  }
  std::filesystem::remove(path);
  vocab_ = GetParam().vocab_size;
  // Once per family and program: it takes longer than many of the tests.
  static auto& known = *new std::map<std::string, Texts>;
  auto [at, is_new] = known.try_emplace(GetParam().name);
  if (is_new) MakeTexts(at->second);
  texts_ = at->second.texts;
  expected_ = at->second.expected;
  shared_ = at->second.shared;
}

void FamilyTest::MakeTexts(Texts& made) {
  std::mt19937_64 random(11);
  for (size_t t = 0; t < kTexts; ++t) {
    const size_t shared = t == 0 ? 0 : random() % kLength;
    std::vector<int32_t> text(t == 0 ? 0 : shared);
    if (t > 0) std::copy_n(made.texts[0].begin(), shared, text.begin());
    while (text.size() < kLength) text.push_back(static_cast<int32_t>(random() % vocab_));
    Conversation run{NewCache(), t};
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < kLength; ++i) {
      std::vector<float> logits(vocab_);
      const SequenceStep step{.cache = run.cache.get(), .tokens = {&text[i], 1}};
      ASSERT_TRUE(models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, logits.size())).ok());
      hashes.push_back(BitsOf(logits.data(), logits.size()));
    }
    made.texts.push_back(std::move(text));
    made.shared.push_back(shared);
    made.expected.push_back(std::move(hashes));
  }
}

std::unique_ptr<KVCache> FamilyTest::NewCache(std::shared_ptr<BlockPool> pool, size_t max_length) {
  if (pool == nullptr) pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
  return Must(models_[0]->CreateCache({.max_length = max_length, .pool = std::move(pool)},
                                      GetParam().type));
}

void FamilyTest::AppendAndCompare(Engine& model, std::vector<Conversation*> conversations,
                                  std::vector<size_t> counts, std::vector<int> cancel_before) {
  cancel_before.resize(conversations.size(), kNever);
  const auto cancelled = [&](size_t i) { return cancel_before[i] != kNever; };
  const std::vector<int32_t> wrong(*std::max_element(counts.begin(), counts.end()), 3);
  std::vector<int> polls(conversations.size(), 0);
  std::vector<size_t> before;
  std::vector<SequenceStep> steps;
  size_t rows = 0;
  // A generator for each batch: threads run batches at once.
  uint64_t seed = Seed();
  for (size_t i = 0; i < conversations.size(); ++i) {
    seed = seed * 1'000'003 + conversations[i]->cache->length() * 1009 + counts[i];
  }
  std::mt19937_64 random(seed);
  const bool all = random() % 3 != 0;
  for (size_t i = 0; i < conversations.size(); ++i) {
    const Conversation& c = *conversations[i];
    // One that is to be cancelled must not be done earlier.
    const size_t wanted = all || cancelled(i) ? counts[i] : random() % (counts[i] + 1);
    before.push_back(c.cache->length());
    steps.push_back(
        {.cache = c.cache.get(),
         .tokens = absl::MakeConstSpan(texts_[c.text]).subspan(c.cache->length(), counts[i]),
         .logit_rows = wanted});
    if (cancelled(i)) {
      steps.back().tokens = absl::MakeConstSpan(wrong).first(counts[i]);
      steps.back().cancel = [&, i] { return polls[i]++ == cancel_before[i]; };
    }
    rows += wanted;
  }
  std::vector<float> logits(rows * vocab_);
  std::vector<absl::Status> outcomes(steps.size());
  const absl::Status status = model.Forward(steps, FloatRows(logits.data(), rows, vocab_), nullptr,
                                            absl::MakeSpan(outcomes));
  ASSERT_TRUE(status.ok()) << status;
  const float* row = logits.data();
  for (size_t i = 0; i < conversations.size(); ++i) {
    const Conversation& c = *conversations[i];
    if (cancelled(i)) {
      ASSERT_EQ(outcomes[i].code(), absl::StatusCode::kCancelled) << outcomes[i];
      ASSERT_EQ(c.cache->length(), before[i]);
      row += steps[i].logit_rows * vocab_;
      continue;
    }
    ASSERT_TRUE(outcomes[i].ok()) << outcomes[i];
    const size_t first = c.cache->length() - steps[i].logit_rows;
    for (size_t p = first; p < c.cache->length(); ++p, row += vocab_) {
      ASSERT_EQ(BitsOf(row, vocab_), expected_[c.text][p])
          << "text " << c.text << " position " << p;
    }
  }
}

size_t FamilyTest::Shared(size_t a, size_t b) const {
  return a == b   ? kLength
         : a == 0 ? shared_[b]
         : b == 0 ? shared_[a]
                  : std::min(shared_[a], shared_[b]);
}

}  // namespace inlay

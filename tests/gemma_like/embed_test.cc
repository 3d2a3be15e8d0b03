// Embeddings against a reference of plain loops in double; that a text's vector depends on nothing
// but its tokens; what is refused.
#include "gemma_like/embed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "configs/test_twins.h"
#include "gemma_like/config_entry.h"
#include "gemma_like/load_model.h"
#include "io/tokenizer/load_tokenizer.h"
#include "ops/cpu/cpu_target.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/reference.h"
#include "tests/must.h"
#include "tests/ops/sharing_team.h"
#include "tests/repetitions.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

using Config = TestGemmaEmbedding;
constexpr size_t kDim = Config::kModelDim;
constexpr size_t kLongest = Config::kEmbedding.max_tokens;
// With AMX, attention multiplies numbers that are rounded to 16 bits.
double Bound() { return ChosenExtension() == Extension::kAmx ? 5e-10 : 1e-11; }

std::shared_ptr<const GgufFile> MakeFile(const EmbeddingFile& options) {
  const std::string path = TempPath("embed_test.gguf");
  WriteEmbeddingFile(options, path);
  auto file = std::make_shared<const GgufFile>(Must(GgufFile::Open(path)));
  std::filesystem::remove(path);  // stays open, and the next one may have its name
  return file;
}

std::unique_ptr<Engine> Load(const std::shared_ptr<const GgufFile>& file, size_t threads = 1) {
  return Must(MakeConfigEntry<Config>().load(
      file, {.team = std::make_shared<SharingTeam>(threads), .max_batch = 64}));
}

std::vector<int32_t> Text(size_t tokens, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> text(tokens);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % Config::kVocabSize);
  return text;
}

double Nmse(const std::vector<float>& a, const Doubles& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0;
  for (size_t i = 0; i < b.size(); ++i) error += (a[i] - b[i]) * (a[i] - b[i]);
  return error;  // b has length 1
}

// Texts shorter than half a window, as long as a window sees, longer, and the longest.
TEST(EmbedTest, VectorsAreThoseOfTheReference) {
  const auto file = MakeFile({});
  const auto engine = Load(file, 2);
  const Reference<Config> reference(*file);
  for (const size_t tokens :
       {size_t{1}, size_t{16}, size_t{17}, size_t{18}, size_t{34}, kLongest}) {
    const std::vector<int32_t> text = Text(tokens);
    const std::vector<float> vector = Must(EmbedText(*engine, text));
    if (kSanitized && tokens > 18) continue;  // the reference would take a minute
    EXPECT_LT(Nmse(vector, reference.Embedding(text)), Bound()) << tokens << " tokens";
  }
}

TEST(EmbedTest, TheTwoMatricesFollowThePooling) {
  const auto file = MakeFile({.dense = {2, 3}});
  const std::vector<int32_t> text = Text(20);
  const std::vector<float> vector = Must(EmbedText(*Load(file), text));
  EXPECT_LT(Nmse(vector, Reference<Config>(*file).Embedding(text)), Bound());
  const std::vector<float> without = Must(EmbedText(*Load(MakeFile({})), text));
  EXPECT_GT(Nmse(vector, Doubles(without.begin(), without.end())), 0.1);
}

// The tokens of one text in another order have another vector, and so has a text of which only the
// last token differs: all tokens see it.
TEST(EmbedTest, OtherTokensHaveOtherVectors) {
  const auto engine = Load(MakeFile({}));
  const std::vector<int32_t> text = Text(12);
  std::vector<int32_t> turned(text.rbegin(), text.rend()), other = text;
  other.back() = (other.back() + 1) % Config::kVocabSize;
  const std::vector<float> vector = Must(EmbedText(*engine, text));
  for (const std::vector<int32_t>& different : {turned, other}) {
    const std::vector<float> with = Must(EmbedText(*engine, different));
    EXPECT_GT(Nmse(vector, Doubles(with.begin(), with.end())), 1e-6);
  }
}

TEST(EmbedTest, BitsDependOnNeitherBatchesNorThreads) {
  for (const WeightType type : {WeightType::kF32, WeightType::kQ8_0}) {
    const auto file = MakeFile({.type = type, .dense = {2, 3}});
    const auto alone = Load(file);
    // More texts, and more tokens, than one batch holds.
    std::vector<std::vector<int32_t>> texts;
    for (uint64_t i = 0; i < kMostTexts + 20; ++i) texts.push_back(Text(1 + i % 7, i));
    for (const size_t tokens : {kLongest, size_t{40}, kLongest, size_t{3}}) {
      texts.push_back(Text(tokens, 99));
    }
    std::vector<std::vector<float>> expected;
    for (const auto& text : texts) expected.push_back(Must(EmbedText(*alone, text)));
    for (const size_t threads : {1, 2, 3}) {
      const auto engine = Load(file, threads);
      EXPECT_EQ(Must(EmbedTexts(*engine, texts)), expected) << threads << " threads";
    }
  }
}

TEST(EmbedTest, RefusesWhatIsNoBatchOfTexts) {
  const auto engine = Load(MakeFile({}));
  ASSERT_EQ(engine->info().embedding_dim, kDim);
  EXPECT_EQ(engine->info().context_length, kLongest);
  const auto embed = [&](const std::vector<std::vector<int32_t>>& texts, size_t rows,
                         size_t cols = kDim) {
    const std::vector<absl::Span<const int32_t>> spans(texts.begin(), texts.end());
    std::vector<float> memory(rows * cols);
    return engine->Embed(spans, FloatRows(memory.data(), rows, cols));
  };
  const auto expect_refused = [](const absl::Status& status, const char* why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  EXPECT_TRUE(embed({{1, 2}, {3}}, 2).ok());
  expect_refused(embed({}, 0), "a batch of 0 tokens is not between 1 and 200");
  expect_refused(embed({{1}, {}}, 2), "text 1 has 0 tokens, not between 1 and 200");
  expect_refused(embed({Text(201)}, 1), "text 0 has 201 tokens, not between 1 and 200");
  expect_refused(embed({Text(200), {1}}, 2), "a batch of 201 tokens is not between 1 and 200");
  expect_refused(embed(std::vector<std::vector<int32_t>>(65, {1}), 65),
                 "a batch of 65 texts has more than 64");
  expect_refused(embed({{1024}}, 1), "token id 1024 at index 0 is outside 0 to 1023");
  expect_refused(embed({{1}}, 2), "embeddings of 1 x 256 were asked for, but the view is 2 x 256");
  expect_refused(embed({{1}}, 1, 255), "but the view is 1 x 255");
  EXPECT_EQ(EmbedText(*engine, {1, 2}, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(EmbedTest, AModelEitherEmbedsOrGenerates) {
  const auto embeds = Load(MakeFile({}));
  const auto cache = Must(embeds->CreateCache({}));
  const std::vector<int32_t> tokens = {1};
  std::vector<float> row(size_t{Config::kVocabSize});
  const SequenceStep step{.cache = cache.get(), .tokens = tokens};
  const absl::Status no_logits = embeds->Forward({&step, 1}, FloatRows(row.data(), 1, row.size()));
  EXPECT_EQ(no_logits.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_logits.message()),
              HasSubstr("config test-gemma-embedding embeds texts"));

  const LoadedModel bard = LoadBard();
  EXPECT_EQ(bard.engine->info().embedding_dim, 0u);
  const absl::Status no_vector = EmbedText(*bard.engine, {1}).status();
  EXPECT_EQ(no_vector.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_vector.message()), HasSubstr("config bard generates text"));
}

TEST(EmbedTest, OneMatrixAloneIsRefused) {
  for (const int which : {2, 3}) {
    const auto model = MakeConfigEntry<Config>().load(MakeFile({.dense = {which}}), {});
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr(absl::StrCat("dense_", 5 - which, ".weight")));
  }
}

TEST(EmbedTest, DamagedWeightsAreNoVector) {
  const auto engine = Load(MakeFile({.norm_scale = std::numeric_limits<double>::infinity()}));
  const absl::Status status = EmbedText(*engine, {1, 2}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the embedding of text 0 is not finite"));
}

TEST(EmbedTest, TextsEndWithEosUnlessTheFileSaysOtherwise) {
  const std::string text = "To be, or not to be";
  for (const std::optional<bool> add_eos : {std::optional<bool>(), {true}, {false}}) {
    const auto tokenizer = Must(LoadTokenizer(*MakeFile({.add_eos = add_eos})));
    std::vector<int32_t> expected = Must(tokenizer->Encode(text));
    ASSERT_EQ(expected.front(), tokenizer->bos());
    if (add_eos.value_or(true)) expected.push_back(tokenizer->eos().value());
    EXPECT_EQ(Must(EncodeToEmbed(*tokenizer, text, 100)), expected);
    EXPECT_EQ(Must(EncodeToEmbed(*tokenizer, text, expected.size())), expected);
    const absl::Status status = EncodeToEmbed(*tokenizer, text, expected.size() - 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("tokens, but the context holds ", expected.size() - 1)));
  }
}

}  // namespace
}  // namespace inlay

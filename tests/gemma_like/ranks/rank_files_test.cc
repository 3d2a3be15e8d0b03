// Models of files at several ranks: the bits of one process in every family and type of weights,
// and what each rank holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rank_share.h"
#include "base/xxh64.h"
#include "cache/cache_bytes.h"
#include "configs/test_twins.h"
#include "gemma_like/engine.h"
#include "gemma_like/files/pack.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/load_model.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/ranks/rank_leader.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "ops/team.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/ranks/ranked_file.h"
#include "tests/gemma_like/ranks/thread_ranks.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

// What a rank says of a pass: how it began, and how it ended.
constexpr size_t kNumbersBytes = 2 * sizeof(uint64_t);

uint64_t BitsOf(const float* row, size_t n) { return Xxh64Of(row, n * sizeof(float)); }

std::vector<uint64_t> BitsOfLogits(const LoadedModel& model) {
  const std::vector<float> logits = LogitsOf(model);
  std::vector<uint64_t> bits;
  for (size_t at = 0; at < logits.size(); at += model.engine->info().vocab_size) {
    bits.push_back(BitsOf(&logits[at], model.engine->info().vocab_size));
  }
  return bits;
}

void ExpectBitsOfOneProcess(const std::string& path) {
  SCOPED_TRACE(path);
  const std::vector<uint64_t> expected = BitsOfLogits(Must(LoadModel(path)));
  for (size_t count : {2, 3, 4}) {
    SCOPED_TRACE(count);
    const RankedFile ranked(count, path);
    ASSERT_TRUE(ranked.model().ok()) << ranked.model().status();
    EXPECT_EQ(BitsOfLogits(*ranked.model()), expected);
    EXPECT_GT(ranked.group().bytes, 0u);
  }
}

// Every family of the registry, in the types of weights that operands have forms for.
TEST(RankFilesTest, FilesOfAllFamilies) {
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/golden/models")) {
    if (file.path().extension() != ".gguf") continue;
    // Builds with sanitizers have fewer configs.
    if (!FindConfig(Must(GgufFile::Open(file.path().string()))).ok()) continue;
    ExpectBitsOfOneProcess(file.path().string());
    ++files;
  }
  EXPECT_GE(files, FindConfig(absl::string_view("test-falcon-h1")).ok() ? 18u : 5u);
}

TEST(RankFilesTest, Bfloat16AndFloatWeights) {
  const GgufFile file = Must(GgufFile::Open("tests/golden/models/qwen35-tiny-f16.gguf"));
  const std::string path = TempPath("converted.gguf");
  for (const WeightType type : {WeightType::kBF16, WeightType::kF32}) {
    ASSERT_TRUE(Requantize(file, {.type = type}, path).ok());
    ExpectBitsOfOneProcess(path);
  }
}

TEST(RankFilesTest, PackedFiles) {
  const std::string path = TempPath("model.packed");
  for (const char* model :
       {"gemma3-tiny-q4_0", "granite4h-moe-tiny-q8_0", "lfm2-tiny-q6_k", "qwen35moe-tiny-q4_0"}) {
    const GgufFile file =
        Must(GgufFile::Open(absl::StrCat("tests/golden/models/", model, ".gguf")));
    Team team(1);
    ASSERT_TRUE(WritePacked(file, team, path).ok());
    ExpectBitsOfOneProcess(path);
  }
}

TEST(RankFilesTest, Embeddings) {
  const std::string path = TempPath("embeds.gguf");
  WriteEmbeddingFile({.type = WeightType::kQ8_0, .dense = {2, 3}}, path);
  const std::vector<int32_t> texts[] = {{1, 2, 3, 4, 5}, {7, 8}};
  const auto embed = [&](Engine& engine) {
    std::vector<float> rows(2 * engine.info().embedding_dim);
    const absl::Span<const int32_t> spans[] = {texts[0], texts[1]};
    EXPECT_TRUE(engine.Embed(spans, FloatRows(rows.data(), 2, rows.size() / 2)).ok());
    return BitsOf(rows.data(), rows.size());
  };
  const uint64_t expected = embed(*Must(LoadModel(path)).engine);
  for (size_t count : {2, 3}) {
    const RankedFile ranked(count, path);
    EXPECT_EQ(embed(*ranked.model()->engine), expected);
  }
}

// What a rank holds: about its share of the weights, and its heads' rows.
TEST(RankFilesTest, MemoryOfARankIsItsShare) {
  const auto file = std::make_shared<const GgufFile>(
      Must(GgufFile::Open("tests/golden/models/gemma3-tiny-q4_0.gguf")));
  const ConfigEntry& config = *Must(FindConfig(*file));
  const size_t whole = config.memory(*file, {}).weights;
  const auto group = std::make_shared<ThreadGroup>(2);
  for (size_t r = 0; r < 2; ++r) {
    const EngineOptions options{.ranks = std::make_shared<ThreadRanks>(group, r)};
    const size_t part = config.memory(*file, options).weights;
    EXPECT_LT(part, whole * 6 / 10);
  }

  const LoadedModel alone = Must(LoadModel(file->name()));
  const RankedFile ranked(2, file->name());
  const auto bytes = [](const LoadedModel& model) {
    const auto cache = Must(model.engine->CreateCache({}));
    Append(*model.engine, *cache, std::vector<int32_t>(200, 3));
    return cache->allocated_bytes();
  };
  EXPECT_EQ(bytes(*ranked.model()) * 2, bytes(alone));
}

// What docs/ranks.md says of a token of a model with attention and an MLP in every layer.
TEST(RankFilesTest, CollectivesAndBytesOfAToken) {
  const std::string path = "tests/golden/models/gemma3-tiny-q4_0.gguf";
  const RankedFile ranked(2, path);
  Engine& engine = *ranked.model()->engine;
  const auto cache = Must(engine.CreateCache({}));
  Append(engine, *cache, std::vector<int32_t>{3});
  const size_t collectives = ranked.group().collectives, bytes = ranked.group().bytes;
  Append(engine, *cache, std::vector<int32_t>{4});

  using Config = TestGemma3;
  const size_t layers = engine.info().layers;
  const size_t polls = layers + 1;  // these ranks look for cancellation in every pass
  EXPECT_EQ(ranked.group().collectives - collectives, 3 + 4 * layers + 1 + polls);
  // Half of everything is the other rank's; 36 bytes are 32 rounded values.
  const GgufFile file = Must(GgufFile::Open(path));
  const size_t heads = Must(file.GetUint("gemma3.attention.head_count")) *
                       Must(file.GetUint("gemma3.attention.key_length"));
  const size_t hidden = Must(file.GetUint("gemma3.feed_forward_length"));
  const size_t of_layer = 2 * Config::kModelDim * sizeof(float) + (heads + hidden) / 32 * 36;
  EXPECT_EQ(ranked.group().bytes - bytes,
            (layers * of_layer + engine.info().vocab_size * sizeof(float)) / 2 + kNumbersBytes);
}

// What a plan says of a token, and of its conversation's memory, of all families of the registry.
TEST(RankFilesTest, APlanIsWhatRanksDo) {
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/models")) {
    if (entry.path().extension() != ".gguf") continue;
    const GgufFile file = Must(GgufFile::Open(entry.path().string()));
    const absl::StatusOr<const ConfigEntry*> config = FindConfig(file);
    if (!config.ok()) continue;  // builds with sanitizers have fewer
    SCOPED_TRACE(file.name());
    const RankedFile ranked(2, entry.path().string());
    Engine& engine = *ranked.model()->engine;
    const auto cache = Must(engine.CreateCache({}));
    Append(engine, *cache, std::vector<int32_t>{3});
    const size_t collectives = ranked.group().collectives, bytes = ranked.group().bytes;
    Append(engine, *cache, std::vector<int32_t>{4});

    const PlannedWork plan = Must((*config)->work(file, {.rank = 0, .count = 2}, 1));
    const size_t polls = engine.info().layers + 1;
    EXPECT_EQ(ranked.group().collectives - collectives,
              3 + plan.layers.collectives + plan.output.collectives + polls);
    // What is not shared equally is shared nearly so.
    const double gathered = (plan.layers.gathered + plan.output.gathered) / 2 + kNumbersBytes;
    EXPECT_NEAR(static_cast<double>(ranked.group().bytes - bytes), gathered, 0.05 * gathered);
    EXPECT_EQ(plan.layers.bytes, engine.info().work.layers.bytes);
    EXPECT_EQ(plan.output.ops, engine.info().work.output.ops);
    EXPECT_EQ(plan.cache_read, engine.CacheBytesRead(1));
    EXPECT_LE(cache->allocated_bytes(), engine.PlanCache().At(2));
  }
}

// Recurrent states are a rank's share too, but for the B and C of Mamba2's heads that read the
// same.
TEST(RankFilesTest, StatesAreInParts) {
  size_t files = 0;
  for (const char* name :
       {"mamba2-tiny-f16", "granite4h-tiny-q4_k_m", "qwen35-tiny-f16", "lfm2-tiny-q6_k"}) {
    const GgufFile file = Must(GgufFile::Open(absl::StrCat("tests/golden/models/", name, ".gguf")));
    const absl::StatusOr<const ConfigEntry*> config = FindConfig(file);
    if (!config.ok()) continue;  // builds with sanitizers have fewer
    const auto read = [&](RankShare share) {
      return static_cast<double>(Must((*config)->work(file, share, 1)).cache_read);
    };
    EXPECT_LT(read({.rank = 0, .count = 2}), 0.6 * read({})) << name;
    ++files;
  }
  EXPECT_GE(files, 1u);
}

TEST(RankFilesTest, AFileThatOneRankCannotLoad) {
  const ModelLoader good = [](const std::string& path, const EngineOptions& options) {
    return LoadModel(path, options);
  };
  const auto load = [&](const ModelLoader& other) {
    const ServedThreadRanks ranks(2, other);
    const auto leader = std::make_shared<RankLeader>(ranks.First(), good);
    return leader->LoadModel("tests/golden/models/lfm2-tiny-q6_k.gguf", {}).status();
  };
  EXPECT_TRUE(load(good).ok());
  const absl::Status missing = load([](const std::string&, const EngineOptions& options) {
    return LoadModel("tests/golden/models/none.gguf", options);
  });
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr("rank 1: "));
  const absl::Status config = load([](const std::string&, const EngineOptions& options) {
    return LoadModel("tests/golden/models/gemma3-tiny-q4_0.gguf", options);
  });
  EXPECT_THAT(std::string(config.message()),
              ::testing::HasSubstr("at rank 1 gives a model of config test-gemma3, not test-lfm2"));
  const absl::Status weights = load([](const std::string&, const EngineOptions& options) {
    return LoadModel("tests/golden/models/lfm2-tiny-iq4_xs.gguf", options);
  });
  EXPECT_THAT(std::string(weights.message()),
              ::testing::HasSubstr("at rank 1 gives weights of the hash "));
}

}  // namespace
}  // namespace inlay

// Model files whose vocabulary does not fit their embedding or their config exactly: see
// docs/files.md.
#include "gemma_like/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/generation/generate.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::Each;
using ::testing::Lt;
using ::testing::Not;

TEST(LoadModel, RefusesABatchThatIsOutOfBounds) {
  for (const size_t most : {size_t{0}, kMostBatch + 1, std::numeric_limits<size_t>::max()}) {
    const absl::Status status = LoadModel(kBardPath, {.max_batch = most}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message(), absl::StrCat("max_batch is ", most, ", not between 1 and 1048576"));
  }
}

TEST(LoadModel, ZeroThreadsAreOneForEachUsableCore) {
  const LoadedModel model = Must(LoadModel(kBardPath, {.threads = 0, .check_tensors = true}));
  EXPECT_EQ(LogitsOf(model), LogitsOf(LoadBard()));
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;

  void Resize(size_t size) {
    while (tokens.size() < size) tokens.push_back("new" + std::to_string(tokens.size()));
    tokens.resize(size);
    types.resize(size, 1);
    scores.resize(size, -1e6f);
  }
};

class LoadModelTest : public ::testing::Test {
 protected:
  LoadModelTest() : bard_(Must(GgufFile::Open(kBardPath))) {
    const GgufStrings tokens = Must(bard_.GetStrings("tokenizer.ggml.tokens"));
    const std::vector<int64_t> types = Must(bard_.GetInts("tokenizer.ggml.token_type"));
    for (const absl::string_view token : tokens) vocabulary_.tokens.emplace_back(token);
    vocabulary_.types.assign(types.begin(), types.end());
    vocabulary_.scores = Must(bard_.GetFloats("tokenizer.ggml.scores"));
  }

  // The demo model with vocabulary_, further keys, and without these of tokenizer.ggml.
  LoadedModel Load(
      const std::vector<std::string>& without = {},
      const std::function<void(GgufWriter&)>& add = [](GgufWriter&) {}) {
    GgufChange change{.without_keys = {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.scores"}};
    for (const std::string& name : without) change.without_keys.push_back("tokenizer.ggml." + name);
    change.add_keys = [&](GgufWriter& writer) {
      const auto stays = [&](const char* name) {
        return std::find(without.begin(), without.end(), name) == without.end();
      };
      if (stays("tokens")) writer.SetStrings("tokenizer.ggml.tokens", vocabulary_.tokens);
      if (stays("token_type")) writer.SetInt32s("tokenizer.ggml.token_type", vocabulary_.types);
      if (stays("scores")) writer.SetFloat32s("tokenizer.ggml.scores", vocabulary_.scores);
      add(writer);
    };
    const std::string path = temp_.path() + "/changed.gguf";
    WriteChanged(bard_, change, path);
    return Must(LoadModel(path, {.threads = 1}));
  }

  // Tokens drawn from almost equal probabilities.
  static std::vector<int32_t> Draw(const LoadedModel& model) {
    const auto cache = Must(model.engine->CreateCache({.max_length = 256}));
    GenerateOptions options;
    options.max_tokens = 100;
    options.ignore_eos = true;
    options.sampling = {.temperature = 100, .top_k = 0, .top_p = 1, .seed = 7};
    const auto prompt = Must(model.tokenizer->Encode("To be"));
    return Must(Generate(*model.engine, *model.tokenizer, *cache, prompt, options)).tokens;
  }

  const TempFolder temp_;
  const GgufFile bard_;
  Vocabulary vocabulary_;
};

TEST_F(LoadModelTest, ARowWithoutATokenIsNeverGenerated) {
  EXPECT_THAT(Draw(Load()), Not(Each(Lt(700))));  // or the rest tests nothing
  vocabulary_.Resize(700);
  const LoadedModel model = Load();
  EXPECT_EQ(model.tokenizer->size(), 700u);
  EXPECT_EQ(model.engine->info().vocab_size, 1024u);
  EXPECT_THAT(Draw(model), Each(Lt(700)));
}

TEST_F(LoadModelTest, TokensWithoutRowsAreLeftOut) {
  const std::string text = "To be, or not to be: that is the question.";
  const std::vector<int32_t> expected = Must(Load().tokenizer->Encode(text));
  vocabulary_.Resize(1030);
  vocabulary_.tokens[1029] = text;
  vocabulary_.types[1029] = 4;  // user-defined: it would be the whole text
  const LoadedModel model = Load();
  EXPECT_EQ(model.tokenizer->size(), 1024u);
  EXPECT_EQ(Must(model.tokenizer->Encode(text)), expected);
  EXPECT_EQ(model.tokenizer->FindSpecial(text), std::nullopt);
  EXPECT_THAT(Draw(model), Each(Lt(1024)));
}

// The file's tokenizer counts, whatever kind the config's own files have: models that were trained
// further may have another.
TEST_F(LoadModelTest, TheKindOfTokenizerIsTheFilesChoice) {
  Vocabulary bytes;
  for (int byte = 0; byte < 256; ++byte) {
    // Only those that byte-level vocabularies write as themselves; the rest is the unknown token.
    bytes.tokens.push_back(byte > 0x20 && byte < 0x7F ? std::string(1, static_cast<char>(byte))
                                                      : "unused" + std::to_string(byte));
  }
  bytes.Resize(256);
  bytes.tokens[0] = "<unk>";
  bytes.types.assign(256, 1);
  bytes.types[0] = 2;
  vocabulary_ = bytes;
  const LoadedModel model = Load({"model", "pre", "unknown_token_id"}, [](GgufWriter& writer) {
    writer.SetString("tokenizer.ggml.model", "gpt2");
    writer.SetString("tokenizer.ggml.pre", "gpt-2");
    writer.SetUint32("tokenizer.ggml.unknown_token_id", 0);
    writer.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{});
  });
  EXPECT_EQ(Must(model.tokenizer->Encode("Tb", {.add_bos = false})),
            (std::vector<int32_t>{'T', 'b'}));
  EXPECT_THAT(Draw(model), Each(Lt(256)));
}

TEST_F(LoadModelTest, GenerationStopsAtAnyEndToken) {
  // What greedy decoding generates; the token at `place` is made an end by a second key.
  const auto generate = [](const LoadedModel& model) {
    const auto cache = Must(model.engine->CreateCache({.max_length = 256}));
    GenerateOptions options;
    options.max_tokens = 12;
    options.sampling.temperature = 0;
    const auto prompt = Must(model.tokenizer->Encode("To be"));
    return Must(Generate(*model.engine, *model.tokenizer, *cache, prompt, options));
  };
  const std::vector<int32_t> whole = generate(Load()).tokens;
  ASSERT_EQ(whole.size(), 12u);
  for (const char* key : {"eot_token_id", "eom_token_id", "eos_token_ids"}) {
    const GenerateResult result = generate(Load({}, [&](GgufWriter& writer) {
      writer.SetUint32(std::string("tokenizer.ggml.") + key, static_cast<uint32_t>(whole[5]));
    }));
    const auto first = std::find(whole.begin(), whole.end(), whole[5]);
    EXPECT_EQ(result.tokens, std::vector<int32_t>(whole.begin(), first)) << key;
    EXPECT_EQ(result.stop_reason, StopReason::kEndOfGeneration) << key;
  }
}

TEST(LoadProgress, EndsWithTheLoad) {
  uint64_t last = 0, of = 0;
  size_t calls = 0;
  const auto model = inlay::LoadModel(kBardPath, {.progress = [&](uint64_t done, uint64_t total) {
                                        EXPECT_GE(done, last);
                                        last = done;
                                        of = total;
                                        ++calls;
                                      }});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(last, of);
  EXPECT_GT(of, 1'000'000u);
  EXPECT_GT(calls, 8u);
}

// Two operations for each weight of the matrices: of the first five layers and what computes the
// layers' inputs for each token, of the three layers that store nothing and of the output for each
// token whose logits are asked for.
TEST(LoadedModelTest, CountsTheWorkOfATokenAndOfItsLogits) {
  const LoadedModel model = Must(LoadModel("tests/golden/models/gemma4-e-tiny-q4_0.gguf"));
  constexpr double kDim = 256, kInput = 2 * kDim * 32, kMlp = 3 * kDim * 64;
  constexpr double kSliding = kDim * 32 * (4 + 1 + 1 + 4), kFull = 2 * kSliding;
  EXPECT_EQ(model.engine->info().work.layers.ops,
            2 * (4 * kSliding + kFull + 5 * (kMlp + kInput) + kDim * 8 * 32));
  constexpr double kQueries = kDim * 32 * (4 + 4);
  EXPECT_EQ(model.engine->info().work.output.ops,
            2 * (2 * kQueries + 2 * kQueries + 3 * (2 * kMlp + kInput) + 512 * kDim));
}

}  // namespace
}  // namespace inlay

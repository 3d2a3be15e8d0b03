// Files whose vocabulary has more rows than their config says: fine-tunes add tokens, converters
// pad.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "gemma_like/files/pack.h"
#include "gemma_like/load_model.h"
#include "gemma_like/sessions/session.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "io/store/state_store_memory.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

constexpr size_t kAdded = 7;  // rows, of which the first kNamed have a token

constexpr size_t kNamed = 3;

// The demo model with more rows: copies of its first ones.
std::string WriteLargerBard() {
  const absl::StatusOr<GgufFile> file = GgufFile::Open(kBardPath);
  EXPECT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  for (const GgufEntry& entry : file->metadata()) {
    const std::string key(entry.key());
    if (key == "tokenizer.ggml.tokens") {
      std::vector<std::string> tokens;
      for (size_t i = 0; i < entry.value.size(); ++i) {
        tokens.emplace_back(entry.value.StringAt(i)->data(), entry.value.StringAt(i)->size());
      }
      for (size_t i = 0; i < kNamed; ++i) tokens.push_back("<added-" + std::to_string(i) + ">");
      writer.SetStrings(key, tokens);
    } else if (key == "tokenizer.ggml.scores") {
      std::vector<float> scores;
      for (size_t i = 0; i < entry.value.size(); ++i) {
        scores.push_back(static_cast<float>(*entry.value.FloatAt(i)));
      }
      scores.resize(scores.size() + kNamed, 0.0f);
      writer.SetFloat32s(key, scores);
    } else if (key == "tokenizer.ggml.token_type") {
      std::vector<int32_t> types;
      for (size_t i = 0; i < entry.value.size(); ++i) {
        types.push_back(static_cast<int32_t>(*entry.value.IntAt(i)));
      }
      constexpr int32_t kControl = 3;
      types.resize(types.size() + kNamed, kControl);
      writer.SetInt32s(key, types);
    } else {
      writer.SetValue(key, entry.value);
    }
  }
  const auto rows_of = [](const GgufTensor& tensor) {
    return tensor.name == "token_embd.weight" || tensor.name == "output.weight" ? kAdded : 0;
  };
  for (const GgufTensor& tensor : file->tensors()) {
    std::vector<uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
    if (rows_of(tensor) > 0) dims[1] += kAdded;
    EXPECT_TRUE(writer.AddTensor(tensor.name, dims, tensor.type).ok());
  }
  const std::string path = TempPath("larger.gguf");
  EXPECT_TRUE(writer.Open(path).ok());
  for (const GgufTensor& tensor : file->tensors()) {
    EXPECT_TRUE(writer.AppendData(tensor.data).ok());
    const size_t row_bytes = tensor.data.size() / tensor.dims[1];
    if (rows_of(tensor) > 0) {
      EXPECT_TRUE(writer.AppendData(tensor.data.first(kAdded * row_bytes)).ok());
    }
  }
  EXPECT_TRUE(writer.Finish().ok());
  return path;
}

TEST(VocabularyTest, TheFileSaysHowManyRowsThereAre) {
  const LoadedModel bard = LoadBard();
  const std::string path = WriteLargerBard();
  absl::StatusOr<LoadedModel> larger = LoadModel(path);
  ASSERT_TRUE(larger.ok()) << larger.status();
  const size_t vocab = bard.engine->info().vocab_size;
  const size_t larger_vocab = larger->engine->info().vocab_size;
  EXPECT_EQ(larger_vocab, vocab + kAdded);

  // The rows that both have give the same logits, and a copy of a row the same as the row.
  const auto tokens = bard.tokenizer->Encode("Shall I compare thee");
  ASSERT_TRUE(tokens.ok());
  auto cache = Must(bard.engine->CreateCache({}));
  auto larger_cache = Must(larger->engine->CreateCache({}));
  const std::vector<float> expected = Append(*bard.engine, *cache, *tokens);
  const std::vector<float> logits = Append(*larger->engine, *larger_cache, *tokens);
  for (size_t t = 0; t < tokens->size(); ++t) {
    for (size_t i = 0; i < larger_vocab; ++i) {
      ASSERT_EQ(logits[t * larger_vocab + i], expected[t * vocab + (i < vocab ? i : i - vocab)])
          << "token " << t << " logit " << i;
    }
  }

  // Tokens of the added rows are like any other, named or not; beyond them there is none.
  const auto first_added = static_cast<int32_t>(vocab);
  EXPECT_EQ(larger->tokenizer->size(), bard.tokenizer->size() + kNamed);
  Append(*larger->engine, *larger_cache, std::vector<int32_t>{first_added, first_added + 6});
  for (int32_t token : {first_added + 7, -1}) {
    const std::vector<int32_t> one = {token};
    const SequenceStep step{.cache = larger_cache.get(), .tokens = one, .logit_rows = 0};
    EXPECT_EQ(larger->engine->Forward({&step, 1}, FloatRows(nullptr, 0, larger_vocab)).code(),
              absl::StatusCode::kInvalidArgument);
  }

  // A conversation with them is saved and goes on, here and with the packed file.
  MemoryStore store;
  {
    auto writer = store.Put("added");
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(SaveSession(*larger->engine, *larger_cache, **writer).ok());
  }
  const std::string packed_path = TempPath("larger-packed.gguf");
  Team team(1);
  ASSERT_TRUE(WritePacked(*larger->file, team, packed_path).ok());
  absl::StatusOr<LoadedModel> packed = LoadModel(packed_path);
  ASSERT_TRUE(packed.ok()) << packed.status();
  const std::vector<float> next =
      Append(*larger->engine, *larger_cache, std::vector<int32_t>{first_added + 1});
  for (LoadedModel* model : {&*larger, &*packed}) {
    auto loaded = Must(model->engine->CreateCache({}));
    auto reader = store.Get("added");
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status status = LoadSession(*model->engine, **reader, *loaded);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Append(*model->engine, *loaded, std::vector<int32_t>{first_added + 1}), next);
  }
}

}  // namespace
}  // namespace inlay

// Conversations of the demo model in files, memory and other models' hands.
#include "gemma_like/sessions/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cache/model_identity.h"
#include "io/store/state_store.h"
#include "io/store/state_store_file.h"
#include "io/store/state_store_memory.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadBard();
    tokens_ = *model_.tokenizer->Encode(
        "Shall I compare thee to a summer's day? Thou art more lovely and more temperate: rough "
        "winds do shake the darling buds of May, and summer's lease hath all too short a date.");
  }

  std::unique_ptr<KVCache> NewCache() { return Must(model_.engine->CreateCache({})); }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  LoadedModel model_;
  std::vector<int32_t> tokens_;
};

TEST_F(SessionTest, GoesOnWhereItWasSaved) {
  MemoryStore memory;
  FileStore files(folder_);
  auto cache = NewCache();
  const auto all = absl::MakeConstSpan(tokens_);
  Append(*model_.engine, *cache, all.first(20));
  for (StateStore* store : {static_cast<StateStore*>(&memory), static_cast<StateStore*>(&files)}) {
    auto writer = store->Put("talk");
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(SaveSession(*model_.engine, *cache, **writer).ok());
  }
  const auto expected = Append(*model_.engine, *cache, all.subspan(20));
  for (StateStore* store : {static_cast<StateStore*>(&memory), static_cast<StateStore*>(&files)}) {
    auto reader = store->Get("talk");
    ASSERT_TRUE(reader.ok()) << reader.status();
    auto loaded = NewCache();
    ASSERT_TRUE(LoadSession(*model_.engine, **reader, *loaded).ok());
    EXPECT_EQ(loaded->length(), 20u);
    EXPECT_TRUE(Append(*model_.engine, *loaded, all.subspan(20)) == expected);
  }
}

// The same config with other weights: one byte somewhere is different.
TEST_F(SessionTest, OfOtherWeightsIsComputedAgain) {
  const std::string path = folder_ + "/other.gguf";
  std::filesystem::copy_file(kBardPath, path);
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  const long middle = static_cast<long>(std::filesystem::file_size(path) / 2);
  std::fseek(file, middle, SEEK_SET);
  const int byte = std::fgetc(file);
  std::fseek(file, middle, SEEK_SET);
  std::fputc(byte ^ 1, file);
  std::fclose(file);
  auto other = LoadModel(path);
  ASSERT_TRUE(other.ok()) << other.status();
  const uint64_t hash = Must(model_.engine->Identity()).weights_hash;
  EXPECT_NE(Must(other->engine->Identity()).weights_hash, hash);
  EXPECT_EQ(Must(LoadBard().engine->Identity()).weights_hash, hash);

  MemoryStore store;
  auto cache = NewCache();
  Append(*model_.engine, *cache, absl::MakeConstSpan(tokens_).first(20));
  auto writer = store.Put("talk");
  ASSERT_TRUE(SaveSession(*model_.engine, *cache, **writer).ok());
  auto theirs = Must(other->engine->CreateCache({}));
  auto reader = store.Get("talk");
  EXPECT_EQ(LoadSession(*other->engine, **reader, *theirs, {.exact = true}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(theirs->length(), 0u);
  reader = store.Get("talk");
  std::string why;
  ASSERT_TRUE(LoadSession(*other->engine, **reader, *theirs, {.on_recompute = [&](auto w, size_t) {
                why = std::string(w);
              }}).ok());
  EXPECT_EQ(why.substr(0, 31), "it is of weights with the hash ");
  EXPECT_EQ(theirs->tokens(), cache->tokens());
  // As if the other model had read them.
  auto straight = Must(other->engine->CreateCache({}));
  Append(*other->engine, *straight, absl::MakeConstSpan(tokens_).first(20));
  const auto rest = absl::MakeConstSpan(tokens_).subspan(20);
  EXPECT_TRUE(Append(*other->engine, *theirs, rest) == Append(*other->engine, *straight, rest));
}

// What the first release wrote, without the rows, which are of no use any more.
TEST_F(SessionTest, OfTheFirstReleaseIsComputedAgain) {
  auto reader = ReadStateFile("tests/gemma_like/sessions/testdata/session_version_2.bin");
  ASSERT_TRUE(reader.ok()) << reader.status();
  auto cache = NewCache();
  std::string why;
  ASSERT_TRUE(LoadSession(*model_.engine, **reader, *cache, {.on_recompute = [&](auto w, size_t) {
                why = std::string(w);
              }}).ok());
  EXPECT_EQ(why, "it has version 2 of the format, not 3");
  EXPECT_EQ(model_.tokenizer->Decode(cache->tokens()), "ROMEO:\nI'll tell thee, I'll be a");
}

// Whoever asks first computes what the thread behind has not.
TEST_F(SessionTest, HashedInTheBackgroundOrNot) {
  const uint64_t hash = Must(model_.engine->Identity()).weights_hash;
  for (int i = 0; i < 20; ++i) {
    auto model = LoadModel(kBardPath, {.hash_weights = true});
    ASSERT_TRUE(model.ok()) << model.status();
    if (i % 2 == 0) {
      EXPECT_EQ(Must(model->engine->Identity()).weights_hash, hash);
    }
  }
}

// A disk that is full: the older session is still there.
TEST_F(SessionTest, WriterThatFails) {
  class FullWriter final : public StateWriter {
   public:
    absl::Status Append(absl::Span<const uint8_t> bytes) override {
      left_ -= static_cast<int64_t>(bytes.size());
      return left_ < 0 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
    }
    absl::Status Commit() override {
      committed = true;
      return absl::OkStatus();
    }
    bool committed = false;

   private:
    int64_t left_ = 10'000;
  };
  auto cache = NewCache();
  Append(*model_.engine, *cache, absl::MakeConstSpan(tokens_).first(20));
  FullWriter writer;
  EXPECT_EQ(SaveSession(*model_.engine, *cache, writer).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(writer.committed);
}

}  // namespace
}  // namespace inlay

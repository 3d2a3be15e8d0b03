// Conversations of the demo model in files, memory and other models' hands.
#include "gemma_like/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/state_store.h"
#include "tests/gemma_like/model_fixture.h"

namespace inlay {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "inlay_session_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    model_ = LoadBard();
    tokens_ = *model_.tokenizer->Encode(
        "Shall I compare thee to a summer's day? Thou art more lovely and more temperate: rough "
        "winds do shake the darling buds of May, and summer's lease hath all too short a date.");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<KVCache> NewCache() { return model_.engine->CreateCache({}); }

  std::string folder_;
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

// The same config with other weights: the end of the last tensor is different.
TEST_F(SessionTest, OfAnotherModelIsRefused) {
  const std::string path = folder_ + "/other.gguf";
  std::filesystem::copy_file(kBardPath, path);
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, -200, SEEK_END);  // more than the padding at the end
  for (int i = 0; i < 200; ++i) std::fputc(0x3c, file);
  std::fclose(file);
  auto other = LoadModel(path);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(other->engine->info().weights_hash, model_.engine->info().weights_hash);
  EXPECT_EQ(LoadBard().engine->info().weights_hash, model_.engine->info().weights_hash);

  MemoryStore store;
  auto cache = NewCache();
  Append(*model_.engine, *cache, absl::MakeConstSpan(tokens_).first(20));
  auto writer = store.Put("talk");
  ASSERT_TRUE(SaveSession(*model_.engine, *cache, **writer).ok());
  auto theirs = other->engine->CreateCache({});
  auto reader = store.Get("talk");
  EXPECT_EQ(LoadSession(*other->engine, **reader, *theirs).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(theirs->length(), 0u);
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

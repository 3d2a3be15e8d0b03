// Files, states and lists of a hub while memory runs out: nothing is leaked or miscounted, and what
// ends takes none.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "io/file/mapped_file.h"
#include "io/file/mapping_guard.h"
#include "io/hub/ollama_folder.h"
#include "io/hub/repo_listing.h"
#include "io/store/state_store.h"
#include "io/store/state_store_memory.h"
#include "tests/failing_memory.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using failing_memory::Fault;

// Calls act() with each of its allocations failing in turn, from then on and once, and then without
// a failure. `check` is called after each with whether act() threw std::bad_alloc.
template <class Act, class Check>
void ForEachFailure(const Act& act, const Check& check) {
  int failures = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    bool failed = true;
    for (long allocation = 0; failed; ++allocation) {
      bool threw = false;
      failing_memory::FailAfter(allocation, fault);
      try {
        act();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      failing_memory::Stop();
      failed = failing_memory::has_failed;
      if (failed) ++failures;
      check(threw);
    }
  }
  EXPECT_GT(failures, 0) << "it takes no memory";
}

// The first descriptor that is free.
int FreeDescriptor() {
  const int fd = dup(STDERR_FILENO);
  close(fd);
  return fd;
}

TEST(MemoryTest, AFileThatCannotBeMappedIsClosed) {
  const TempFolder folder;
  const std::string path = folder.Path("x");
  std::ofstream(path) << "some bytes";
  const int free = FreeDescriptor();
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  // Each that lives has memory of its own for what guards it.
  std::vector<MappedFile> kept;
  kept.reserve(1000);
  ForEachFailure(
      [&] {
        auto file = MappedFile::Open(path);
        if (file.ok()) kept.push_back(*std::move(file));
      },
      [&](bool) { EXPECT_EQ(FreeDescriptor(), free + static_cast<int>(kept.size())); });
  EXPECT_TRUE(IsMapped(info.st_dev, info.st_ino));
  kept.clear();
  EXPECT_FALSE(IsMapped(info.st_dev, info.st_ino));
  EXPECT_EQ(FreeDescriptor(), free);
}

TEST(MemoryTest, AStateWithoutMemoryIsNotCounted) {
  MemoryStore store;
  uint64_t bytes = 0;
  int states = 0;
  std::unique_ptr<StateWriter> writer;
  const std::vector<uint8_t> state(100);
  const auto next = [&] {
    // A key that is longer than what a string holds without memory of its own.
    writer = Must(store.Put(absl::StrCat("the-key-of-a-state-", states++)));
    EXPECT_TRUE(writer->Append(state).ok());
  };
  next();
  ForEachFailure([&] { EXPECT_TRUE(writer->Commit().ok()); },
                 [&](bool threw) {
                   if (!threw) bytes += state.size();
                   EXPECT_EQ(store.bytes(), bytes);
                   next();
                 });
  EXPECT_EQ(bytes, 2 * state.size());
}

// Lists and objects in each other, as nlohmann's values of such take memory when they end.
TEST(MemoryTest, AListOfAHubEndsWithoutMemory) {
  std::string json = absl::StrCat("{\"sha\":\"", std::string(40, 'a'), "\",\"siblings\":[");
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", "{\"rfilename\":\"a file with a long name ", i,
                    ".gguf\",\"lfs\":{\"size\":1,\"other\":[[[1],2]]}}");
  }
  json += "]}";
  ForEachFailure(
      [&] { EXPECT_TRUE(ParseRepoListing("user/repo", json).ok() || failing_memory::has_failed); },
      [](bool) {});
}

// std::filesystem's iterators would end the process.
TEST(MemoryTest, OllamasModelsAreListedWithoutMemory) {
  const TempFolder folder;
  const std::string names = folder.Path("manifests/registry.ollama.ai/library/a-long-name-of-it");
  std::filesystem::create_directories(names);
  const std::string digest(64, 'd');
  std::filesystem::create_directories(folder.Path("blobs"));
  std::ofstream(folder.Path("blobs/sha256-" + digest)) << "GGUF";
  std::ofstream(names + "/a-long-name-of-a-tag")
      << R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)"
      << digest << "\"}]}";
  const int free = FreeDescriptor();
  std::vector<LocalModel> models;
  ForEachFailure([&] { models = ListOllamaModels(folder.path()); },
                 [&](bool) { EXPECT_EQ(FreeDescriptor(), free); });
  // The last time there was memory for all.
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].problem, "");
}

}  // namespace
}  // namespace inlay

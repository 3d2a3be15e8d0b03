#include "io/hub/repo_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

const std::string kCommit(40, 'c');
const std::string kSha256(64, 'a');

TEST(RepoListing, ReadsModelFilesWithTheirHashes) {
  const auto listing = ParseRepoListing(
      "u/r", absl::StrCat(R"({"sha": ")", kCommit, R"(", "other": [1], "siblings": [
        {"rfilename": "README.md", "size": 3},
        {"rfilename": "a.gguf", "size": 9, "blobId": "x", "lfs": {"sha256": ")",
                          kSha256,
                          R"(", "size": 7}},
        {"rfilename": "b.gguf", "size": 9, "blobId": ")",
                          kCommit, R"("},
        {"rfilename": "c.GGUF"}]})"));
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 3u);
  EXPECT_EQ(listing->files[0].path, "a.gguf");
  EXPECT_EQ(listing->files[0].size, 7u);
  EXPECT_EQ(listing->files[0].hash, kSha256);
  EXPECT_EQ(listing->files[1].size, 9u);
  EXPECT_EQ(listing->files[1].hash, kCommit);
  EXPECT_EQ(listing->files[2].size, std::nullopt);
  EXPECT_EQ(listing->files[2].hash, "");
}

TEST(RepoListing, TakesNoHashThatIsNone) {
  for (const char* lfs : {R"({"sha256": "../../x", "size": -1})", R"({"sha256": 7, "size": "7"})",
                          R"({"sha256": "AAAA", "size": 1.5})", "{}"}) {
    const auto listing = ParseRepoListing(
        "u/r", absl::StrCat(R"({"sha": ")", kCommit,
                            R"(", "siblings": [{"rfilename": "a.gguf", "lfs": )", lfs, "}]}"));
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_EQ(listing->files[0].hash, "");
    EXPECT_EQ(listing->files[0].size, std::nullopt);
  }
}

// Whatever the bytes: a list, or a sentence.
TEST(RepoListing, SurvivesAnyBytes) {
  const std::string good = absl::StrCat(R"({"sha": ")", kCommit,
                                        R"(", "siblings": [{"rfilename": "a.gguf", "size": 9,)"
                                        R"( "lfs": {"sha256": ")",
                                        kSha256, R"(", "size": 7}}]})");
  ASSERT_TRUE(ParseRepoListing("u/r", good).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random() % 3); changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (i % 4 == 0) bytes.resize(random() % bytes.size());
    const auto listing = ParseRepoListing("u/r", bytes);
    if (listing.ok()) {
      EXPECT_EQ(listing->commit.size(), 40u);
    } else {
      EXPECT_FALSE(listing.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace inlay

// Which files a pull gets, where it puts them, and which it shows.
#include "io/download/pull_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "io/hub/hub_name.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/download/hub_test.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using PullModelTest = HubTest;

TEST_F(PullModelTest, KeepsTheLayoutOfTheCache) {
  const std::string hash = server_.AddFile("sub/deep/" + std::string(kFile), bytes_);
  const auto model = Pull();
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string repo = Path("hub/models--user--repo");
  const std::string link = absl::StrCat(repo, "/snapshots/", kHubCommit, "/sub/deep/", kFile);
  EXPECT_THAT(model->files, ElementsAre(link));
  EXPECT_EQ(fs::read_symlink(link), "../../../../blobs/" + hash);
  EXPECT_TRUE(Contents(link) == bytes_);
  EXPECT_EQ(Contents(repo + "/refs/main"), kHubCommit);
  EXPECT_THAT(Files("blobs"), ElementsAre(hash));
  EXPECT_EQ(model->type, "Q4_K_M");
  EXPECT_EQ(model->transferred, bytes_.size());
  EXPECT_EQ(done_, bytes_.size());
  EXPECT_THAT(notes_, IsEmpty());

  // The second pull asks for the list alone.
  const size_t before = server_.requests().size();
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.requests().size(), before + 1);
}

TEST_F(PullModelTest, TakesFilesThatOtherToolsFetched) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  Make("hub/models--user--repo/blobs/" + hash, bytes_);
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.downloads(), 0u);
  EXPECT_THAT(Files("snapshots"), ElementsAre(kFile));
}

TEST_F(PullModelTest, PullsAllPartsOfASplitModelOrShowsNone) {
  std::vector<std::string> parts;
  for (int i = 1; i <= 3; ++i) {
    parts.push_back(SomeBytes(50'000, i));
    server_.AddFile(absl::StrCat("Q4_K_M/big-Q4_K_M-0000", i, "-of-00003.gguf"), parts.back());
  }
  // The last part's host fails.
  const std::string last = Sha256(parts[2]);
  Refuse(kHubCdn + last, 500);
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("cannot reply at the moment (HTTP 500)"));
  EXPECT_THAT(Files("blobs"), UnorderedElementsAre(Sha256(parts[0]), Sha256(parts[1])));
  server_.SetChange(nullptr);
  const auto model = Pull("user/repo:q4_k_m");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->files.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(Contents(model->files[i]) == parts[i]);
  EXPECT_EQ(model->bytes, 150'000u);
  EXPECT_EQ(model->transferred, 50'000u);
}

TEST_F(PullModelTest, BoundsAndReadsLists) {
  using Code = absl::StatusCode;
  ReplyWithList("<html>");
  ExpectError(Code::kInvalidArgument, HasSubstr("the hub's reply for user/repo is not JSON"));
  ReplyWithList("[]");
  ExpectError(Code::kInvalidArgument, HasSubstr("names no commit"));
  ReplyWithList("{\"sha\": \"../../../../etc\", \"siblings\": []}");
  ExpectError(Code::kInvalidArgument, HasSubstr("names no commit"));
  ReplyWithList(ListJson("{}"));
  ExpectError(Code::kInvalidArgument, HasSubstr("has no list 'siblings'"));
  ReplyWithList(ListJson("[1, null, {}, {\"rfilename\": 7}]"));
  ExpectError(Code::kNotFound, HasSubstr("has no model in GGUF"));
  ReplyWithList(std::string(100'000, '['));
  ExpectError(Code::kInvalidArgument, HasSubstr("nests deeper than"));
  ReplyWithList(std::string((size_t{32} << 20) + 1, ' '));
  ExpectError(Code::kInvalidArgument, HasSubstr("is longer than 33554432 bytes"));
  std::string many = "[0";
  for (int i = 0; i < 100'000; ++i) many += ",0";
  ReplyWithList(ListJson(many + "]"));
  ExpectError(Code::kInvalidArgument, HasSubstr("lists more than 100000 files"));
  ReplyWithList(ListJson("[{\"rfilename\": \"a-00001-of-00002.gguf\"}]"));
  ExpectError(Code::kDataLoss, HasSubstr("has 1 of the 2 parts"));
}

TEST_F(PullModelTest, AsksForHashesThatAListLacks) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  const std::string list = ListJson(absl::StrCat("[{\"rfilename\": \"", kFile, "\"}]"));
  ReplyWithList(list);
  ExpectPulled(bytes_);
  EXPECT_THAT(Files("blobs"), ElementsAre(hash));
  EXPECT_EQ(server_.requests()[1].method, "HEAD");
  // Nor does the file's own reply have them.
  fs::remove_all(Path("hub"));
  ReplyWithList(list, [](const HubServerRequest&, HubServerReply& reply) {
    reply.headers.erase("X-Linked-Etag");
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, HasSubstr("no size and hash"));
}

TEST_F(PullModelTest, WorksWithoutTheNetwork) {
  server_.AddFile(kFile, bytes_);
  options_.access.offline = true;
  const size_t before = server_.requests().size();
  ExpectError(absl::StatusCode::kNotFound, AllOf(HasSubstr("HF_HUB_OFFLINE is set, and the cache"),
                                                 HasSubstr("has no user/repo")));
  EXPECT_EQ(server_.requests().size(), before);
  options_.access.offline = false;
  ExpectPulled(bytes_);
  options_.access.offline = true;
  ExpectPulled(bytes_);
  ExpectPulled(bytes_, "user/repo:Q4_K_M");
  EXPECT_THAT(notes_, ElementsAre("HF_HUB_OFFLINE is set; using the files in the cache"));
  const auto other = Pull("user/repo:Q8_0");
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("the cached user/repo has no 'Q8_0'; it has Q4_K_M"));

  // The network is gone: nobody listens there. Nothing waits, as the files are here.
  options_.access.offline = false;
  options_.retry.first_wait = absl::Hours(1);
  endpoint_ = "http://127.0.0.1:1";
  notes_.clear();
  options_.access.endpoint = endpoint_;
  const auto model = PullModel(HubName::Parse("user/repo").value(), options_,
                               {.note = [&](const std::string& note) { notes_.push_back(note); }});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Contents(model->files[0]) == bytes_);
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("127.0.0.1"),
                                        HasSubstr("; using the files in the cache"))));
}

// The list says that there is a newer file, and no host sends it.
TEST_F(PullModelTest, KeepsToTheCacheWhereTheDownloadFails) {
  server_.AddFile(kFile, bytes_);
  ExpectPulled(bytes_);
  HubServer newer;
  const std::string bytes = SomeBytes(300'000, 2);
  newer.AddFile(kFile, bytes);
  endpoint_ = newer.url();
  for (const int status : {429, 503}) {
    newer.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (IsDownload(request)) reply = {.status = status, .headers = {{"Content-Length", "0"}}};
    });
    ExpectPulled(bytes_);
    EXPECT_THAT(notes_.back(), AllOf(HasSubstr(absl::StrCat("HTTP ", status)),
                                     HasSubstr("; using the files in the cache")));
  }
  newer.SetChange(nullptr);
  ExpectPulled(bytes);
}

TEST_F(PullModelTest, RefusesNamesThatLeaveTheFolder) {
  for (const char* path :
       {"../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "a//b.gguf", "./b.gguf",
        "a\\u0000b.gguf", "a\\nb.gguf", "a\\u001b[31m.gguf", "..\\\\evil.gguf"}) {
    ReplyWithList(ListJson(absl::StrCat("[{\"rfilename\": \"", path,
                                        "\", \"lfs\": {\"size\": 3, \"sha256\": \"", Sha256("abc"),
                                        "\"}}]")));
    ExpectError(absl::StatusCode::kInvalidArgument, HasSubstr("is refused"));
  }
  EXPECT_FALSE(fs::exists(Path("hub")));
}

// What lies in the way of folders is not followed.
TEST_F(PullModelTest, FollowsNoLinksInTheCache) {
  const std::string hash = server_.AddFile("sub/" + std::string(kFile), bytes_);
  fs::create_directories(Path("elsewhere"));
  const std::string snapshot = absl::StrCat("hub/models--user--repo/snapshots/", kHubCommit);
  fs::create_directories(Path(snapshot));
  fs::create_directory_symlink(Path("elsewhere"), Path(snapshot + "/sub"));
  auto model = Pull();
  EXPECT_EQ(model.status().code(), absl::StatusCode::kFailedPrecondition) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("is in the way"));
  EXPECT_TRUE(fs::is_empty(Path("elsewhere")));
  fs::remove(Path(snapshot + "/sub"));
  // A link where the bytes would go.
  fs::remove(Blob(hash));
  Make("victim", "precious");
  fs::create_symlink(Path("victim"), Blob(hash + ".incomplete"));
  model = Pull();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(".incomplete cannot be opened"));
  EXPECT_EQ(Contents(Path("victim")), "precious");
  fs::remove(Blob(hash + ".incomplete"));
  ExpectPulled(bytes_);
}

// A cache, or a part of it, may be kept on another disk.
TEST_F(PullModelTest, WritesThroughLinksToWholeFolders) {
  server_.AddFile(kFile, bytes_);
  for (const char* folder :
       {"hub", "hub/.locks", "hub/models--user--repo", "hub/models--user--repo/blobs"}) {
    for (const char* name : {"hub", "elsewhere"}) fs::remove_all(Path(name));
    fs::create_directories(Path("elsewhere"));
    fs::create_directories(fs::path(Path(folder)).parent_path());
    fs::create_directory_symlink(Path("elsewhere"), Path(folder));
    ExpectPulled(bytes_);
    EXPECT_TRUE(fs::is_symlink(Path(folder))) << folder;
    EXPECT_FALSE(fs::is_empty(Path("elsewhere"))) << folder;
  }
}

}  // namespace
}  // namespace inlay

// Downloads that break off, that are wrong, and that others make too.
#include "io/download/fetch_blob.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/download/pull_model.h"
#include "io/hub/hub_name.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/download/hub_test.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using FetchBlobTest = HubTest;

TEST_F(FetchBlobTest, GoesOnWhereAConnectionBroke) {
  server_.AddFile(kFile, bytes_);
  ChangeDownloads(3, [](int, HubServerReply& reply) { reply.cut = 70'000; });
  ExpectPulled(bytes_);
  std::vector<std::string> ranges;
  for (const HubServerRequest& request : server_.requests()) {
    if (IsDownload(request)) ranges.push_back(request.Header("range"));
  }
  EXPECT_THAT(ranges, ElementsAre("", "bytes=70000-", "bytes=140000-", "bytes=210000-"));
  EXPECT_EQ(notes_.size(), 3u);
}

TEST_F(FetchBlobTest, GivesUpAfterAttemptsWithoutProgressAndGoesOnInAnotherPull) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  ChangeDownloads(1000, [](int i, HubServerReply& reply) { reply.cut = i == 0 ? 100'000 : 0; });
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("localhost"));
  EXPECT_EQ(server_.downloads(), 5u);
  EXPECT_THAT(Files("blobs"), ElementsAre(hash + ".incomplete"));
  EXPECT_EQ(fs::file_size(Blob(hash + ".incomplete")), 100'000u);
  server_.SetChange(nullptr);
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.requests().back().Header("range"), "bytes=100000-");
}

TEST_F(FetchBlobTest, EndsWhereItIsCancelledAndGoesOnInAnotherPull) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  cancel_at_ = 1000;
  ExpectError(absl::StatusCode::kCancelled, HasSubstr("cancelled"));
  EXPECT_EQ(server_.downloads(), 1u);
  EXPECT_GE(fs::file_size(Blob(hash + ".incomplete")), 1000u);
  EXPECT_LT(fs::file_size(Blob(hash + ".incomplete")), bytes_.size());
  cancel_at_ = std::numeric_limits<uint64_t>::max();
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.downloads(), 2u);
  EXPECT_NE(server_.requests().back().Header("range"), "");
}

TEST_F(FetchBlobTest, StartsOverWhereAServerIgnoresRanges) {
  server_.AddFile(kFile, bytes_);
  ChangeDownloads(2, [this](int i, HubServerReply& reply) {
    if (i == 0) {
      reply.cut = 1000;
    } else {
      reply = {.headers = {{"Content-Length", absl::StrCat(bytes_.size())}}, .body = bytes_};
    }
  });
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.downloads(), 2u);
}

// What comes once more is no progress.
TEST_F(FetchBlobTest, GivesUpWhereAServerStartsOverAndBreaksOff) {
  server_.AddFile(kFile, bytes_);
  ChangeDownloads(1000, [this](int i, HubServerReply& reply) {
    reply = {.headers = {{"Content-Length", absl::StrCat(bytes_.size())}}, .body = bytes_};
    reply.cut = i % 2 == 0 ? 100'000 : 0;
  });
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("localhost"));
  EXPECT_LE(server_.downloads(), 6u);
}

TEST_F(FetchBlobTest, StartsOverWhereARangeIsAnotherOne) {
  server_.AddFile(kFile, bytes_);
  ChangeDownloads(2, [](int i, HubServerReply& reply) {
    if (i == 0) {
      reply.cut = 1000;
    } else {
      reply.headers["Content-Range"] = "bytes 0-299999/300000";
    }
  });
  ExpectPulled(bytes_);
  EXPECT_EQ(server_.requests().back().Header("range"), "");
}

TEST_F(FetchBlobTest, StartsOverWhereTheRestIsRefused) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  Make("hub/models--user--repo/blobs/" + hash + ".incomplete", bytes_.substr(0, 1000));
  ChangeDownloads(1, [](int, HubServerReply& reply) {
    reply = {.status = 416, .headers = {{"Content-Length", "0"}}};
  });
  ExpectPulled(bytes_);
}

TEST_F(FetchBlobTest, RefusesDamagedBytesAndKeepsNone) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  ChangeDownloads(1, [](int, HubServerReply& reply) { reply.body[200'000] ^= 1; });
  ExpectError(absl::StatusCode::kDataLoss,
              AllOf(HasSubstr("user/repo, model-Q4_K_M.gguf arrived damaged"), HasSubstr(hash)));
  EXPECT_THAT(Files("blobs"), IsEmpty());
  ExpectPulled(bytes_);
}

TEST_F(FetchBlobTest, StartsOverWhereWhatWasLeftIsDamaged) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  for (const std::string& left : {std::string(1000, 'x'), bytes_.substr(0, 299'999) + "x",
                                  std::string(bytes_.size(), 'x'), bytes_ + "more"}) {
    Make("hub/models--user--repo/blobs/" + hash + ".incomplete", left);
    ExpectPulled(bytes_);
    fs::remove(Blob(hash));
  }
  // Half of it there, and the other half damaged once more.
  Make("hub/models--user--repo/blobs/" + hash + ".incomplete", std::string(1000, 'x'));
  ChangeDownloads(2, [](int, HubServerReply& reply) { reply.body.back() ^= 1; });
  const auto model = Pull();
  EXPECT_EQ(model.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Files("blobs"), IsEmpty());
}

TEST_F(FetchBlobTest, TakesABlobOfAnotherSizeForNone) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  Make("hub/models--user--repo/blobs/" + hash, bytes_.substr(1));
  ExpectPulled(bytes_);
}

TEST_F(FetchBlobTest, RefusesLengthsThatContradictTheHub) {
  server_.AddFile(kFile, bytes_);
  for (const char* length : {"299999", "300001", "0"}) {
    ChangeDownloads(1,
                    [=](int, HubServerReply& reply) { reply.headers["Content-Length"] = length; });
    ExpectError(absl::StatusCode::kFailedPrecondition,
                AllOf(HasSubstr(absl::StrCat("sends ", length, " bytes")), HasSubstr("300000")));
  }
  // Without a length, and more bytes than there should be.
  ChangeDownloads(1, [](int, HubServerReply& reply) {
    reply.headers.erase("Content-Length");
    reply.body += "more";
  });
  ExpectError(absl::StatusCode::kDataLoss, HasSubstr("more than the 300000 bytes"));
  EXPECT_THAT(Files("blobs"), IsEmpty());
  // Without one, and the right bytes, at the second attempt.
  ChangeDownloads(2, [](int i, HubServerReply& reply) {
    reply.headers.erase("Content-Length");
    if (i == 0) reply.cut = 12'345;
  });
  ExpectPulled(bytes_);
}

TEST_F(FetchBlobTest, RefusesHeadersThatContradictTheList) {
  server_.AddFile(kFile, bytes_);
  const std::pair<const char*, std::string> wrong[] = {
      {"X-Linked-Size", "299999"},
      {"X-Linked-Etag", "\"" + std::string(64, 'a') + "\""},
      {"X-Repo-Commit", std::string(40, 'a')}};
  for (const auto& [header, value] : wrong) {
    server_.SetChange(
        [header = header, value = value](const HubServerRequest& request, HubServerReply& reply) {
          if (absl::StrContains(request.target, "/resolve/")) reply.headers[header] = value;
        });
    ExpectError(absl::StatusCode::kFailedPrecondition, HasSubstr("contradicts itself"));
  }
  EXPECT_EQ(server_.downloads(), 0u);
}

// What lies between may make an etag a weak one.
TEST_F(FetchBlobTest, TakesAWeakEtag) {
  server_.AddFile(kFile, bytes_);
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/resolve/"))
      reply.headers["X-Linked-Etag"] = "W/" + reply.headers["X-Linked-Etag"];
  });
  ExpectPulled(bytes_);
}

// A file that is in Git itself: the hub has no SHA-256 of it.
TEST_F(FetchBlobTest, ChecksGitsHashes) {
  const std::string text = "hello\n";
  server_.AddFile(kFile, text);
  const std::string git_hash = "ce013625030ba8dba906f756967f9e9ca394464a";
  for (const std::string& hash : {std::string(40, 'b'), git_hash}) {
    ReplyWithList(ListJson(absl::StrCat("[{\"rfilename\": \"", kFile,
                                        "\", \"size\": 6, \"blobId\": \"", hash, "\"}]")),
                  [=](const HubServerRequest& request, HubServerReply& reply) {
                    if (!absl::StrContains(request.target, "/resolve/")) return;
                    reply = {.headers = {{"ETag", "\"" + hash + "\""}}, .body = text};
                    reply.headers["Content-Length"] = absl::StrCat(text.size());
                  });
    if (hash != git_hash) ExpectError(absl::StatusCode::kDataLoss, HasSubstr(git_hash));
  }
  ExpectPulled(text);
  EXPECT_THAT(Files("blobs"), ElementsAre(git_hash));
}

TEST_F(FetchBlobTest, TwoPullsShareTheWork) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  std::atomic<bool> begun = false;
  std::atomic<bool> may_end = false;
  server_.SetChange([&](const HubServerRequest& request, HubServerReply&) {
    if (!IsDownload(request)) return;
    begun = true;
    EXPECT_TRUE(WaitUntil([&] { return may_end.load(); }));
  });
  const HubName name = HubName::Parse("user/repo").value();
  options_.access.endpoint = server_.url();
  options_.cache_folder = Path("hub");
  std::thread first([&] { EXPECT_TRUE(PullModel(name, options_, {}).ok()); });
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  // The second waits for the first, and says so, before the first may end.
  const auto second = PullModel(name, options_, {.note = [&](const std::string& note) {
                                  EXPECT_THAT(note, HasSubstr("another program is getting"));
                                  may_end = true;
                                }});
  first.join();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->transferred, 0u);
  EXPECT_TRUE(Contents(second->files[0]) == bytes_);
  EXPECT_EQ(server_.downloads(), 1u);
}

// The lock is that of huggingface_hub: flock() on .locks/models--USER--REPO/HASH.lock.
TEST_F(FetchBlobTest, HonoursTheLockOfOtherTools) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Path("hub/.locks/models--user--repo"));
  const std::string path = Path("hub/.locks/models--user--repo/" + hash + ".lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  options_.access.endpoint = server_.url();
  options_.cache_folder = Path("hub");
  const auto model = PullModel(HubName::Parse("user/repo").value(), options_,
                               {.note = [&](const std::string& note) {
                                 notes_.push_back(note);
                                 flock(fd, LOCK_UN);
                               }});
  close(fd);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("another program is getting user/repo"),
                                        HasSubstr("waiting for it"))));
}

TEST_F(FetchBlobTest, EndsWhereItIsCancelledWhileItWaitsForALock) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Path("hub/.locks/models--user--repo"));
  const std::string path = Path("hub/.locks/models--user--repo/" + hash + ".lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  // A pull that goes on waiting gets the lock in the end, so that the test ends, too.
  std::promise<void> ended;
  std::thread holder([fd, end = ended.get_future()] {
    end.wait_for(kLongWait);
    close(fd);
  });
  cancel_at_ = 0;
  ExpectError(absl::StatusCode::kCancelled, HasSubstr("cancelled"));
  ended.set_value();
  holder.join();
  EXPECT_EQ(server_.downloads(), 0u);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("another program is getting user/repo")));
}

}  // namespace
}  // namespace inlay

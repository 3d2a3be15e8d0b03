// Pulls from a server that behaves as the hub does, and as it should not.
#include "io/download/pull_model.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kFile[] = "model-Q4_K_M.gguf";

bool IsDownload(const HubServerRequest& request) {
  return absl::StartsWith(request.target, kHubCdn);
}

class PullModelTest : public FolderTest<> {
 protected:
  absl::StatusOr<PulledModel> Pull(const std::string& name = "user/repo") {
    notes_.clear();
    options_.access.endpoint = endpoint_.empty() ? server_.url() : endpoint_;
    options_.cache_folder = Path("hub");
    options_.retry.first_wait = absl::Milliseconds(1);
    return PullModel(HubName::Parse(name).value(), options_,
                     {.note = [this](const std::string& note) { notes_.push_back(note); },
                      .progress =
                          [this](uint64_t done, uint64_t total) {
                            EXPECT_LE(done, total);
                            done_ = done;
                          }});
  }

  // Pulls, and expects one file with these bytes.
  void ExpectPulled(const std::string& bytes, const std::string& name = "user/repo") {
    const auto model = Pull(name);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_EQ(model->files.size(), 1u);
    EXPECT_TRUE(Contents(model->files[0]) == bytes);
    EXPECT_EQ(model->bytes, bytes.size());
  }

  void ExpectError(const testing::Matcher<absl::StatusCode>& code,
                   const testing::Matcher<std::string>& message,
                   const std::string& name = "user/repo") {
    const auto model = Pull(name);
    EXPECT_THAT(model.status().code(), code) << model.status();
    EXPECT_THAT(std::string(model.status().message()), message);
    EXPECT_THAT(Files("snapshots"), IsEmpty());
  }

  // The names in a folder of the repository, in order.
  std::vector<std::string> Files(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry :
         fs::recursive_directory_iterator(Path("hub/models--user--repo/" + folder), error)) {
      if (!entry.is_directory()) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string Blob(const std::string& name) const {
    return Path("hub/models--user--repo/blobs/" + name);
  }

  // Changes the first `count` replies with a file's bytes, which are counted from 0.
  void ChangeDownloads(int count, std::function<void(int, HubServerReply&)> change) {
    const auto seen = std::make_shared<std::atomic<int>>(0);
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (!IsDownload(request)) return;
      if (const int i = (*seen)++; i < count) change(i, reply);
    });
  }

  // Replies to requests whose target contains `part` with this status.
  void Refuse(const std::string& part, int status,
              std::map<std::string, std::string> headers = {}) {
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (!absl::StrContains(request.target, part)) return;
      reply = {.status = status, .headers = headers, .body = "no"};
      reply.headers["Content-Length"] = "2";
    });
  }

  const std::string bytes_ = SomeBytes(300'000);
  HubServer server_;
  std::string endpoint_;  // empty: the server's
  PullOptions options_;
  std::vector<std::string> notes_;
  uint64_t done_ = 0;
};

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

TEST_F(PullModelTest, GoesOnWhereAConnectionBroke) {
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

TEST_F(PullModelTest, GivesUpAfterAttemptsWithoutProgressAndGoesOnInAnotherPull) {
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

TEST_F(PullModelTest, StartsOverWhereAServerIgnoresRanges) {
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
TEST_F(PullModelTest, GivesUpWhereAServerStartsOverAndBreaksOff) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  ChangeDownloads(1000, [this](int i, HubServerReply& reply) {
    reply = {.headers = {{"Content-Length", absl::StrCat(bytes_.size())}}, .body = bytes_};
    reply.cut = i % 2 == 0 ? 100'000 : 0;
  });
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("localhost"));
  EXPECT_LE(server_.downloads(), 6u);
}

TEST_F(PullModelTest, StartsOverWhereARangeIsAnotherOne) {
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

TEST_F(PullModelTest, StartsOverWhereTheRestIsRefused) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  Make("hub/models--user--repo/blobs/" + hash + ".incomplete", bytes_.substr(0, 1000));
  ChangeDownloads(1, [](int, HubServerReply& reply) {
    reply = {.status = 416, .headers = {{"Content-Length", "0"}}};
  });
  ExpectPulled(bytes_);
}

TEST_F(PullModelTest, RefusesDamagedBytesAndKeepsNone) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  ChangeDownloads(1, [](int, HubServerReply& reply) { reply.body[200'000] ^= 1; });
  ExpectError(absl::StatusCode::kDataLoss,
              AllOf(HasSubstr("user/repo, model-Q4_K_M.gguf arrived damaged"), HasSubstr(hash)));
  EXPECT_THAT(Files("blobs"), IsEmpty());
  ExpectPulled(bytes_);
}

TEST_F(PullModelTest, StartsOverWhereWhatWasLeftIsDamaged) {
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

TEST_F(PullModelTest, TakesABlobOfAnotherSizeForNone) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Blob(""));
  Make("hub/models--user--repo/blobs/" + hash, bytes_.substr(1));
  ExpectPulled(bytes_);
}

TEST_F(PullModelTest, RefusesLengthsThatContradictTheHub) {
  const std::string hash = server_.AddFile(kFile, bytes_);
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

TEST_F(PullModelTest, RefusesHeadersThatContradictTheList) {
  const std::string hash = server_.AddFile(kFile, bytes_);
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

TEST_F(PullModelTest, AsksForHashesThatAListLacks) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (!absl::StrContains(request.target, "/api/")) return;
    reply.body = absl::StrCat("{\"sha\": \"", kHubCommit, "\", \"siblings\": [{\"rfilename\": \"",
                              kFile, "\"}]}");
    reply.headers["Content-Length"] = absl::StrCat(reply.body.size());
  });
  ExpectPulled(bytes_);
  EXPECT_THAT(Files("blobs"), ElementsAre(hash));
  EXPECT_EQ(server_.requests()[1].method, "HEAD");
  // Nor does the file's own reply have them.
  fs::remove_all(Path("hub"));
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/api/")) {
      reply.body = absl::StrCat("{\"sha\": \"", kHubCommit, "\", \"siblings\": [{\"rfilename\": \"",
                                kFile, "\"}]}");
      reply.headers["Content-Length"] = absl::StrCat(reply.body.size());
    }
    reply.headers.erase("X-Linked-Etag");
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, HasSubstr("no size and hash"));
}

// A file that is in Git itself: the hub has no SHA-256 of it.
TEST_F(PullModelTest, ChecksGitsHashes) {
  const std::string text = "hello\n";
  server_.AddFile(kFile, text);
  const std::string git_hash = "ce013625030ba8dba906f756967f9e9ca394464a";
  for (const std::string& hash : {std::string(40, 'b'), git_hash}) {
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (absl::StrContains(request.target, "/api/")) {
        reply.body =
            absl::StrCat("{\"sha\": \"", kHubCommit, "\", \"siblings\": [{\"rfilename\": \"", kFile,
                         "\", \"size\": 6, \"blobId\": \"", hash, "\"}]}");
      } else if (absl::StrContains(request.target, "/resolve/")) {
        reply = {.headers = {{"ETag", "\"" + hash + "\""}}, .body = text};
      }
      reply.headers["Content-Length"] = absl::StrCat(reply.body.size());
    });
    if (hash != git_hash) ExpectError(absl::StatusCode::kDataLoss, HasSubstr(git_hash));
  }
  ExpectPulled(text);
  EXPECT_THAT(Files("blobs"), ElementsAre(git_hash));
}

TEST_F(PullModelTest, SaysWhatARefusalMeans) {
  server_.AddFile(kFile, bytes_);
  using Code = absl::StatusCode;
  Refuse("/api/", 401, {{"X-Error-Message", "Invalid username or password.\x1b[31m"}});
  ExpectError(Code::kPermissionDenied,
              AllOf(HasSubstr("no user/repo for everybody"), HasSubstr("set HF_TOKEN"),
                    HasSubstr("HTTP 401"), HasSubstr("\\u001b")));
  Refuse("/resolve/", 403, {{"X-Error-Code", "GatedRepo"}});
  ExpectError(Code::kPermissionDenied,
              AllOf(HasSubstr("user/repo, model-Q4_K_M.gguf is gated"),
                    HasSubstr(server_.url() + "/user/repo"), HasSubstr("set HF_TOKEN")));
  options_.access.token = "hf_secret";
  ExpectError(Code::kPermissionDenied, HasSubstr("as the user whose token is set"));
  Refuse("/api/", 401);
  ExpectError(Code::kPermissionDenied, HasSubstr("does not let the token's user read user/repo"));
  Refuse("/api/", 404);
  ExpectError(Code::kNotFound, HasSubstr("has no user/repo (HTTP 404)"));
  Refuse("/resolve/", 404);
  ExpectError(Code::kNotFound, HasSubstr("has no user/repo, model-Q4_K_M.gguf"));
  Refuse("/api/", 418);
  ExpectError(Code::kFailedPrecondition, HasSubstr("HTTP 418"));
  Refuse("/api/", 204);
  ExpectError(Code::kInvalidArgument, HasSubstr("is not JSON"));
  Refuse(kHubCdn, 204);
  ExpectError(Code::kFailedPrecondition, HasSubstr("HTTP 204"));
  EXPECT_THAT(Files("blobs"), IsEmpty());
}

TEST_F(PullModelTest, WaitsWhereItIsAskedTo) {
  server_.AddFile(kFile, bytes_);
  const auto left = std::make_shared<std::atomic<int>>(2);
  for (const std::string part : {"/api/", "/resolve/", kHubCdn}) {
    fs::remove_all(Path("hub"));
    *left = 2;
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (!absl::StrContains(request.target, part) || (*left)-- <= 0) return;
      reply = {.status = 429, .headers = {{"Retry-After", "0"}, {"Content-Length", "0"}}};
    });
    ExpectPulled(bytes_);
    EXPECT_THAT(notes_, Contains(HasSubstr("too many requests")));
  }
  // Longer than anybody wants to wait.
  Refuse("/resolve/", 429, {{"Retry-After", "3600"}});
  fs::remove_all(Path("hub"));
  ExpectError(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("HTTP 429"), HasSubstr("left alone for 1h")));
  Refuse("/resolve/", 429, {{"Retry-After", "1"}});
  options_.retry.attempts = 2;
  options_.retry.longest_wait = absl::Seconds(2);
  const absl::Time start = absl::Now();
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("HTTP 429"));
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
}

TEST_F(PullModelTest, GivesTheTokenToTheHubAlone) {
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  ExpectPulled(bytes_);
  for (const HubServerRequest& request : server_.requests()) {
    const bool is_hubs = !IsDownload(request);
    EXPECT_EQ(request.Header("authorization"), is_hubs ? "Bearer hf_secret" : "") << request.target;
  }
}

// The same address with another port is another server.
TEST_F(PullModelTest, GivesTheTokenToNoOtherPort) {
  HubServer other;
  const std::string hash = other.AddFile(kFile, bytes_);
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  server_.SetChange([&](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/resolve/"))
      reply.headers["Location"] = other.url() + kHubCdn + hash;
  });
  ExpectPulled(bytes_);
  ASSERT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(other.requests()[0].Header("authorization"), "");
}

// A repository that was renamed: the hub redirects within itself.
TEST_F(PullModelTest, FollowsRelativeRedirections) {
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (!absl::StrContains(request.target, "old")) return;
    std::string target = request.target;
    target.replace(target.find("old"), 3, "repo");
    reply = {.status = 307, .headers = {{"Location", target}, {"Content-Length", "0"}}};
  });
  const auto model = Pull("user/old");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->files[0], HasSubstr("models--user--old"));
  EXPECT_EQ(server_.requests()[1].Header("authorization"), "Bearer hf_secret");
}

TEST_F(PullModelTest, RefusesToBeRedirectedElsewhere) {
  server_.AddFile(kFile, bytes_);
  const std::pair<const char*, const char*> places[] = {
      {"file:///etc/passwd", "is not an address"},
      {"ftp://127.0.0.1/x", "is not https"},
      {"gopher://127.0.0.1/x", "is not https"},
      {"http://user:password@127.0.0.1/x", "is not an address"},
      {"http://", "is not an address"}};
  for (const auto& [place, why] : places) {
    server_.SetChange([place = place](const HubServerRequest& request, HubServerReply& reply) {
      if (absl::StrContains(request.target, "/resolve/")) reply.headers["Location"] = place;
    });
    ExpectError(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  }
  // In a circle.
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/resolve/")) reply.headers["Location"] = request.target;
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, HasSubstr("redirects more than 10 times"));
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

TEST_F(PullModelTest, TwoPullsShareTheWork) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  std::atomic<bool> begun = false;
  std::atomic<bool> may_end = false;
  server_.SetChange([&](const HubServerRequest& request, HubServerReply&) {
    if (!IsDownload(request)) return;
    begun = true;
    while (!may_end) absl::SleepFor(absl::Milliseconds(1));
  });
  const HubName name = HubName::Parse("user/repo").value();
  options_.access.endpoint = server_.url();
  options_.cache_folder = Path("hub");
  std::thread first([&] { EXPECT_TRUE(PullModel(name, options_, {}).ok()); });
  while (!begun) absl::SleepFor(absl::Milliseconds(1));
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
TEST_F(PullModelTest, HonoursTheLockOfOtherTools) {
  const std::string hash = server_.AddFile(kFile, bytes_);
  fs::create_directories(Path("hub/.locks/models--user--repo"));
  const std::string path = Path("hub/.locks/models--user--repo/" + hash + ".lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  options_.access.endpoint = server_.url();
  options_.cache_folder = Path("hub");
  const auto model = PullModel(HubName::Parse("user/repo").value(), options_,
                               {.note = [&](const std::string&) { flock(fd, LOCK_UN); }});
  close(fd);
  ASSERT_TRUE(model.ok()) << model.status();
}

TEST_F(PullModelTest, RefusesNamesThatLeaveTheFolder) {
  for (const char* path :
       {"../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "a//b.gguf", "./b.gguf",
        "a\\u0000b.gguf", "a\\nb.gguf", "a\\u001b[31m.gguf", "..\\\\evil.gguf"}) {
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (!absl::StrContains(request.target, "/api/")) return;
      reply.body =
          absl::StrCat("{\"sha\": \"", kHubCommit, "\", \"siblings\": [{\"rfilename\": \"", path,
                       "\", \"lfs\": {\"size\": 3, \"sha256\": \"", Sha256("abc"), "\"}}]}");
      reply.headers["Content-Length"] = absl::StrCat(reply.body.size());
    });
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
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(".incomplete cannot be written"));
  EXPECT_EQ(Contents(Path("victim")), "precious");
  fs::remove(Blob(hash + ".incomplete"));
  ExpectPulled(bytes_);
}

TEST_F(PullModelTest, BoundsAndReadsReplies) {
  const auto reply_with = [&](std::string body) {
    server_.SetChange([body = std::move(body)](const HubServerRequest&, HubServerReply& reply) {
      reply = {.headers = {{"Content-Length", absl::StrCat(body.size())}}, .body = body};
    });
  };
  const std::string commit = absl::StrCat("{\"sha\": \"", kHubCommit, "\"");
  using Code = absl::StatusCode;
  reply_with("<html>");
  ExpectError(Code::kInvalidArgument, HasSubstr("the hub's reply for user/repo is not JSON"));
  reply_with("[]");
  ExpectError(Code::kInvalidArgument, HasSubstr("names no commit"));
  reply_with("{\"sha\": \"../../../../etc\", \"siblings\": []}");
  ExpectError(Code::kInvalidArgument, HasSubstr("names no commit"));
  reply_with(commit + ", \"siblings\": {}}");
  ExpectError(Code::kInvalidArgument, HasSubstr("has no list 'siblings'"));
  reply_with(commit + ", \"siblings\": [1, null, {}, {\"rfilename\": 7}]}");
  ExpectError(Code::kNotFound, HasSubstr("has no model in GGUF"));
  reply_with(std::string(100'000, '['));
  ExpectError(Code::kInvalidArgument, HasSubstr("nests deeper than"));
  reply_with(std::string((size_t{32} << 20) + 1, ' '));
  ExpectError(Code::kInvalidArgument, HasSubstr("is longer than 33554432 bytes"));
  std::string many = commit + ", \"siblings\": [0";
  for (int i = 0; i < 100'000; ++i) many += ",0";
  reply_with(many + "]}");
  ExpectError(Code::kInvalidArgument, HasSubstr("lists more than 100000 files"));
  reply_with(commit + ", \"siblings\": [{\"rfilename\": \"a-00001-of-00002.gguf\"}]}");
  ExpectError(Code::kDataLoss, HasSubstr("has 1 of the 2 parts"));
  // Headers without an end.
  server_.SetChange([](const HubServerRequest&, HubServerReply& reply) {
    for (int i = 0; i < 40; ++i) reply.headers[absl::StrCat("X-", i)] = std::string(8000, 'x');
  });
  ExpectError(testing::AnyOf(Code::kInvalidArgument, Code::kUnavailable), HasSubstr("headers"));
}

}  // namespace
}  // namespace inlay

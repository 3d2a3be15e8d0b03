// The fixture of tests that pull from a server of their own, which behaves as the hub does.
#ifndef INLAY_TESTS_IO_DOWNLOAD_HUB_TEST_H_
#define INLAY_TESTS_IO_DOWNLOAD_HUB_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/download/pull_model.h"
#include "io/hub/hub_name.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/file/folder_test.h"

namespace inlay {

inline constexpr char kFile[] = "model-Q4_K_M.gguf";

// Whether a request is for a file's bytes.
inline bool IsDownload(const HubServerRequest& request) {
  return absl::StartsWith(request.target, kHubCdn);
}

// A hub's list of files, whose array of them is `siblings`.
inline std::string ListJson(absl::string_view siblings) {
  return absl::StrCat("{\"sha\": \"", kHubCommit, "\", \"siblings\": ", siblings, "}");
}

// Has a server without files, and a cache in the test's folder, hub/, that is empty.
class HubTest : public FolderTest<> {
 protected:
  // Pulls into the cache and keeps what is told meanwhile in notes_ and done_. Cancelled once
  // cancel_at_ bytes are here.
  absl::StatusOr<PulledModel> Pull(const std::string& name = "user/repo") {
    notes_.clear();
    done_ = 0;
    options_.access.endpoint = endpoint_.empty() ? server_.url() : endpoint_;
    options_.cache_folder = Path("hub");
    options_.retry.first_wait = absl::Milliseconds(1);
    return PullModel(HubName::Parse(name).value(), options_,
                     {.note = [this](const std::string& note) { notes_.push_back(note); },
                      .progress =
                          [this](uint64_t done, uint64_t total) {
                            EXPECT_LE(done, total);
                            done_ = done;
                          },
                      .cancelled = [this] { return done_ >= cancel_at_; }});
  }

  // Pulls, and expects one file with these bytes.
  void ExpectPulled(const std::string& bytes, const std::string& name = "user/repo") {
    const auto model = Pull(name);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_EQ(model->files.size(), 1u);
    EXPECT_TRUE(Contents(model->files[0]) == bytes);
    EXPECT_EQ(model->bytes, bytes.size());
  }

  // Pulls, and expects this error and no file that a snapshot shows.
  void ExpectError(const testing::Matcher<absl::StatusCode>& code,
                   const testing::Matcher<std::string>& message,
                   const std::string& name = "user/repo") {
    const auto model = Pull(name);
    EXPECT_THAT(model.status().code(), code) << model.status();
    EXPECT_THAT(std::string(model.status().message()), message);
    EXPECT_THAT(Files("snapshots"), testing::IsEmpty());
  }

  // The names in a folder of the repository, in order.
  std::vector<std::string> Files(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             Path("hub/models--user--repo/" + folder), error)) {
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

  // Replies with this body to requests for the list of files. `change_others` may change the other
  // replies.
  void ReplyWithList(const std::string& body, const HubServer::Change& change_others = nullptr) {
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (absl::StrContains(request.target, "/api/")) {
        reply = {.headers = {{"Content-Length", absl::StrCat(body.size())}}, .body = body};
      } else if (change_others) {
        change_others(request, reply);
      }
    });
  }

  const std::string bytes_ = SomeBytes(300'000);
  HubServer server_;
  std::string endpoint_;  // empty: the server's
  PullOptions options_;
  std::vector<std::string> notes_;
  uint64_t done_ = 0;  // bytes
  uint64_t cancel_at_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_DOWNLOAD_HUB_TEST_H_

// inlay pull and -hf, against a server that behaves as the hub does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/io/download/hub_server.h"
#include "tests/tools/program.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kUnreachable[] = "http://127.0.0.1:1";

class PullTest : public testing::Test {
 protected:
  PullTest() : cache_(ScratchPath("hub")) {
    env_ = {{"HF_ENDPOINT", server_.url()}, {"HF_HUB_CACHE", cache_}};
  }
  ~PullTest() override { fs::remove_all(cache_); }

  ProgramResult Run(const std::vector<std::string>& arguments) {
    return RunProgram(arguments, {.env = env_});
  }
  std::string Repo(const std::string& path) const {
    return absl::StrCat(cache_, "/models--user--repo/", path);
  }
  std::string Snapshot(const std::string& path) const {
    return Repo(absl::StrCat("snapshots/", kHubCommit, "/", path));
  }

  HubServer server_;
  const std::string cache_;
  std::map<std::string, std::string> env_;
};

TEST_F(PullTest, PrintsThePathAndOneLine) {
  const std::string bytes = SomeBytes(300'000);
  server_.AddFile("m-Q8_0.gguf", bytes);
  server_.AddFile("mmproj-Q4_K_M.gguf", "no");
  const ProgramResult first = Run({"pull", "user/repo"});
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.out, Snapshot("m-Q8_0.gguf") + "\n");
  EXPECT_EQ(first.err, "user/repo:Q8_0: 300.0 kB, pulled\n");
  EXPECT_TRUE(ReadFile(Snapshot("m-Q8_0.gguf")) == bytes);
  EXPECT_EQ(Run({"pull", "user/repo:q8_0"}).err, "user/repo:Q8_0: 300.0 kB, here already\n");
  const auto json = Run({"pull", "user/repo", "-o", "json"}).Json();
  EXPECT_EQ(json["name"], "user/repo");
  EXPECT_EQ(json["type"], "Q8_0");
  EXPECT_EQ(json["path"], Snapshot("m-Q8_0.gguf"));
  EXPECT_EQ(json["files"], nlohmann::json({Snapshot("m-Q8_0.gguf")}));
  EXPECT_EQ(json["bytes"], 300'000);
  EXPECT_EQ(json["transferred_bytes"], 0);
}

TEST_F(PullTest, ShowsABarOnATerminal) {
  server_.AddFile("m-Q8_0.gguf", SomeBytes(300'000));
  // Slowly: a bar need not show at once.
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StartsWith(request.target, kHubCdn)) reply.piece = 1000, reply.pause = 3;
  });
  env_["TERM"] = "xterm";
  Terminal terminal({"pull", "user/repo"}, env_);
  terminal.WaitFor(" %");
  EXPECT_THAT(terminal.Finish().out, HasSubstr("user/repo:Q8_0: 300.0 kB, pulled"));
}

TEST_F(PullTest, RunsAModelByItsName) {
  server_.AddFile("bard-F16.gguf", ReadFile(kDemoModel));
  const std::vector<std::string> rest = {"-p", "ROMEO:", "-n", "8", "--temp", "0"};
  const auto generate = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "generate");
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return Run(arguments);
  };
  const std::string expected = generate({"-m", kDemoModel}).out;
  const ProgramResult first = generate({"-hf", "user/repo"});
  EXPECT_EQ(first.out, expected);
  EXPECT_THAT(first.err, HasSubstr("pulled user/repo, 13.5 MB\n"));
  const ProgramResult second = generate({"--hf-repo", "user/repo:F16"});
  EXPECT_EQ(second.out, expected);
  EXPECT_THAT(second.err, Not(HasSubstr("pulled")));
  EXPECT_EQ(generate({"-hfr", "user/repo"}).out, expected);
  EXPECT_EQ(generate({"--hf-repo=user/repo"}).out, expected);
  // A command that loads its model twice asks the hub once.
  const size_t before = server_.requests().size();
  EXPECT_EQ(Run({"bench", "-hf", "user/repo", "-t", "1,2", "-p", "8", "-n", "1", "-r", "1"}).status,
            0);
  EXPECT_EQ(server_.requests().size(), before + 1);
  // The sandbox begins when the model is here.
  if (generate({"-m", kDemoModel, "--sandbox"}).status == 0) {
    fs::remove_all(cache_);
    EXPECT_EQ(generate({"-hf", "user/repo", "--sandbox"}).out, expected);
  }
  // Without the network, and without asking for it.
  env_["HF_ENDPOINT"] = kUnreachable;
  const ProgramResult gone = generate({"-hf", "user/repo"});
  EXPECT_EQ(gone.out, expected);
  EXPECT_THAT(gone.err, HasSubstr("; using the files in the cache\n"));
  env_["HF_HUB_OFFLINE"] = "1";
  EXPECT_THAT(generate({"-hf", "user/repo"}).err,
              HasSubstr("HF_HUB_OFFLINE is set; using the files in the cache\n"));
  ExpectError(generate({"-hf", "user/other"}), 1, HasSubstr("has no user/other"));
}

TEST_F(PullTest, RefusesWrongUsage) {
  env_["HF_ENDPOINT"] = kUnreachable;
  ExpectError(Run({"pull"}), 2, HasSubstr("name is required"));
  ExpectError(Run({"pull", "../x"}), 2, HasSubstr("'../x' is not the name of a model on a hub"));
  ExpectError(Run({"pull", "a/b\x1b[31m"}), 2, HasSubstr("\\u001b"));
  ExpectError(Run({"generate", "-hf", "x", "-p", "A"}), 2, HasSubstr("'x' is not the name"));
  ExpectError(Run({"generate", "-hf", "a/b", "-m", kDemoModel, "-p", "A"}), 2,
              AllOf(HasSubstr("--hf-repo"), HasSubstr("--model")));
  ExpectError(Run({"generate", "-p", "A", "-hf"}), 2, HasSubstr("-hf needs a value"));
  ExpectError(Run({"configs", "-hf", "a/b"}), 2, HasSubstr("unknown argument"));
  ExpectError(Run({"chat", "--server", "http://127.0.0.1:1", "-hf", "a/b"}), 2,
              HasSubstr("--hf-repo is for a model that runs here"));
  // A prompt is a prompt.
  EXPECT_EQ(Run({"generate", "-p", "-hf", "-n", "1", "-m", kDemoModel}).status, 0);
  EXPECT_FALSE(fs::exists(cache_));
  env_["HF_ENDPOINT"] = "huggingface.co";
  ExpectError(Run({"pull", "a/b"}), 1, HasSubstr("HF_ENDPOINT is 'huggingface.co'"));
}

TEST_F(PullTest, GoesThroughTheEnvironmentsProxy) {
  server_.AddFile("m-Q8_0.gguf", "GGUF");
  env_["HF_ENDPOINT"] = "http://hub.invalid";
  env_["http_proxy"] = server_.url();
  EXPECT_EQ(Run({"pull", "user/repo"}).status, 0);
  EXPECT_THAT(server_.requests()[0].target, HasSubstr("http://hub.invalid/api/models/user/repo"));
  // And around it.
  fs::remove_all(cache_);
  env_["HF_ENDPOINT"] = server_.url();
  env_["http_proxy"] = kUnreachable;
  env_["no_proxy"] = "127.0.0.1,localhost";
  EXPECT_EQ(Run({"pull", "user/repo"}).status, 0);
}

TEST_F(PullTest, SendsTheTokenToTheHubAlone) {
  server_.AddFile("m-Q8_0.gguf", "GGUF");
  env_["HF_TOKEN"] = "hf_secret";
  const ProgramResult result = Run({"pull", "user/repo"});
  EXPECT_EQ(result.status, 0);
  for (const HubServerRequest& request : server_.requests()) {
    const bool is_hubs = !absl::StartsWith(request.target, kHubCdn);
    EXPECT_EQ(request.Header("authorization"), is_hubs ? "Bearer hf_secret" : "");
  }
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("secret")));
}

// A limit on the size of files, which fails as a full disk does.
TEST_F(PullTest, GoesOnAfterTheDiskWasFull) {
  const std::string bytes = SomeBytes(300'000);
  const std::string hash = server_.AddFile("m-Q8_0.gguf", bytes);
  const ProgramResult full =
      RunProgram({"-c", "ulimit -f 200; exec \"$0\" pull user/repo", InlayProgram()},
                 {.env = env_, .program = "/bin/sh"});
  ExpectError(full, 1,
              AllOf(HasSubstr("there is no room on the disk after"), HasSubstr("are kept")));
  const std::string incomplete = Repo("blobs/" + hash + ".incomplete");
  const uintmax_t kept = fs::file_size(incomplete);
  EXPECT_GT(kept, 0u);
  EXPECT_TRUE(ReadFile(incomplete) == bytes.substr(0, kept));
  EXPECT_FALSE(fs::exists(Repo("snapshots")));
  EXPECT_EQ(Run({"pull", "user/repo"}).status, 0);
  EXPECT_EQ(server_.requests().back().Header("range"), absl::StrCat("bytes=", kept, "-"));
  EXPECT_TRUE(ReadFile(Snapshot("m-Q8_0.gguf")) == bytes);
}

TEST_F(PullTest, KeepsWhatItHasWhenItIsInterrupted) {
  // Its bytes take far longer than it takes to see the first ones and to send the signal.
  const std::string hash = server_.AddFile("m-Q8_0.gguf", SomeBytes(10'000'000));
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StartsWith(request.target, kHubCdn)) reply.piece = 30'000, reply.pause = 300;
  });
  const auto interrupt = [&](pid_t pid) {
    const std::string incomplete = Repo("blobs/" + hash + ".incomplete");
    const auto has_bytes = [&] {
      std::error_code error;
      return fs::file_size(incomplete, error) > 0 && !error;
    };
    EXPECT_TRUE(WaitUntil(has_bytes));
    kill(pid, SIGINT);
  };
  std::vector<std::vector<std::string>> commands = {{"pull", "user/repo"}};
#ifdef INLAY_HAS_SERVER
  // Which waits for signals itself once it serves.
  commands.push_back({"serve", "--port", "0", "--hf-repo", "user/repo"});
#endif
  for (const std::vector<std::string>& command : commands) {
    fs::remove(Repo("blobs/" + hash + ".incomplete"));  // so that there are bytes once it pulls
    EXPECT_EQ(RunProgram(command, {.env = env_, .while_running = interrupt}).status, 128 + SIGINT);
    EXPECT_TRUE(fs::exists(Repo("blobs/" + hash + ".incomplete")));
    EXPECT_TRUE(fs::is_empty(absl::StrCat(cache_, "/.locks/models--user--repo")));
  }
}

// Kills the program at random moments. Whatever the moment: what snapshots/ shows is whole, what
// has a blob's name has its hash, and the next pull finishes.
class KilledPull : public PullTest {
 protected:
  static constexpr int kParts = 3;

  KilledPull() {
    for (int i = 1; i <= kParts; ++i) {
      parts_.push_back(SomeBytes(150'000, i));
      names_.push_back(absl::StrCat("m-Q4_K_M-0000", i, "-of-0000", kParts, ".gguf"));
      server_.AddFile(names_.back(), parts_.back());
    }
    server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
      if (absl::StartsWith(request.target, kHubCdn)) reply.piece = 8192, reply.pause = 1;
    });
  }

  void ExpectNothingHalf() {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(Repo("blobs"), none)) {
      const std::string name = entry.path().filename();
      if (absl::EndsWith(name, ".incomplete")) continue;
      EXPECT_EQ(Sha256(ReadFile(entry.path())), name);
    }
    std::set<std::string> shown;
    for (const auto& entry : fs::recursive_directory_iterator(Repo("snapshots"), none)) {
      if (entry.is_directory()) continue;
      shown.insert(entry.path().filename());
      const auto at = std::find(names_.begin(), names_.end(), entry.path().filename());
      ASSERT_NE(at, names_.end()) << entry.path();
      EXPECT_TRUE(ReadFile(entry.path()) == parts_[at - names_.begin()]) << entry.path();
    }
    const bool shows_model = shown.count(names_[0]) > 0;
    EXPECT_EQ(shows_model, shown.size() == parts_.size());
    if (fs::exists(Repo("refs/main"))) {
      EXPECT_EQ(ReadFile(Repo("refs/main")), kHubCommit);
      EXPECT_EQ(shown.size(), parts_.size());
    }
  }

  std::vector<std::string> names_, parts_;
};

// The moments after the last byte: links and the commit of "main".
TEST_F(KilledPull, LeavesNoModelHalfLinked) {
  ASSERT_EQ(Run({"pull", "user/repo"}).status, 0);
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    for (const char* folder : {"snapshots", "refs"}) fs::remove_all(Repo(folder));
    const auto wait = absl::Microseconds(random() % 30'000);
    const auto stop = [&](pid_t pid) {
      absl::SleepFor(wait);
      kill(pid, SIGKILL);
    };
    RunProgram({"pull", "user/repo"}, {.env = env_, .while_running = stop});
    ASSERT_NO_FATAL_FAILURE(ExpectNothingHalf());
  }
  EXPECT_EQ(server_.downloads(), static_cast<size_t>(kParts));
  EXPECT_EQ(Run({"pull", "user/repo"}).status, 0);
  EXPECT_EQ(ReadFile(Repo("refs/main")), kHubCommit);
}

TEST_F(KilledPull, LeavesNothingHalf) {
  std::mt19937 random(1);
  int killed = 0, finished = 0;
  for (int round = 0; round < 60; ++round) {
    const auto wait = absl::Microseconds(random() % 120'000);
    const auto stop = [&](pid_t pid) {
      absl::SleepFor(wait);
      kill(pid, SIGKILL);
    };
    const int status =
        RunProgram({"pull", "user/repo"}, {.env = env_, .while_running = stop}).status;
    ASSERT_THAT(status, testing::AnyOf(0, 128 + SIGKILL));
    ASSERT_NO_FATAL_FAILURE(ExpectNothingHalf());
    ++(status == 0 ? finished : killed);
    // From the start again, so that every moment has its turn.
    if (status == 0 || round % 8 == 7) fs::remove_all(cache_);
  }
  EXPECT_GT(killed, 0);
  RecordProperty("killed", killed);
  RecordProperty("finished", finished);
  const ProgramResult last = Run({"pull", "user/repo"});
  EXPECT_EQ(last.status, 0) << last.err;
  for (int i = 0; i < kParts; ++i) EXPECT_TRUE(ReadFile(Snapshot(names_[i])) == parts_[i]);
  EXPECT_EQ(ReadFile(Repo("refs/main")), kHubCommit);
}

}  // namespace
}  // namespace inlay

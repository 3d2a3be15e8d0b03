// A batch job with a handler that answers in any order, refuses and forgets: one result for each
// request, the same bytes however the job was ended.
#include "serve/batch_job/batch_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/xxh64.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/result_file.h"
#include "serve/batch_job/result_line.h"
#include "serve/http/http_server.h"
#include "tests/must.h"
#include "tests/serve/batch_job/batch_job_fixture.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

TEST_F(BatchJobTest, EachRequestHasItsResultInOrder) {
  const BatchJobOutcome outcome = Must(Run(1, out_));
  EXPECT_TRUE(outcome.joined);
  EXPECT_EQ(outcome.failed, 9u);
  const std::vector<std::string> lines = absl::StrSplit(ReadAll(out_), '\n');
  ASSERT_EQ(lines.size(), kRequests + 1);
  EXPECT_EQ(lines.back(), "");
  std::set<std::string> ids;
  for (size_t i = 0; i < kRequests; ++i) {
    const Json result = *Must(ParseJson("a line", lines[i]));
    EXPECT_EQ(result["custom_id"], absl::StrCat("request ", i, i % 3 == 0 ? " \"é\"\n" : ""));
    EXPECT_EQ(result["response"]["status_code"], i % 7 == 0 ? 400 : 200);
    EXPECT_TRUE(result["error"].is_null());
    const Json& body = result["response"]["body"];
    EXPECT_EQ(result["id"], absl::StrCat("batch_req_", body["id"].get<std::string>()));
    EXPECT_EQ(result["response"]["request_id"], body["id"]);
    EXPECT_EQ(body["path"], "/v1/completions");
    EXPECT_EQ((*Must(ParseJson("a body", body["echo"].get<std::string>())))["n"], i);
    ids.insert(result["id"]);
  }
  EXPECT_EQ(ids.size(), kRequests);
  ExpectNothingElse({"in", "out"});
  // Once more there is nothing to do.
  const size_t asked = asked_;
  const BatchJobOutcome again = Must(Run(2, out_));
  EXPECT_TRUE(again.joined);
  EXPECT_EQ(again.failed, 9u);
  EXPECT_EQ(again.kept, kRequests);
  EXPECT_EQ(asked_, asked);
}

TEST_F(BatchJobTest, StoppedAnywhereItGoesOnWithTheSameBytes) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  const std::string whole = ReadAll(folder_.Path("whole"));
  for (unsigned seed = 0; seed < 6; ++seed) {
    const std::string out = folder_.Path(absl::StrCat("out", seed));
    size_t runs = 0, kept = 0;
    while (true) {
      const auto outcome = Run(10 * seed + static_cast<unsigned>(runs), out, {}, 5);
      ++runs;
      if (outcome.ok()) {
        EXPECT_GE(outcome->kept, kept);
        break;
      }
      EXPECT_TRUE(absl::IsCancelled(outcome.status())) << outcome.status();
      EXPECT_FALSE(std::filesystem::exists(out));
    }
    EXPECT_GT(runs, 3u);
    EXPECT_EQ(ReadAll(out), whole);
  }
}

// A journal may end at any byte, and after a loss of power hold anything at its end.
TEST_F(BatchJobTest, WhatATornJournalHasCounts) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  const std::string whole = ReadAll(folder_.Path("whole"));
  ASSERT_FALSE(Run(2, out_, {}, 20).ok());
  const std::string part = out_ + ".part", journal = ReadAll(part);
  const size_t header = journal.find('\n') + 1;
  std::mt19937 random(3);
  for (int i = 0; i < 24; ++i) {
    const size_t cut = header + random() % (journal.size() - header + 1);
    std::string torn = journal.substr(0, cut);
    if (i % 4 == 1) torn += std::string(100, '\0');
    if (i % 4 == 2) torn += "1234567890abcdef 3 200 {}\n";
    if (i % 4 == 3 && cut > header) torn[header + random() % (cut - header)] ^= 1;
    WriteAll(part, torn);
    const BatchJobOutcome outcome = Must(Run(static_cast<unsigned>(i), out_));
    const auto whole_lines = std::count(journal.begin() + static_cast<ptrdiff_t>(header),
                                        journal.begin() + static_cast<ptrdiff_t>(cut), '\n');
    // A damaged byte costs its line, and the next one where it was the newline between them.
    EXPECT_LE(outcome.kept, static_cast<size_t>(whole_lines));
    EXPECT_GE(outcome.kept + (i % 4 == 3 ? 2 : 0), static_cast<size_t>(whole_lines));
    EXPECT_EQ(ReadAll(out_), whole) << cut;
    ASSERT_EQ(unlink(out_.c_str()), 0);
  }
  // Not even the header, or another file, though it may look like one.
  const auto with_header = [&](const char* member, const Json& value) {
    Json other = *Must(ParseJson("the header", journal.substr(17, header - 18)));
    other[member] = value;
    const std::string content = DumpJson(other);
    return absl::StrCat(absl::Hex(Xxh64Of(content.data(), content.size()), absl::kZeroPad16), " ",
                        content, "\n");
  };
  for (const std::string& text : {journal.substr(0, header - 1), std::string("notes of mine\n"),
                                  with_header("inlay_batch", "1"), with_header("shard", 0),
                                  with_header("much", std::string(size_t{5} << 20, 'x'))}) {
    WriteAll(part, text);
    for (const bool restart : {false, true}) {
      const auto refused = Run(1, out_, {}, kRequests + 1, restart);
      EXPECT_THAT(refused.status().message(),
                  HasSubstr("is not the journal of a batch job (its first line is damaged, or "));
      EXPECT_EQ(ReadAll(part), text);
    }
  }
  // The journal of another shard is one, which a restart discards.
  WriteAll(part, with_header("shard", "1/2"));
  const absl::Status refused = Run(1, out_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("part has results of shard 1/2 and not of 0/1"));
  EXPECT_EQ(ReadAll(part), with_header("shard", "1/2"));
  EXPECT_TRUE(Must(Run(1, out_, {}, kRequests + 1, /*restart=*/true)).joined);
  EXPECT_EQ(ReadAll(out_), whole);
  // Another file stays where the output is complete, too.
  WriteAll(part, "notes of mine\n");
  EXPECT_TRUE(Must(Run(1, out_)).joined);
  EXPECT_EQ(ReadAll(part), "notes of mine\n");
}

TEST_F(BatchJobTest, ShardsJoinToTheSameBytes) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  const std::string whole = ReadAll(folder_.Path("whole"));
  for (const size_t count : {2u, 3u, 7u}) {
    const std::string out = folder_.Path(absl::StrCat("out", count));
    for (size_t i = 0; i < count; ++i) {
      const size_t index = (i + 1) % count;  // the last one is not the last to end
      EXPECT_FALSE(std::filesystem::exists(out));
      ASSERT_TRUE(absl::IsCancelled(Run(4, out, {index, count}, 2).status()));
      const BatchJobOutcome outcome = Must(Run(5, out, {index, count}));
      EXPECT_GE(outcome.kept, 2u);
      EXPECT_EQ(outcome.joined, i + 1 == count);
      EXPECT_EQ(outcome.missing.size(), count - 1 - i);
      EXPECT_EQ(outcome.failed, outcome.joined ? 9u : 0u);
    }
    EXPECT_EQ(ReadAll(out), whole);
  }
  ExpectNothingElse({"in", "whole", "out2", "out3", "out7"});
}

TEST_F(BatchJobTest, ShardsAtTheSameTimeJoinOnce) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  constexpr size_t kShards = 4;
  for (int round = 0; round < 4; ++round) {
    std::vector<absl::StatusOr<BatchJobOutcome>> outcomes(kShards, absl::UnknownError(""));
    const RequestFile requests = Must(RequestFile::Open(input_));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kShards; ++i) {
      threads.emplace_back([&, i] {
        Handler handler(static_cast<unsigned>(i));
        outcomes[i] = RunBatchJob(requests, Identity(requests), handler.handler(),
                                  {.out = out_, .shard = {i, kShards}, .mode = {}, .loop = {}});
      });
    }
    for (std::thread& thread : threads) thread.join();
    size_t joined = 0;
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      joined += outcome->joined;
    }
    EXPECT_EQ(joined, 1u);
    EXPECT_EQ(ReadAll(out_), ReadAll(folder_.Path("whole")));
    ExpectNothingElse({"in", "out", "whole"});
    ASSERT_EQ(unlink(out_.c_str()), 0);
  }
}

TEST_F(BatchJobTest, AnotherJobIsRefusedUnlessItRestarts) {
  ASSERT_FALSE(Run(2, out_, {}, 20).ok());
  weights_ = "g";
  const auto other_model = Run(2, out_);
  EXPECT_THAT(other_model.status().message(),
              HasSubstr("out.part has results of another job: its hash of the weights is \"f\" and "
                        "not \"g\"; with that model in every run and shard the job goes on, and "
                        "--restart discards these results"));
  weights_ = "f";
  const std::string before = ReadAll(input_);
  WriteAll(input_, before + "\n" + RequestLine("one more", {{"prompt", "x"}}));
  EXPECT_THAT(Run(2, out_).status().message(), HasSubstr("its file of requests is \""));
  const BatchJobOutcome restarted = Must(Run(2, out_, {}, kRequests + 9, /*restart=*/true));
  EXPECT_EQ(restarted.kept, 0u);
  // The output of another job, too.
  WriteAll(input_, before);
  const auto exists = Run(2, out_);
  EXPECT_THAT(
      exists.status().message(),
      HasSubstr("out exists and is not the output of this job: it has more than 60 results; "
                "give another -o, or replace it with --restart"));
  EXPECT_TRUE(Must(Run(2, out_, {}, kRequests + 1, /*restart=*/true)).joined);
  // Results of the requests that both jobs have are the same: a request's depends on it alone.
  ExpectNothingElse({"in", "out"});
}

// The output of another job is there until the restart is done, however often that is interrupted.
TEST_F(BatchJobTest, AnInterruptedRestartGoesOn) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  weights_ = "old";
  ASSERT_TRUE(Run(1, out_).ok());
  const std::string old = ReadAll(out_);
  weights_ = "f";
  // What a run without a restart has kept is discarded once.
  const std::string earlier = folder_.Path("earlier");
  ASSERT_FALSE(Run(2, earlier, {}, 20).ok());
  std::filesystem::rename(earlier + ".part", out_ + ".part");
  asked_ = 0;
  size_t runs = 1;
  for (; runs < kRequests; ++runs) {
    const auto outcome = Run(static_cast<unsigned>(runs), out_, {}, 20, /*restart=*/true);
    if (outcome.ok()) {
      EXPECT_GE(outcome->kept, 20 * (runs - 1));
      break;
    }
    EXPECT_TRUE(absl::IsCancelled(outcome.status())) << outcome.status();
    EXPECT_EQ(ReadAll(out_), old);
  }
  EXPECT_GT(runs, 1u);
  // Of an interrupted run at most those are asked again that the handler had then.
  EXPECT_LE(asked_, kRequests + (runs - 1) * 16);
  EXPECT_EQ(ReadAll(out_), ReadAll(folder_.Path("whole")));
  ExpectNothingElse({"in", "out", "whole"});
  // The output being there, a restart begins anew.
  EXPECT_EQ(Must(Run(1, out_, {}, kRequests + 1, /*restart=*/true)).kept, 0u);
}

TEST_F(BatchJobTest, ShardsRestartOneAfterAnother) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  weights_ = "old";
  ASSERT_TRUE(Run(1, out_).ok());
  // Of other jobs and of this one there are shards that ended before the restart.
  const std::string other = folder_.Path("other"), own = folder_.Path("own");
  ASSERT_TRUE(Run(1, other, {0, 3}).ok());
  weights_ = "f";
  ASSERT_TRUE(Run(1, own, {1, 3}).ok());
  std::filesystem::rename(other + ".part.0-of-3", out_ + ".part.0-of-3");
  std::filesystem::rename(own + ".part.1-of-3", out_ + ".part.1-of-3");
  const auto restart = [&](size_t index) {
    return Must(Run(2, out_, {index, 3}, kRequests + 1, /*restart=*/true));
  };
  for (const size_t index : {2u, 0u}) {
    const BatchJobOutcome outcome = restart(index);
    EXPECT_EQ(outcome.kept, 0u);
    EXPECT_EQ(outcome.missing, index == 2 ? (std::vector<size_t>{0, 1}) : std::vector<size_t>{1});
    // As when Slurm runs a task again.
    const size_t asked = asked_;
    EXPECT_EQ(restart(index).kept, kRequests / 3);
    EXPECT_EQ(asked_, asked);
  }
  const BatchJobOutcome last = restart(1);
  EXPECT_EQ(last.kept, 0u);
  EXPECT_TRUE(last.joined);
  EXPECT_EQ(ReadAll(out_), ReadAll(folder_.Path("whole")));
  ExpectNothingElse({"in", "out", "whole"});
}

TEST_F(BatchJobTest, OnlyOutputsOfBatchJobsAreReplaced) {
  for (const char* text : {"notes of mine\n", "{\"id\":\"batch\"}\n", "{", "\n"}) {
    WriteAll(out_, text);
    for (const bool restart : {false, true}) {
      EXPECT_THAT(Run(1, out_, {}, kRequests + 1, restart).status().message(),
                  HasSubstr("out exists and is not the output of a batch job"));
      EXPECT_EQ(ReadAll(out_), text);
    }
  }
  EXPECT_EQ(asked_, 0u);
  ExpectNothingElse({"in", "out"});
  WriteAll(out_, "");
  EXPECT_TRUE(Must(Run(1, out_)).joined);
}

TEST_F(BatchJobTest, WhatTheWriterOfTheOutputLeftIsRemoved) {
  ASSERT_FALSE(Run(2, out_, {}, 20).ok());
  const std::string journal = ReadAll(out_ + ".part");
  ASSERT_TRUE(Run(3, out_).ok());
  WriteAll(out_ + ".part", journal);
  EXPECT_TRUE(Must(Run(3, out_)).joined);
  ExpectNothingElse({"in", "out"});
}

// As on a full disk: what was kept stays, and the job goes on when there is room.
TEST_F(BatchJobTest, AFullDiskLosesNothing) {
  ASSERT_TRUE(Run(1, folder_.Path("whole")).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto action = signal(SIGXFSZ, SIG_IGN);  // the write fails instead
  const rlimit little = {.rlim_cur = 5000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status status = Run(2, out_).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, action);
  EXPECT_THAT(status.message(), HasSubstr("out.part cannot be written"));
  EXPECT_THAT(status.message(), HasSubstr("; the results so far are kept in "));
  EXPECT_THAT(status.message(), HasSubstr("out.part, and the same command goes on with the rest"));
  const std::string journal = ReadAll(out_ + ".part");
  EXPECT_GT(journal.size(), 4000u);
  EXPECT_EQ(journal.back(), '\n') << "the incomplete line was cut off";
  EXPECT_GT(Must(Run(3, out_)).kept, 5u);
  EXPECT_EQ(ReadAll(out_), ReadAll(folder_.Path("whole")));
}

TEST_F(BatchJobTest, APipeInTheJournalsPlaceIsRefused) {
  ASSERT_EQ(mkfifo((out_ + ".part").c_str(), 0600), 0);
  alarm(60);  // to wait for who writes to it would be for ever
  EXPECT_THAT(Run(1, out_).status().message(), HasSubstr("part is not a regular file"));
  alarm(0);
}

TEST_F(BatchJobTest, OneProcessHasAShard) {
  const RequestFile requests = Must(RequestFile::Open(input_));
  const Journal journal =
      Must(Journal::Open(out_ + ".part", Identity(requests), {}, requests.size(), {}));
  EXPECT_TRUE(absl::IsUnavailable(Run(1, out_).status()));
}

TEST_F(BatchJobTest, StreamsAreRefusedInWordsOfTheProtocol) {
  WriteAll(input_, RequestLine("a", {{"stream", true}}) +
                       RequestLine("b", {{"stream", true}}, "/v1/messages") +
                       RequestLine("c", {{"stream", false}}));
  const BatchJobOutcome outcome = Must(Run(1, out_));
  EXPECT_EQ(outcome.failed, 2u);
  EXPECT_EQ(asked_, 1u);
  const std::vector<std::string> lines = absl::StrSplit(ReadAll(out_), '\n');
  EXPECT_THAT(lines[0], HasSubstr(R"("body":{"error":{"message":"a batch has no streams")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("body":{"type":"error","error":{)"));
}

// The input is read piece by piece, and only places are kept.
TEST_F(BatchJobTest, ARequestThatChangesMeanwhileIsNoticed) {
  const RequestFile requests = Must(RequestFile::Open(input_));
  EXPECT_EQ(Must(requests.Read(8)).custom_id, "request 8");
  std::string text = ReadAll(input_);
  text.replace(text.find("request 8"), 9, "request X");
  WriteAll(input_, text);
  EXPECT_EQ(Must(requests.Read(7)).custom_id, "request 7");
  EXPECT_THAT(requests.Read(8).status().message(), HasSubstr("has changed"));
}

}  // namespace
}  // namespace inlay::serve

// What earlier runs and other shards have kept: damaged, of other jobs, of another number of
// shards, of another time, of requests that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/xxh64.h"
#include "serve/batch_job/batch_job.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/kept_journals.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/result_file.h"
#include "tests/must.h"
#include "tests/serve/batch_job/batch_job_fixture.h"

namespace inlay::serve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class KeptResultsTest : public BatchJobTest {
 protected:
  // The whole output, of one undisturbed process.
  std::string Whole() {
    const std::string out = folder_.Path("whole");
    EXPECT_TRUE(Run(1, out).ok());
    return ReadAll(out);
  }
  // Changes a byte within the middle line of a file.
  static void Damage(const std::string& path) {
    std::string text = ReadAll(path);
    const size_t newline = text.find('\n', text.size() / 2);
    text[newline + 30] ^= 1;
    WriteAll(path, text);
  }
  std::string ErrorOf(const absl::StatusOr<BatchJobOutcome>& outcome) {
    return std::string(outcome.status().message());
  }
  // Runs the job, and calls `meanwhile` once it has kept some results and lacks others.
  absl::StatusOr<BatchJobOutcome> RunAndMeanwhile(const std::function<void()>& meanwhile,
                                                  const JournalMode& mode = {}, Shard shard = {}) {
    const RequestFile requests = Must(RequestFile::Open(input_));
    Handler answers(5);
    const HttpHandler answer = answers.handler();
    const size_t middle = mode.retry_failed ? 5 : kRequests / shard.count / 2;
    size_t asked = 0;
    const HttpHandler handler = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      if (++asked == middle) meanwhile();
      answer(std::move(request), std::move(reply));
    };
    return RunBatchJob(requests, Identity(requests), handler,
                       {.out = out_, .shard = shard, .mode = mode, .loop = {.most_in_flight = 1}});
  }
};

// The results that are lost are missing then, though the job had an answer to each request.
TEST_F(KeptResultsTest, AJournalThatIsDamagedMeanwhileIsAnError) {
  const std::string whole = Whole(), part = out_ + ".part";
  const std::function<void()> damages[] = {
      [&] { Damage(part); },
      [&] { std::filesystem::resize_file(part, std::filesystem::file_size(part) / 2); },
      [&] { std::filesystem::resize_file(part, std::filesystem::file_size(part) - 1); }};
  for (const std::function<void()>& damage : damages) {
    const auto ended = RunAndMeanwhile(damage);
    EXPECT_TRUE(absl::IsDataLoss(ended.status())) << ended.status();
    EXPECT_THAT(ErrorOf(ended),
                AllOf(HasSubstr("out.part has changed while the job ran; the results so far are"),
                      EndsWith("and the same command goes on with the rest")));
    EXPECT_FALSE(std::filesystem::exists(out_));
    EXPECT_GT(Must(Run(3, out_)).kept, 0u);
    EXPECT_EQ(ReadAll(out_), whole);
    unlink(out_.c_str());
  }
}

TEST_F(KeptResultsTest, AFirstLineThatIsDamagedMeanwhile) {
  const std::string whole = Whole(), part = out_ + ".part";
  const auto ended = RunAndMeanwhile([&] {
    std::string text = ReadAll(part);
    text[30] ^= 1;
    WriteAll(part, text);
  });
  const auto says = AllOf(HasSubstr("first line is damaged, or it is another file): remove it, or "
                                    "give another -o"),
                          Not(HasSubstr("kept in")));
  EXPECT_THAT(ErrorOf(ended), says);
  EXPECT_THAT(ErrorOf(Run(2, out_)), says) << "as the command that follows";
  unlink(part.c_str());
  EXPECT_EQ(Must(Run(2, out_)).kept, 0u);
  EXPECT_EQ(ReadAll(out_), whole);
}

TEST_F(KeptResultsTest, AJournalThatIsRemovedMeanwhileIsAnError) {
  const std::string whole = Whole();
  // What there is at the output's place are the results that a restart or a retry replaces.
  for (const bool restart : {true, false}) {
    WriteAll(out_, whole);
    const auto ended = RunAndMeanwhile([&] { unlink((out_ + ".part").c_str()); },
                                       {.restart = restart, .retry_failed = !restart});
    EXPECT_TRUE(absl::IsFailedPrecondition(ended.status())) << ended.status();
    EXPECT_THAT(ErrorOf(ended), EndsWith("out.part was removed while the job ran; the same command "
                                         "computes its results again"));
    EXPECT_EQ(ReadAll(out_), whole);
  }
}

TEST_F(KeptResultsTest, AShardWhoseJournalIsRemovedIsDoneIfAllAreJoined) {
  const std::string whole = Whole();
  const auto removed_with = [&](const std::string& out) {
    return RunAndMeanwhile(
        [&] {
          WriteAll(out_, out);
          unlink((out_ + ".part.0-of-2").c_str());
        },
        {.restart = true}, {0, 2});
  };
  const BatchJobOutcome done = Must(removed_with(whole));
  EXPECT_FALSE(done.joined);
  EXPECT_THAT(done.missing, ElementsAre());
  // The beginning of another job's output.
  EXPECT_THAT(ErrorOf(removed_with(whole.substr(0, whole.find('\n') + 1))),
              HasSubstr("part.0-of-2 was removed while the job ran"));
}

TEST_F(KeptResultsTest, ADamagedLineCostsThatLineAlone) {
  const std::string whole = Whole();
  ASSERT_FALSE(Run(2, out_, {}, 40).ok());
  const std::string part = out_ + ".part";
  const std::string journal = ReadAll(part);
  const auto lines = static_cast<size_t>(std::count(journal.begin(), journal.end(), '\n')) - 1;
  Damage(part);
  notes_.clear();
  EXPECT_EQ(Must(Run(3, out_)).kept, lines - 1);
  EXPECT_THAT(
      notes_,
      ElementsAre(AllOf(HasSubstr("out.part has 1 damaged line: "), HasSubstr("is computed again")),
                  HasSubstr(absl::StrCat(lines - 1, " of 60 results are there already"))));
  EXPECT_EQ(ReadAll(out_), whole);
}

TEST_F(KeptResultsTest, ADamagedLineOfAShardThatWasDone) {
  const std::string whole = Whole();
  ASSERT_TRUE(Run(2, out_, {0, 2}).ok());
  Damage(out_ + ".part.0-of-2");
  const BatchJobOutcome other = Must(Run(3, out_, {1, 2}));
  EXPECT_FALSE(other.joined);
  EXPECT_THAT(other.missing, ElementsAre(0u));
  const BatchJobOutcome again = Must(Run(4, out_, {0, 2}));
  EXPECT_EQ(again.kept, kRequests / 2 - 1);
  EXPECT_TRUE(again.joined);
  EXPECT_EQ(ReadAll(out_), whole);
}

// Refused requests have no result: the job ends, and goes on when there is memory.
TEST_F(KeptResultsTest, WhatThereIsNoMemoryForHasNoResult) {
  const std::string whole = Whole();
  const RequestFile requests = Must(RequestFile::Open(input_));
  Handler handler(1);
  const HttpHandler answer = handler.handler();
  // Two requests are always refused, one of them without a reply.
  const HttpHandler refuse = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const bool first = request.body.find("\"n\":11}") != std::string::npos;
    if (request.body.find("\"n\":12}") != std::string::npos) return;
    if (first) return reply->Send(503, "", R"({"error":"no memory"})", {});
    answer(std::move(request), std::move(reply));
  };
  const auto refused = RunBatchJob(requests, Identity(requests), refuse,
                                   {.out = out_, .shard = {}, .mode = {}, .loop = {}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ErrorOf(refused),
              AllOf(HasSubstr("there is not enough memory for 2 requests"),
                    HasSubstr("custom_id 'request 1"), HasSubstr("the same command goes on")));
  EXPECT_FALSE(std::filesystem::exists(out_));
  const BatchJobOutcome outcome = Must(Run(2, out_));
  EXPECT_EQ(outcome.kept, kRequests - 2);
  EXPECT_EQ(ReadAll(out_), whole);
}

// As of a model that cannot be read any more.
TEST_F(KeptResultsTest, AHandlerThatRefusesEverythingEndsTheJob) {
  const std::string whole = Whole();
  const RequestFile requests = Must(RequestFile::Open(input_));
  Handler handler(1);
  const HttpHandler answer = handler.handler();
  size_t answered = 0;
  const HttpHandler breaks = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (++answered > 20) return reply->Send(503, "", R"({"error":"no model"})", {});
    answer(std::move(request), std::move(reply));
  };
  BatchJobOptions options{.out = out_, .shard = {}, .mode = {}, .loop = {}};
  options.loop.most_in_flight = 4;
  options.loop.check_handler = [&] {
    return answered > 20 ? absl::DataLossError("the model is gone") : absl::OkStatus();
  };
  const auto ended = RunBatchJob(requests, Identity(requests), breaks, options);
  EXPECT_EQ(ended.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(ErrorOf(ended), HasSubstr("the model is gone; the results so far are kept in "));
  EXPECT_LE(answered, 24u) << "it went on";
  const BatchJobOutcome outcome = Must(Run(2, out_));
  EXPECT_EQ(outcome.failed, 9u) << "a refusal was kept";
  EXPECT_EQ(ReadAll(out_), whole);
}

// Another file has come to the output's place: the same command would not write over it either.
TEST_F(KeptResultsTest, AnOutputThatAppearsMeanwhileStays) {
  const std::string whole = Whole();
  for (const std::string& text : {std::string("notes of mine\n"), whole}) {
    const RequestFile requests = Must(RequestFile::Open(input_));
    const HttpHandler writes = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      WriteAll(out_, text);
      reply->Send(200, "", DumpJson({{"echo", request.body}}), {});
    };
    const auto ended = RunBatchJob(requests, Identity(requests), writes,
                                   {.out = out_, .shard = {}, .mode = {}, .loop = {}});
    EXPECT_THAT(ErrorOf(ended),
                AllOf(HasSubstr(" exists"), EndsWith("are kept in " + out_ + ".part")));
    EXPECT_EQ(ReadAll(out_), text);
    unlink(out_.c_str());
    unlink((out_ + ".part").c_str());
  }
}

// A result's id depends on its request and the weights alone.
TEST_F(KeptResultsTest, TheIdOfAReply) {
  const RequestFile requests = Must(RequestFile::Open(input_));
  const BatchRequest request = Must(requests.Read(3));
  const JobIdentity job = Identity(requests);
  const std::string id = ReplyId(job, request);
  JobIdentity other = job;
  other.input = other.instruction_set = other.cache_type = other.model = other.chat_template =
      other.defaults = other.fingerprint = "other";
  other.context = 1;
  other.time = 1;
  EXPECT_EQ(ReplyId(other, request), id);
  other.weights = "other";
  EXPECT_NE(ReplyId(other, request), id);
  for (std::string BatchRequest::*member :
       {&BatchRequest::custom_id, &BatchRequest::url, &BatchRequest::body}) {
    BatchRequest changed = request;
    changed.*member += "x";
    EXPECT_NE(ReplyId(job, changed), id);
  }
}

TEST_F(KeptResultsTest, TheTimeOfWhatIsKept) {
  const std::string input = Must(RequestFile::Open(input_)).Content();
  const auto time = [&](const Shard& shard, bool restart = false) {
    return Must(FindJobTime(out_, shard, input, restart));
  };
  EXPECT_EQ(time({}), std::nullopt);
  ASSERT_FALSE(Run(2, out_, {1, 3}, 5).ok());
  EXPECT_EQ(time({1, 3}), 7) << "its own";
  EXPECT_EQ(time({0, 3}), 7) << "another shard's";
  EXPECT_EQ(time({0, 2}), std::nullopt);
  EXPECT_EQ(time({1, 3}, /*restart=*/true), std::nullopt) << "this run is discarded";
  EXPECT_EQ(Must(FindJobTime(out_, {1, 3}, "other requests", false)), std::nullopt);
  time_ = 8;
  ASSERT_FALSE(Run(2, out_, {1, 3}, 5, /*restart=*/true).ok());
  EXPECT_EQ(time({1, 3}, /*restart=*/true), 8);
  // Of an output the first reply that has one says it.
  const std::string done = folder_.Path("done");
  WriteAll(done, R"({"id":"batch_req_1","response":{"status_code":400,"body":{}}})"
                 "\n"
                 R"({"id":"batch_req_2","response":{"status_code":200,"body":{"created_at":9}}})"
                 "\n");
  EXPECT_EQ(Must(FindJobTime(done, {}, input, false)), 9);
  EXPECT_EQ(Must(FindJobTime(done, {}, input, /*restart=*/true)), std::nullopt);
}

TEST_F(KeptResultsTest, AShardOfAnotherJobIsRefusedAtOnce) {
  ASSERT_TRUE(Run(2, out_, {0, 2}).ok());
  asked_ = 0;
  time_ = 8;
  EXPECT_THAT(
      ErrorOf(Run(2, out_, {1, 2})),
      AllOf(HasSubstr("out.part.0-of-2 has results of another job: its time is 7 and not 8"),
            HasSubstr("with --time 7 in every run and shard the job goes on")));
  EXPECT_EQ(asked_, 0u);
  EXPECT_FALSE(std::filesystem::exists(out_ + ".part.1-of-2"));
  const RequestFile requests = Must(RequestFile::Open(input_));
  JobIdentity elsewhere = Identity(requests);
  elsewhere.time = 7;
  elsewhere.instruction_set = "AVX1";
  EXPECT_THAT(std::string(CheckOtherShards(out_, elsewhere, {1, 2}).message()),
              AllOf(HasSubstr("its instruction set is \"AVX9\" and not \"AVX1\""),
                    HasSubstr("INLAY_TARGET=AVX9")));
  EXPECT_TRUE(CheckOtherShards(out_, elsewhere, {0, 2}).ok()) << "its own is another error";
  // A restart discards what is there, a shard after the other.
  EXPECT_THAT(Must(Run(2, out_, {1, 2}, kRequests, /*restart=*/true)).missing, ElementsAre(0u));
  EXPECT_TRUE(Must(Run(2, out_, {0, 2}, kRequests, /*restart=*/true)).joined);
}

// What an earlier version of the program has kept.
TEST_F(KeptResultsTest, AnotherVersionIsRefusedAtOnce) {
  const std::string header = R"({"inlay_batch":1,"shard":"0/2"})";
  WriteAll(out_ + ".part.0-of-2",
           absl::StrCat(absl::Hex(Xxh64Of(header.data(), header.size()), absl::kZeroPad16), " ",
                        header, "\n"));
  for (const Shard& shard : {Shard{0, 2}, Shard{1, 2}}) {
    EXPECT_THAT(ErrorOf(Run(2, out_, shard)),
                AllOf(HasSubstr("out.part.0-of-2 has results in version 1 of the journal, and this "
                                "program reads version 2"),
                      HasSubstr("--restart discards these results")));
  }
  EXPECT_THAT(ErrorOf(Run(2, out_)), HasSubstr("in 2 shards, not in 1"));
  EXPECT_EQ(asked_, 0u);
  ExpectNothingElse({"in", "out.part.0-of-2"});
  EXPECT_TRUE(Must(Run(2, out_, {}, kRequests + 1, /*restart=*/true)).joined);
  ExpectNothingElse({"in", "out"});
}

TEST_F(KeptResultsTest, AnotherNumberOfShardsIsRefused) {
  const std::string whole = Whole();
  ASSERT_FALSE(Run(2, out_, {1, 3}, 5).ok());
  ASSERT_TRUE(Run(2, out_, {2, 3}).ok());
  WriteAll(out_ + ".part.0-of-9", "notes of mine\n");
  asked_ = 0;
  for (const Shard& shard : {Shard{}, Shard{0, 2}}) {
    EXPECT_THAT(ErrorOf(Run(2, out_, shard)),
                AllOf(HasSubstr("out.part.1-of-3, "), HasSubstr("out.part.2-of-3 have results"),
                      HasSubstr("in 3 shards, not in "), HasSubstr("--shard I/3"),
                      HasSubstr("--restart discards")));
  }
  EXPECT_EQ(asked_, 0u);
  EXPECT_FALSE(std::filesystem::exists(out_ + ".part"));
  ASSERT_TRUE(Must(Run(2, out_, {}, kRequests + 1, /*restart=*/true)).joined);
  EXPECT_EQ(ReadAll(out_), whole);
  ExpectNothingElse({"in", "out", "whole", "out.part.0-of-9"});
  // One process, and then several.
  const std::string alone = folder_.Path("alone");
  ASSERT_FALSE(Run(2, alone, {}, 5).ok());
  EXPECT_THAT(ErrorOf(Run(2, alone, {0, 2})),
              AllOf(HasSubstr("alone.part has results"), HasSubstr("--shard 0/1")));
}

TEST_F(KeptResultsTest, WhatDiffersInAnOutput) {
  const RequestFile requests = Must(RequestFile::Open(input_));
  const JobIdentity job = Identity(requests);
  const HttpHandler handler = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    reply->Send(200, "",
                DumpJson({{"id", request.id},
                          {"created", job.time},
                          {"model", job.model},
                          {"system_fingerprint", job.fingerprint}}),
                {});
  };
  ASSERT_TRUE(
      RunBatchJob(requests, job, handler, {.out = out_, .shard = {}, .mode = {}, .loop = {}}).ok());
  const auto error = [&](const JobIdentity& identity) {
    return std::string(ReadResults(out_, requests, identity, nullptr).status().message());
  };
  EXPECT_EQ(Must(ReadResults(out_, requests, job, nullptr)), 0u);
  JobIdentity other = job;
  other.time = 8;
  EXPECT_THAT(error(other), HasSubstr("line 1 has the time of creation '7' and not '8 (--time)'"));
  other = job;
  other.model = "n";
  EXPECT_THAT(error(other), HasSubstr("line 1 has the model 'm' and not 'n'"));
  other = job;
  other.fingerprint = "g";
  EXPECT_THAT(error(other), HasSubstr("line 1 has the system_fingerprint 'f/AVX9' and not 'g'"));
  other = job;
  other.weights = "g";
  EXPECT_THAT(error(other), HasSubstr("line 1 is of another request with this custom_id, or of "));
  std::vector<std::string> lines = absl::StrSplit(ReadAll(out_), '\n');
  WriteAll(out_, lines[0] + "\n" + lines[2] + "\n");
  EXPECT_THAT(error(job), HasSubstr("line 2 has the custom_id 'request 2' and not 'request 1'"));
  WriteAll(out_, lines[0] + "\n");
  EXPECT_THAT(error(job), HasSubstr("it ends after 1 result of 60"));
}

// Requests whose results failed are asked again, of a journal and of an output.
TEST_F(KeptResultsTest, FailedRequestsAreRetried) {
  const std::string whole = Whole();
  const RequestFile requests = Must(RequestFile::Open(input_));
  const HttpHandler fails = [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const bool odd = request.body.find("1}") != std::string::npos;  // those whose n ends so
    reply->Send(odd                                             ? 500
                : request.body.find("bad") != std::string::npos ? 400
                                                                : 200,
                "", DumpJson({{"id", request.id}, {"path", request.path}, {"echo", request.body}}),
                {});
  };
  const auto fail = [&](Shard shard) {
    return Must(RunBatchJob(requests, Identity(requests), fails,
                            {.out = out_, .shard = shard, .mode = {}, .loop = {}}));
  };
  // 1, 11, ... 51, of which 21 is also bad.
  ASSERT_EQ(fail({}).failed, 9u + 6u - 1u);
  retry_failed_ = true;
  asked_ = 0;
  const BatchJobOutcome retried = Must(Run(2, out_));
  EXPECT_EQ(retried.kept, kRequests - 14);
  EXPECT_EQ(retried.failed, 9u);
  EXPECT_EQ(asked_, 14u);
  EXPECT_EQ(ReadAll(out_), whole);
  // Shards, of which one had its end.
  unlink(out_.c_str());
  fail({0, 2});
  EXPECT_THAT(Must(Run(3, out_, {0, 2})).missing, ElementsAre(1u));
  const BatchJobOutcome joined = Must(Run(4, out_, {1, 2}));
  EXPECT_TRUE(joined.joined);
  EXPECT_EQ(joined.failed, 9u);
  EXPECT_EQ(ReadAll(out_), whole);
  // Where nothing failed there is nothing to retry, and what fails again is kept as it was.
  asked_ = 0;
  EXPECT_EQ(Must(Run(5, out_)).failed, 9u);
  EXPECT_EQ(asked_, 9u);
  EXPECT_EQ(ReadAll(out_), whole);
  ExpectNothingElse({"in", "out", "whole"});
}

// Another shard that is done meanwhile must not join what failed.
TEST_F(KeptResultsTest, AShardThatIsRetriedIsNotDone) {
  const std::string whole = Whole();
  ASSERT_TRUE(Run(2, out_, {0, 2}).ok());
  {
    const RequestFile requests = Must(RequestFile::Open(input_));
    const Journal retried =
        Must(Journal::Open(out_ + ".part.0-of-2", Identity(requests), {0, 2}, requests.size(),
                           {.restart = false, .retry_failed = true}));
    EXPECT_GT(retried.retried(), 0u);
    EXPECT_THAT(Must(Run(3, out_, {1, 2})).missing, ElementsAre(0u));
  }
  EXPECT_TRUE(Must(Run(4, out_, {0, 2})).joined);
  EXPECT_EQ(ReadAll(out_), whole);
}

// A shard that retries does not join what another one has not retried.
TEST_F(KeptResultsTest, EachShardRetriesItsOwn) {
  const std::string whole = Whole();
  ASSERT_TRUE(Run(2, out_, {0, 3}).ok());
  retry_failed_ = true;
  EXPECT_THAT(Must(Run(3, out_, {1, 3})).missing, ElementsAre(0u, 2u));
  EXPECT_THAT(Must(Run(4, out_, {2, 3})).missing, ElementsAre(0u));
  asked_ = 0;
  EXPECT_TRUE(Must(Run(5, out_, {0, 3})).joined);
  EXPECT_EQ(asked_, 3u) << "0, 21 and 42, which fail again";
  EXPECT_EQ(ReadAll(out_), whole);
  // Without the flag what has failed is joined as it is.
  retry_failed_ = false;
  unlink(out_.c_str());
  ASSERT_TRUE(Run(2, out_, {0, 2}).ok());
  retry_failed_ = true;
  EXPECT_THAT(Must(Run(3, out_, {1, 2})).missing, ElementsAre(0u));
  retry_failed_ = false;
  EXPECT_TRUE(Must(Run(4, out_, {1, 2})).joined);
  EXPECT_EQ(ReadAll(out_), whole);
}

TEST_F(KeptResultsTest, AFolderThatIsNotThere) {
  const std::string out = folder_.Path("none/out");
  const absl::Status status = CheckOutput(out);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("nothing can be written into "), HasSubstr("none, the folder of ")));
  EXPECT_TRUE(CheckOutput("out-in-the-working-folder").ok());
}

}  // namespace
}  // namespace inlay::serve

#include "serve/service/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, TellsFiguresByName) {
  SchedulerStats scheduler;
  scheduler.running = 3;
  scheduler.generated_tokens = 12345678901;
  ReplyCounts replies;
  for (const int status : {200, 204, 404, 503}) replies.Add(status);
  const std::string text = MetricsText({.connections = 7,
                                        .replies = &replies,
                                        .scheduler = scheduler,
                                        .answer_log = {{.lost = 2, .waiting_bytes = 100}}});
  EXPECT_THAT(text, HasSubstr("# TYPE inlay_connections gauge\ninlay_connections 7\n"));
  EXPECT_THAT(text, HasSubstr("inlay_answers_running 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE inlay_generated_tokens_total counter\n"
                              "inlay_generated_tokens_total 12345678901\n"));
  EXPECT_THAT(text, HasSubstr("inlay_replies_total{status=\"2xx\"} 2\n"
                              "inlay_replies_total{status=\"3xx\"} 0\n"
                              "inlay_replies_total{status=\"4xx\"} 1\n"
                              "inlay_replies_total{status=\"5xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_answer_log_failed_total 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_answer_log_waiting_bytes 100\n"));
}

// Figures of answers would be zeros for ever.
TEST(MetricsTest, AModelThatEmbedsHasFiguresOfItsOwn) {
  EmbeddingCounts counts;
  counts.taken_places = 3;
  counts.requests = 10;
  counts.refused = 1;
  counts.failed = 2;
  counts.tokens = 12345;
  const std::string text = MetricsText({.embeddings = &counts});
  EXPECT_THAT(text, HasSubstr("inlay_embeddings_waiting 3\n"));
  EXPECT_THAT(text, HasSubstr("inlay_embeddings_total 10\n"));
  EXPECT_THAT(text, HasSubstr("inlay_embeddings_refused_total 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_embeddings_failed_total 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_embedded_tokens_total 12345\n"));
  EXPECT_THAT(text, Not(HasSubstr("inlay_answers")));
}

TEST(MetricsTest, HistogramsAreCumulative) {
  SchedulerStats stats;
  stats.first_token.Add(absl::Milliseconds(1));
  stats.first_token.Add(absl::Milliseconds(40));
  stats.first_token.Add(absl::Seconds(100));
  const std::string text = MetricsText({.scheduler = stats});
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"30\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"120\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"600\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_sum 100.041\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_count 3\n"));
}

// A rate is a difference of two sums: after days of steps one more has to show.
TEST(MetricsTest, SumsAreExact) {
  SchedulerStats stats;
  stats.step_seconds.sum = 1234567.0625;
  EXPECT_THAT(MetricsText({.scheduler = stats}),
              HasSubstr("inlay_step_seconds_sum 1234567.0625\n"));
}

// Prometheus' text format: each line is a comment or a sample, and each name is described once.
TEST(MetricsTest, IsInTheTextFormat) {
  const ReplyCounts replies;
  const EmbeddingCounts embeddings;
  const std::string text = MetricsText({.replies = &replies,
                                        .scheduler = {SchedulerStats()},
                                        .embeddings = &embeddings,
                                        .answer_log = {ServiceStats::Log()}});
  const std::regex sample("inlay_[a-z_]+(\\{(le=\"[0-9.+Inf]+|status=\"[2-5]xx)\"\\})? [0-9.e+-]+");
  const std::regex comment("# (HELP|TYPE) (inlay_[a-z_]+) .+");
  std::set<std::string> described;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.back(), "");
  lines.pop_back();
  for (const std::string& line : lines) {
    std::smatch match;
    if (std::regex_match(line, match, comment)) {
      EXPECT_TRUE(described.insert(match[1].str() + match[2].str()).second) << line;
    } else {
      EXPECT_TRUE(std::regex_match(line, sample)) << line;
    }
  }
}

}  // namespace
}  // namespace inlay::serve

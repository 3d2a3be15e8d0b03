#include "serve/service/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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

TEST(MetricsTest, TellsWhatTheServerIs) {
  const std::string text = MetricsText(
      {.server = {{.version = "1.2.3",
                   .model = "a \"b\"\\\n\xff",
                   .fingerprint = "f/1",
                   .started = 1764421234.25,
                   .resident_bytes = 123456789,
                   .draining = true,
                   .model_is_readable = false,
                   .failed_key_reloads = 4}},
       .sessions = {
           {.up = false, .count = 12, .in_use = 3, .memory = {{.bytes = 7, .most_bytes = 100}}}}});
  EXPECT_THAT(text, HasSubstr(R"(inlay_build_info{version="1.2.3",model="a \"b\"\\\n\\xff",)"
                              "fingerprint=\"f/1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE process_start_time_seconds gauge\n"
                              "process_start_time_seconds 1764421234.25\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes 123456789\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_draining 1\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_model_readable 0\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_key_reloads_failed_total 4\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_sessions_up 0\n"));
  EXPECT_THAT(text, HasSubstr("\n# TYPE inlay_sessions gauge\ninlay_sessions 12\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_sessions_in_use 3\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_session_bytes 7\n"));
  EXPECT_THAT(text, HasSubstr("\ninlay_session_memory_bytes 100\n"));
}

// All figures that there may be.
std::string WholeText() {
  const ReplyCounts replies;
  const EmbeddingCounts embeddings;
  SchedulerStats scheduler;
  scheduler.shared.emplace();
  return MetricsText({.replies = &replies,
                      .scheduler = scheduler,
                      .embeddings = &embeddings,
                      .answer_log = {ServiceStats::Log()},
                      .lost_access_lines = 0,
                      .server = {{.resident_bytes = 1}},
                      .sessions = {{.count = 1, .memory = {{.bytes = 0, .most_bytes = 1}}}}});
}

// Each figure is a row of the table, or part of one, and each name in the table is one of a figure.
TEST(MetricsTest, AreThoseThatTheDocumentationLists) {
  std::ifstream file("docs/serving.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t begin = page.find("### Metrics"), end = page.find("### Troubleshooting");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  std::set<std::string> listed, told;
  for (const absl::string_view line : absl::StrSplit(page.substr(begin, end - begin), '\n')) {
    // The first column of a row, or the sentence on models that embed.
    const std::string part(line.substr(0, absl::StartsWith(line, "|") ? line.find('|', 1) : 400));
    static const std::regex kName("`([a-z]+(_[a-z]+)*)(\\{[^`]*)?`");
    for (std::sregex_iterator name(part.begin(), part.end(), kName), none; name != none; ++name)
      listed.insert((*name)[1]);
  }
  for (const absl::string_view line : absl::StrSplit(WholeText(), '\n')) {
    absl::string_view name = line;
    if (!absl::ConsumePrefix(&name, "# TYPE ")) continue;
    absl::ConsumePrefix(&name, "inlay_");
    told.emplace(name.substr(0, name.find(' ')));
  }
  EXPECT_EQ(listed, told);
}

// Prometheus' text format: each line is a comment or a sample, and each name is described once.
TEST(MetricsTest, IsInTheTextFormat) {
  const std::string text = WholeText();
  const std::regex sample(
      "(inlay|process)_[a-z_]+(\\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\\})? [0-9.e+-]+");
  const std::regex comment("# (HELP|TYPE) ((inlay|process)_[a-z_]+) .+");
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

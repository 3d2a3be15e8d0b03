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

TEST(MetricsTest, TellsFiguresByName) {
  SchedulerStats stats;
  stats.running = 3;
  stats.generated_tokens = 12345678901;
  const std::string text = MetricsText(stats, 7);
  EXPECT_THAT(text, HasSubstr("# TYPE inlay_connections gauge\ninlay_connections 7\n"));
  EXPECT_THAT(text, HasSubstr("inlay_answers_running 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE inlay_generated_tokens_total counter\n"
                              "inlay_generated_tokens_total 12345678901\n"));
}

TEST(MetricsTest, HistogramsAreCumulative) {
  SchedulerStats stats;
  stats.first_token.Add(absl::Milliseconds(1));
  stats.first_token.Add(absl::Milliseconds(40));
  stats.first_token.Add(absl::Seconds(100));
  const std::string text = MetricsText(stats, 0);
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"0.05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"30\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_sum 100.041\n"));
  EXPECT_THAT(text, HasSubstr("inlay_first_token_seconds_count 3\n"));
}

// Prometheus' text format: each line is a comment or a sample, and each name is described once.
TEST(MetricsTest, IsInTheTextFormat) {
  const std::string text = MetricsText({}, 0);
  const std::regex sample("inlay_[a-z_]+(\\{le=\"[0-9.+Inf]+\"\\})? [0-9.e+]+");
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

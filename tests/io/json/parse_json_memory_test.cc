// JSON while memory runs out: whatever allocation fails, the next text is parsed.
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "io/json/parse_json.h"
#include "tests/failing_memory.h"

namespace inlay {
namespace {

// Of an object of numbers: nlohmann's values of lists and objects take memory when they end.
TEST(ParseJsonMemoryTest, SurvivesEveryAllocationThatFails) {
  std::string text = "{\"the first member\":0";
  for (int i = 1; i < 40; ++i) absl::StrAppend(&text, ",\"a member with a long name ", i, "\":", i);
  text += "}";
  int failures = 0;
  for (bool has_failed = true; has_failed;) {
    failing_memory::FailAfter(failures, failing_memory::Fault::kOnce);
    const absl::StatusOr<Json> parsed = ParseJson("a text", text);
    failing_memory::Stop();
    has_failed = failing_memory::has_failed;
    if (has_failed) ++failures;
    EXPECT_EQ(parsed.ok(), !has_failed) << parsed.status();
  }
  EXPECT_GT(failures, 80);
}

}  // namespace
}  // namespace inlay

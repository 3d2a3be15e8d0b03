// JSON while memory runs out: whatever allocation fails, from then on or once, the process goes on.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "io/json/parse_json.h"
#include "tests/failing_memory.h"

namespace inlay {
namespace {

using failing_memory::Fault;

// Lists and objects in each other, as nlohmann's values of such take memory when they end; a name
// that comes again, whose first value ends.
std::string NestedText() {
  std::string text = "{\"the first member, whose name is long\":[[0]]";
  for (int i = 1; i < 20; ++i)
    absl::StrAppend(&text, ",\"a member with a long name ", i % 15, "\":[", i, ",[{\"a\":[", i,
                    "]}]]");
  return text + "}";
}

TEST(ParseJsonMemoryTest, SurvivesEveryAllocationThatFails) {
  const std::string text = NestedText();
  int failures = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    int allocations = 0;
    for (bool has_failed = true; has_failed; ++allocations) {
      failing_memory::FailAfter(allocations, fault);
      const absl::StatusOr<Json> parsed = ParseJson("a text", text);
      failing_memory::Stop();
      has_failed = failing_memory::has_failed;
      if (has_failed) ++failures;
      EXPECT_EQ(parsed.ok(), !has_failed);
    }
  }
  EXPECT_GT(failures, 400);
}

TEST(ParseJsonMemoryTest, ADocumentEndsWithoutMemory) {
  absl::StatusOr<Json> json = ParseJson("a text", NestedText());
  ASSERT_TRUE(json.ok());
  {
    const JsonDocument document = *std::move(json);
    failing_memory::FailAfter(0, Fault::kFromThenOn);
  }
  failing_memory::Stop();
  EXPECT_FALSE(failing_memory::has_failed) << "it takes none";
}

}  // namespace
}  // namespace inlay

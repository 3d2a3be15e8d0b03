// JSON while memory runs out: whatever allocation fails, from then on or once, the process goes on.
#include <gtest/gtest.h>

#include <new>
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

// Calls act(), which returns whether it found memory, with each of its allocations failing in turn.
template <class Act>
void SurvivesEveryAllocationThatFails(const Act& act, int least_failures) {
  int failures = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    int allocations = 0;
    for (bool has_failed = true; has_failed; ++allocations) {
      failing_memory::FailAfter(allocations, fault);
      const bool found_memory = act();
      failing_memory::Stop();
      has_failed = failing_memory::has_failed;
      if (has_failed) ++failures;
      EXPECT_EQ(found_memory, !has_failed);
    }
  }
  EXPECT_GT(failures, least_failures);
}

TEST(ParseJsonMemoryTest, ParsingSurvives) {
  const std::string text = NestedText();
  SurvivesEveryAllocationThatFails([&] { return ParseJson("a text", text).ok(); }, 400);
}

TEST(ParseJsonMemoryTest, CopyingADocumentSurvives) {
  const absl::StatusOr<JsonDocument> document = ParseJson("a text", NestedText());
  ASSERT_TRUE(document.ok());
  const auto copy = [&] {
    try {
      return *JsonDocument(*document) == **document;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  EXPECT_TRUE(copy());
  SurvivesEveryAllocationThatFails(
      [&] {
        try {
          const JsonDocument kept = *document;
          return true;
        } catch (const std::bad_alloc&) {
          return false;
        }
      },
      200);
}

TEST(ParseJsonMemoryTest, ADocumentEndsWithoutMemory) {
  const auto parse = [] { return ParseJson("a text", NestedText()).value(); };
  {
    JsonDocument document = parse(), replaced = parse();
    failing_memory::FailAfter(0, Fault::kFromThenOn);
    replaced = std::move(document);
  }
  failing_memory::Stop();
  EXPECT_FALSE(failing_memory::has_failed) << "it takes none";
}

}  // namespace
}  // namespace inlay

// Lines of batch jobs and logs while memory runs out: the JSON in them ends without taking any.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/result_line.h"
#include "serve/service/answer_record.h"
#include "tests/failing_memory.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;

// Lists and objects in each other, as nlohmann's values of such take memory when they end.
constexpr char kNested[] = R"({"a member with a long name":[[{"another such member":[1,[2]]}]]})";

// Calls act() with each of its allocations failing in turn, once and from then on.
void FailEachAllocation(absl::string_view what, const std::function<void()>& act) {
  int failures = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    bool failed = true;
    for (long allocation = 0; failed; ++allocation) {
      failing_memory::FailAfter(allocation, fault);
      try {
        act();
      } catch (const std::bad_alloc&) {
      }
      failing_memory::Stop();
      failed = failing_memory::has_failed;
      if (failed) ++failures;
    }
  }
  EXPECT_GT(failures, 20) << what;
}

TEST(LinesFaultTest, SurviveEveryAllocationThatFails) {
  const std::string result = absl::StrCat(
      R"({"id":"batch_req_0","response":{"status_code":200,"body":)", kNested, "},\"error\":null}");
  FailEachAllocation("a result", [&] { ParseResultLine(result).IgnoreError(); });
  const std::string request = absl::StrCat(
      R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":)", kNested, "}");
  FailEachAllocation("a request", [&] { ParseBatchRequest(request).IgnoreError(); });
  const std::string record = absl::StrCat(R"({"id":"a","other":)", kNested, "}");
  FailEachAllocation("a record", [&] { ParseRecord(record).IgnoreError(); });
}

}  // namespace
}  // namespace inlay::serve

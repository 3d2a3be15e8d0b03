// Requests that are read again from their file.
#include "serve/batch_job/request_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

// An answer to a request that was changed would stand for the request that was checked.
TEST(RequestFile, ARequestThatWasChangedInPlace) {
  const TempFolder folder;
  const std::string path = folder.path() + "/requests.jsonl";
  const auto write = [&](const std::string& word) {
    std::ofstream file(path, std::ios::in | std::ios::out | std::ios::trunc);
    for (const char* id : {"a", "b"}) {
      file << R"({"custom_id": ")" << id
           << R"(", "method": "POST", "url": "/v1/completions", "body": {"prompt": ")"
           << (*id == 'b' ? word : "same") << "\"}}\n";
    }
  };
  write("one");
  const RequestFile file = Must(RequestFile::Open(path));
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(Must(file.Read(1)).custom_id, "b");
  write("two");
  EXPECT_EQ(Must(file.Read(0)).custom_id, "a");
  const absl::Status status = file.Read(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has changed since"));
}

}  // namespace
}  // namespace inlay::serve

// Requests that are read again from their file.
#include "serve/batch_job/request_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/must.h"
#include "tests/serve/batch_job/batch_job_fixture.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(RequestFile, TheFirstLinesOfTwoKinds) {
  const TempFolder folder;
  const std::string path = folder.Path("requests");
  WriteAll(path, "\n" + RequestLine("a", Json::object(), "/v1/messages") +
                     RequestLine("b", Json::object(), "/v1/embeddings"));
  const RequestFile both = Must(RequestFile::Open(path));
  EXPECT_EQ(both.first_to_answer(), 2u);
  EXPECT_EQ(both.first_to_embed(), 3u);
  WriteAll(path, RequestLine("b", Json::object(), "/v1/embeddings"));
  EXPECT_EQ(Must(RequestFile::Open(path)).first_to_answer(), std::nullopt);
}

TEST(RequestFile, WrongLinesAreNamed) {
  const TempFolder folder;
  const std::string path = folder.Path("requests");
  const std::string good = RequestLine("a", Json::object());
  const auto error = [&](const std::string& text) {
    WriteAll(path, text);
    return std::string(RequestFile::Open(path).status().message());
  };
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error("\xEF\xBB\xBF" + good + "\r\n"), "") << "as Windows writes files";
  EXPECT_THAT(error(""), HasSubstr("has no requests"));
  EXPECT_THAT(error(good + "\n{\"custom_id\": \n"),
              HasSubstr("requests:3: the request is not JSON"));
  EXPECT_THAT(error(good + "[]"), HasSubstr(":2: the request is not a JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr(":1: the request needs \"custom_id\", a string"));
  EXPECT_THAT(error(R"({"custom_id": ""})"), HasSubstr(":1: \"custom_id\" is empty"));
  EXPECT_THAT(error(R"({"custom_id": "a", "method": "GET"})"), HasSubstr("is 'GET', not POST"));
  EXPECT_THAT(error(RequestLine("a", Json::object(), "/v1/models")),
              HasSubstr("\"url\" is '/v1/models', not one of /v1/chat/completions, "));
  EXPECT_THAT(error(RequestLine("a", "text")), HasSubstr("needs \"body\", an object"));
  EXPECT_THAT(error(good + "\n" + RequestLine("b", Json::object()) + good),
              HasSubstr("requests:4: the custom_id 'a' is also that of line 1"));
  EXPECT_THAT(error(good + std::string(size_t{40} << 20, ' ')),
              HasSubstr("requests:2: the line has more than"));
  std::string many;
  for (int i = 0; i < 25; ++i) many += i == 3 ? RequestLine("c", Json::object()) : "[]\n";
  const std::string named = error(many);
  EXPECT_THAT(named, HasSubstr("requests has 24 wrong lines, first "));
  EXPECT_THAT(named, HasSubstr("requests:1: the request is not a JSON object; "));
  EXPECT_THAT(named, HasSubstr("requests:21: the"));
  EXPECT_THAT(named, Not(HasSubstr("requests:22: ")));
  EXPECT_THAT(error(good + good + RequestLine("b", Json::object()) + good),
              HasSubstr("has 2 wrong lines: "));
  EXPECT_THAT(error(good + good + RequestLine("b", Json::object()) + good),
              HasSubstr("requests:4: the custom_id 'a' is also that of line 1"));
  EXPECT_THAT(error("\x1f\x8b\b"), HasSubstr("requests is compressed by gzip: unpack it first"));
  EXPECT_THAT(RequestFile::Open(folder.path()).status().message(),
              HasSubstr("is a directory, not a file"));
  EXPECT_THAT(RequestFile::Open(folder.Path("none")).status().message(),
              HasSubstr("none cannot be opened"));
}

}  // namespace
}  // namespace inlay::serve

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "base/out_of_memory.h"
#include "serve/api/parse_call.h"
#include "serve/api/reply.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

TEST(ErrorBody, HasTheProtocolsShape) {
  const absl::Status status = absl::InvalidArgumentError("n must be 1");
  for (const Protocol protocol : {Protocol::kChatCompletions, Protocol::kCompletions,
                                  Protocol::kResponses, Protocol::kInlay}) {
    EXPECT_EQ(ErrorBody(protocol, status),
              Quoted("{'error':{'message':'n must be 1','type':'invalid_request_error',"
                     "'param':null,'code':null}}"));
  }
  EXPECT_EQ(ErrorBody(Protocol::kMessages, status),
            Quoted("{'type':'error','error':{'type':'invalid_request_error',"
                   "'message':'n must be 1'}}"));
  EXPECT_EQ(ErrorBody(Protocol::kInlay, MarkTooLong(absl::OutOfRangeError("too long"))),
            Quoted("{'error':{'message':'too long','type':'invalid_request_error','param':null,"
                   "'code':'context_length_exceeded'}}"));
  EXPECT_EQ(ErrorBody(Protocol::kMessages, MarkTooLong(absl::OutOfRangeError("9 of 8"))),
            Quoted("{'type':'error','error':{'type':'invalid_request_error',"
                   "'message':'prompt is too long: 9 of 8'}}"));
  // No client is to shorten a conversation because of another error.
  EXPECT_EQ(ErrorBody(Protocol::kInlay, MarkTooLong(status)), ErrorBody(Protocol::kInlay, status));
  EXPECT_EQ(ErrorBody(Protocol::kInlay, absl::OutOfRangeError("position 9 of 8")),
            Quoted("{'error':{'message':'position 9 of 8','type':'invalid_request_error',"
                   "'param':null,'code':null}}"));
  EXPECT_EQ(ErrorBody(Protocol::kMessages, absl::OutOfRangeError("position 9 of 8")),
            Quoted("{'type':'error','error':{'type':'invalid_request_error',"
                   "'message':'position 9 of 8'}}"));
  // Anthropic's client goes on without a thread where it finds this code.
  const auto call = ParseCall(
      Protocol::kMessages,
      R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"thread":{"type":"create"}})",
      {});
  EXPECT_EQ(Json::parse(ErrorBody(Protocol::kMessages, call.status()))["error"]["details"].dump(),
            Quoted("{'error_code':'thread_unsupported_request'}"));
}

TEST(ErrorBody, NamesTheHttpStatus) {
  const struct {
    absl::StatusCode code;
    int http_status;
    const char* openai;
    const char* anthropic;
  } kTable[] = {
      {absl::StatusCode::kFailedPrecondition, 400, "invalid_request_error",
       "invalid_request_error"},
      {absl::StatusCode::kUnauthenticated, 401, "authentication_error", "authentication_error"},
      {absl::StatusCode::kPermissionDenied, 403, "permission_error", "permission_error"},
      {absl::StatusCode::kNotFound, 404, "not_found_error", "not_found_error"},
      {absl::StatusCode::kAborted, 409, "conflict_error", "invalid_request_error"},
      {absl::StatusCode::kAlreadyExists, 409, "conflict_error", "invalid_request_error"},
      {absl::StatusCode::kResourceExhausted, 429, "rate_limit_error", "rate_limit_error"},
      {absl::StatusCode::kCancelled, 499, "cancelled_error", "api_error"},
      {absl::StatusCode::kUnimplemented, 501, "not_implemented_error", "invalid_request_error"},
      {absl::StatusCode::kUnavailable, 503, "overloaded_error", "overloaded_error"},
      {absl::StatusCode::kDeadlineExceeded, 504, "timeout_error", "timeout_error"},
      {absl::StatusCode::kInternal, 500, "server_error", "api_error"},
      {absl::StatusCode::kDataLoss, 500, "server_error", "api_error"},
  };
  for (const auto& row : kTable) {
    const absl::Status status(row.code, "a");
    EXPECT_EQ(HttpStatusOf(status), row.http_status);
    EXPECT_EQ(Json::parse(ErrorBody(Protocol::kInlay, status))["error"]["type"], row.openai);
    EXPECT_EQ(Json::parse(ErrorBody(Protocol::kMessages, status))["error"]["type"], row.anthropic);
  }
}

// The machine's lack of memory is nothing that the client does too often.
TEST(ErrorBody, TellsALackOfMemoryFromALimit) {
  const absl::Status status = OutOfMemoryError("this answer");
  EXPECT_EQ(HttpStatusOf(status), 503);
  EXPECT_EQ(ErrorBody(Protocol::kInlay, status),
            Quoted("{'error':{'message':'there is not enough memory for this answer',"
                   "'type':'overloaded_error','param':null,'code':null}}"));
  EXPECT_EQ(ErrorBody(Protocol::kMessages, status),
            Quoted("{'type':'error','error':{'type':'overloaded_error',"
                   "'message':'there is not enough memory for this answer'}}"));
  EXPECT_EQ(HttpStatusOf(absl::Status(absl::StatusCode::kResourceExhausted, "")), 503);
}

TEST(ErrorBody, IsJsonWhateverTheMessageHolds) {
  const absl::Status status = absl::InvalidArgumentError("a \"\\\n\xff");
  for (const Protocol protocol : {Protocol::kInlay, Protocol::kMessages}) {
    EXPECT_EQ(Json::parse(ErrorBody(protocol, status))["error"]["message"], "a \"\\\n\xef\xbf\xbd");
  }
}

}  // namespace
}  // namespace inlay::serve

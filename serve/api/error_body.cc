// Errors as each protocol's clients expect them.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"
#include "io/json/parse_json.h"
#include "serve/api/reply.h"
#include "serve/api/reply_parts.h"

namespace inlay::serve {
namespace {

// The names of OpenAI's and Anthropic's errors by HTTP status.
struct ErrorNames {
  int http_status;
  const char* openai;
  const char* anthropic;
};

constexpr ErrorNames kErrorNames[] = {
    {400, "invalid_request_error", "invalid_request_error"},
    {401, "authentication_error", "authentication_error"},
    {403, "permission_error", "permission_error"},
    {404, "not_found_error", "not_found_error"},
    {409, "conflict_error", "invalid_request_error"},
    {429, "rate_limit_error", "rate_limit_error"},
    {499, "cancelled_error", "api_error"},
    {501, "not_implemented_error", "invalid_request_error"},
    {503, "overloaded_error", "overloaded_error"},
    {504, "timeout_error", "timeout_error"},
};

// The payload of a status that has a code of Anthropic's.
constexpr char kErrorCode[] = "inlay/error_code";
// That of one that MarkTooLong has marked.
constexpr char kTooLong[] = "inlay/too_long";

ErrorNames NamesOf(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  for (const ErrorNames& names : kErrorNames)
    if (names.http_status == http_status) return names;
  return {500, "server_error", "api_error"};
}

std::string Quoted(absl::string_view text) { return DumpJson(Json(std::string(text))); }

// Errors are written as texts, as a lack of memory is one of them, without which a Json with
// members cannot end: see base/out_of_memory.h.
std::string OpenAiErrorText(const absl::Status& status) {
  // Clients that shorten a conversation which has become too long look for this code.
  const absl::string_view code = IsTooLong(status) ? "\"context_length_exceeded\"" : "null";
  return absl::StrCat(R"({"error":{"message":)", Quoted(status.message()), R"(,"type":")",
                      NamesOf(status).openai, R"(","param":null,"code":)", code, "}}");
}

std::string AnthropicErrorText(const absl::Status& status) {
  // Clients that shorten a conversation which has become too long look for these words.
  const std::string message =
      absl::StrCat(IsTooLong(status) ? "prompt is too long: " : "", status.message());
  const auto code = status.GetPayload(kErrorCode);
  const std::string details = code.has_value() ? absl::StrCat(R"(,"details":{"error_code":)",
                                                              Quoted(std::string(*code)), "}")
                                               : "";
  return absl::StrCat(R"({"type":"error","error":{"type":")", NamesOf(status).anthropic,
                      R"(","message":)", Quoted(message), details, "}}");
}

}  // namespace

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return IsOutOfMemory(status) ? 503 : 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

Json OpenAiError(const absl::Status& status) { return Json::parse(OpenAiErrorText(status)); }

Json AnthropicError(const absl::Status& status) { return Json::parse(AnthropicErrorText(status)); }

absl::Status MarkTooLong(absl::Status status) {
  if (absl::IsOutOfRange(status)) status.SetPayload(kTooLong, absl::Cord());
  return status;
}

bool IsTooLong(const absl::Status& status) { return status.GetPayload(kTooLong).has_value(); }

void SetErrorCode(absl::string_view code, absl::Status* status) {
  status->SetPayload(kErrorCode, absl::Cord(code));
}

std::string ErrorBody(Protocol protocol, const absl::Status& status) {
  return protocol == Protocol::kMessages ? AnthropicErrorText(status) : OpenAiErrorText(status);
}

}  // namespace inlay::serve

#include "serve/batch_job/result_line.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kIdPrefix = "batch_req_";
static_assert(kResultStart.substr(kResultStart.size() - kIdPrefix.size()) == kIdPrefix);

}  // namespace

std::string ResultLine(absl::string_view reply_id, absl::string_view custom_id, int status,
                       absl::string_view body) {
  assert(body.find('\n') == absl::string_view::npos);
  return absl::StrCat(kResultStart, reply_id, R"(","custom_id":)", DumpJson(std::string(custom_id)),
                      R"(,"response":{"status_code":)", status, R"(,"request_id":")", reply_id,
                      R"(","body":)", body, R"(},"error":null})");
}

absl::StatusOr<ParsedResult> ParseResultLine(absl::string_view line) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseJson("the result", line));
  const auto no_result = [] { return absl::InvalidArgumentError("this is no result of a batch"); };
  const std::string id = JsonString(JsonMember(*json, "id"));
  const Json& status = JsonMember(JsonMember(*json, "response"), "status_code");
  absl::string_view reply_id = id;
  if (!absl::ConsumePrefix(&reply_id, kIdPrefix) || !status.is_number_integer()) return no_result();
  const Json& body = JsonMember(JsonMember(*json, "response"), "body");
  const auto text = [&](const char* key) -> std::optional<std::string> {
    const Json& member = JsonMember(body, key);
    return member.is_string() ? std::optional(JsonString(member)) : std::nullopt;
  };
  std::optional<int64_t> created;
  for (const char* key : {"created", "created_at"}) {
    if (const Json& time = JsonMember(body, key); time.is_number_integer())
      created = time.get<int64_t>();
  }
  return ParsedResult{.reply_id = std::string(reply_id),
                      .custom_id = JsonString(JsonMember(*json, "custom_id")),
                      .status = status.get<int>(),
                      .model = text("model"),
                      .fingerprint = text("system_fingerprint"),
                      .created = created};
}

}  // namespace inlay::serve

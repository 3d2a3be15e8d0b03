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
  INLAY_ASSIGN_OR_RETURN(const Json json, ParseJson("the result", line));
  const auto no_result = [] { return absl::InvalidArgumentError("this is no result of a batch"); };
  if (!json.is_object()) return no_result();
  const Json id = json.value("id", Json()), response = json.value("response", Json());
  if (!id.is_string() || !response.is_object()) return no_result();
  const Json status = response.value("status_code", Json());
  const std::string text = id.get<std::string>();
  absl::string_view reply_id = text;
  if (!absl::ConsumePrefix(&reply_id, kIdPrefix) || !status.is_number_integer()) return no_result();
  return ParsedResult{.reply_id = std::string(reply_id), .status = status.get<int>()};
}

}  // namespace inlay::serve

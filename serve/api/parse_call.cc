#include "serve/api/parse_call.h"

#include <cassert>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
#include "serve/api/call_fields.h"
#include "serve/api/field_reader.h"
#include "serve/api/parsers.h"
#include "serve/api/request_json.h"

namespace inlay::serve {
namespace {

void ParseFields(FieldReader& body, const ParseOptions& options, bool counting, Call* call) {
  call->model = body.Text("model").value_or("");
  switch (call->protocol) {
    case Protocol::kChatCompletions:
      return ParseChatCompletions(body, call);
    case Protocol::kCompletions:
      return ParseCompletions(body, call);
    case Protocol::kResponses:
      return ParseResponses(body, call);
    case Protocol::kMessages:
      return ParseMessages(body, options, counting, call);
    case Protocol::kInlay:
      assert(false);
  }
}

absl::StatusOr<Call> Read(Protocol protocol, const Json& json, const ParseOptions& options,
                          bool counting) {
  return OrOutOfMemory("reading a request", [&]() -> absl::StatusOr<Call> {
    Call call;
    call.protocol = protocol;
    call.sampling = options.defaults.sampling;
    call.max_tokens = options.defaults.max_tokens;
    absl::Status error;
    FieldReader body(json, "", &error);
    ParseFields(body, options, counting, &call);
    body.Finish();
    if (!error.ok()) return error;
    // Last: the parsers add no variable that is there.
    if (protocol != Protocol::kCompletions) {
      for (const auto& [key, value] : options.defaults.template_variables.items())
        call.template_variables->emplace(key, Json(value));
    }
    return call;
  });
}

absl::StatusOr<Call> Parse(Protocol protocol, absl::string_view text, const ParseOptions& options,
                           bool counting) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", text));
  return Read(protocol, *json, options, counting);
}

}  // namespace

absl::StatusOr<Call> ParseCall(Protocol protocol, absl::string_view body,
                               const ParseOptions& options) {
  return Parse(protocol, body, options, /*counting=*/false);
}

absl::StatusOr<Call> ReadCall(Protocol protocol, const Json& body, const ParseOptions& options) {
  return Read(protocol, body, options, /*counting=*/false);
}

absl::StatusOr<Json> ParseTemplateVariables(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(JsonDocument json, ParseJson("the value", text));
  if (!json->is_object())
    return absl::InvalidArgumentError(absl::StrCat("must be an object, not ", KindOf(*json)));
  JsonDocument body(Json::object());
  (*body)["chat_template_kwargs"] = std::move(*json);
  absl::Status error;
  FieldReader reader(*body, "", &error);
  Call call;
  ReadTemplateVariables(reader, &call);
  if (!error.ok()) return error;
  return *std::move(call.template_variables);
}

absl::StatusOr<Call> ParseCountTokens(absl::string_view body, const ParseOptions& options) {
  return Parse(Protocol::kMessages, body, options, /*counting=*/true);
}

}  // namespace inlay::serve

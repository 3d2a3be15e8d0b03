#include "serve/api/parse_call.h"

#include <cassert>
#include <utility>

#include "absl/status/status.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
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

absl::StatusOr<Call> Parse(Protocol protocol, absl::string_view text, const ParseOptions& options,
                           bool counting) {
  return OrOutOfMemory("reading a request", [&]() -> absl::StatusOr<Call> {
    INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", text));
    Call call;
    call.protocol = protocol;
    absl::Status error;
    FieldReader body(*json, "", &error);
    ParseFields(body, options, counting, &call);
    body.Finish();
    if (!error.ok()) return error;
    return call;
  });
}

}  // namespace

absl::StatusOr<Call> ParseCall(Protocol protocol, absl::string_view body,
                               const ParseOptions& options) {
  return Parse(protocol, body, options, /*counting=*/false);
}

absl::StatusOr<Call> ParseCountTokens(absl::string_view body, const ParseOptions& options) {
  return Parse(Protocol::kMessages, body, options, /*counting=*/true);
}

Call::~Call() {
  for (Json* const json : {&messages, &tools, &template_variables, &repeated}) EmptyJson(*json);
}

}  // namespace inlay::serve

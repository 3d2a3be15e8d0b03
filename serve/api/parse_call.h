// Reads requests for answers, of every protocol.
#ifndef INLAY_SERVE_API_PARSE_CALL_H_
#define INLAY_SERVE_API_PARSE_CALL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/api/call.h"
#include "serve/api/parse_options.h"

namespace inlay::serve {

// The call that `body`, a request of `protocol`, stands for. Every field of the protocol counts,
// has no effect on an answer in any case (the parsers list those), or is refused: InvalidArgument
// with a sentence that names the field, its value and its bound, also for fields that are not
// known. ResourceExhausted without memory. Must not be called for Protocol::kInlay.
//
// The body of a chat/completions request is also that of /apply-template.
absl::StatusOr<Call> ParseCall(Protocol protocol, absl::string_view body,
                               const ParseOptions& options = {});
// The same of a body that was parsed.
absl::StatusOr<Call> ReadCall(Protocol protocol, const Json& body, const ParseOptions& options);

// The variables for chat templates that `text`, a JSON object as of a request's
// "chat_template_kwargs", stands for. InvalidArgument, likewise.
absl::StatusOr<Json> ParseTemplateVariables(absl::string_view text);

// The same for /v1/messages/count_tokens: a request of Protocol::kMessages that needs no
// "max_tokens".
absl::StatusOr<Call> ParseCountTokens(absl::string_view body, const ParseOptions& options = {});

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_PARSE_CALL_H_

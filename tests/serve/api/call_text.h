// Calls as JSON, for tests of what requests mean.
#ifndef INLAY_TESTS_SERVE_API_CALL_TEXT_H_
#define INLAY_TESTS_SERVE_API_CALL_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/api/call.h"
#include "serve/api/parse_call.h"

namespace inlay::serve {

// What a call says that no empty one says, as JSON.
Json CallJson(const Call& call);

// `text` with " for ' and ' for ~, so that JSON can be written in C++.
std::string Quoted(absl::string_view text);

// The call of a request, which goes through Quoted(), as JSON on one line; the sentence where there
// is an error, after the name of its code unless that is InvalidArgument.
std::string Parsed(Protocol protocol, absl::string_view request, const ParseOptions& options = {});
std::string ParsedText(const absl::StatusOr<Call>& call);

// What a request means, both to go through Quoted().
using ParseTable = std::vector<std::pair<const char*, const char*>>;

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_API_CALL_TEXT_H_

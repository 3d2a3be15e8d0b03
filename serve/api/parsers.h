// The parser of each protocol. They collect errors in `error` of the body's reader, and read every
// field that they know; ParseCall() does the rest.
#ifndef INLAY_SERVE_API_PARSERS_H_
#define INLAY_SERVE_API_PARSERS_H_

#include "serve/api/call.h"
#include "serve/api/field_reader.h"
#include "serve/api/parse_options.h"

namespace inlay::serve {

void ParseChatCompletions(FieldReader& body, Call* call);
void ParseCompletions(FieldReader& body, Call* call);
void ParseResponses(FieldReader& body, Call* call);
// `counting`: the request asks for the number of its tokens only.
void ParseMessages(FieldReader& body, const ParseOptions& options, bool counting, Call* call);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_PARSERS_H_

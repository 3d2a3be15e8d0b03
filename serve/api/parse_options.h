// What a server chooses about the requests that it reads.
#ifndef INLAY_SERVE_API_PARSE_OPTIONS_H_
#define INLAY_SERVE_API_PARSE_OPTIONS_H_

namespace inlay::serve {

struct ParseOptions {
  // Messages: leave out a first block of the system prompt that starts with
  // "x-anthropic-billing-header:". Claude Code writes it for who bills; as it changes from request
  // to request, the prompt of no request could be reused for the next.
  bool drop_billing_line = true;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_PARSE_OPTIONS_H_

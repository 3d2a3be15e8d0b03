// Requests for tokens instead of answers, as llama.cpp's server knows them: /tokenize and
// /detokenize; and the replies of these, of /apply-template and of Anthropic's count_tokens.
#ifndef INLAY_SERVE_API_TOKEN_REQUESTS_H_
#define INLAY_SERVE_API_TOKEN_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay::serve {

struct TokenizeRequest {
  std::string content;
  bool add_special = false;   // BOS, where the vocabulary says so
  bool parse_special = true;  // the text of a control token becomes that token
  bool with_pieces = false;
};

struct DetokenizeRequest {
  std::vector<int32_t> tokens;
};

// {"content", "add_special", "parse_special", "with_pieces"} and {"tokens"}. InvalidArgument with a
// sentence that names the field, also for fields that are not known.
absl::StatusOr<TokenizeRequest> ParseTokenize(absl::string_view body);
absl::StatusOr<DetokenizeRequest> ParseDetokenize(absl::string_view body);

// {"tokens": [1, 2]}, or with pieces {"tokens": [{"id": 1, "piece": "a"}]}, where a piece that is
// no UTF-8 is a list of bytes.
std::string TokenizeBody(const TokenizeRequest& request, absl::Span<const int32_t> tokens,
                         const Tokenizer& tokenizer);
// {"content": "a"}
std::string DetokenizeBody(absl::string_view content);
// {"prompt": "a"}
std::string ApplyTemplateBody(absl::string_view prompt);
// {"input_tokens": 1}
std::string CountTokensBody(size_t tokens);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_TOKEN_REQUESTS_H_

#include "serve/api/token_requests.h"

#include <string>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/json/parse_json.h"
#include "serve/api/field_reader.h"
#include "serve/api/reply_parts.h"
#include "serve/api/request_json.h"
#include "serve/api/text_or_tokens.h"

namespace inlay::serve {

absl::StatusOr<TokenizeRequest> ParseTokenize(absl::string_view body) {
  return OrOutOfMemory("reading a request", [&]() -> absl::StatusOr<TokenizeRequest> {
    INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", body));
    absl::Status error;
    FieldReader reader(*json, "", &error);
    TokenizeRequest request;
    request.content = reader.NeedText("content");
    request.add_special = reader.Bool("add_special").value_or(request.add_special);
    request.parse_special = reader.Bool("parse_special").value_or(request.parse_special);
    request.with_pieces = reader.Bool("with_pieces").value_or(request.with_pieces);
    reader.NoEffect({"model"});
    reader.Finish();
    if (!error.ok()) return error;
    return request;
  });
}

absl::StatusOr<DetokenizeRequest> ParseDetokenize(absl::string_view body) {
  return OrOutOfMemory("reading a request", [&]() -> absl::StatusOr<DetokenizeRequest> {
    INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", body));
    absl::Status error;
    FieldReader reader(*json, "", &error);
    DetokenizeRequest request;
    const Json* const tokens = reader.NeedList("tokens");
    if (tokens != nullptr && !tokens->empty())
      request.tokens = ReadTokens(*tokens, "tokens", &error);
    reader.NoEffect({"model"});
    reader.Finish();
    if (!error.ok()) return error;
    return request;
  });
}

std::string TokenizeBody(const TokenizeRequest& request, absl::Span<const int32_t> tokens,
                         const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const int32_t token : tokens) {
    if (!request.with_pieces) {
      list.push_back(token);
      continue;
    }
    const absl::string_view bytes = tokenizer.TokenBytes(token);
    list.push_back({{"id", token},
                    {"piece", IsValidUtf8(bytes) ? Json(std::string(bytes)) : BytesJson(bytes)}});
  }
  return DumpJson({{"tokens", std::move(list)}});
}

std::string DetokenizeBody(absl::string_view content) {
  return DumpJson({{"content", std::string(content)}});
}

std::string ApplyTemplateBody(absl::string_view prompt) {
  return DumpJson({{"prompt", std::string(prompt)}});
}

std::string CountTokensBody(size_t tokens) { return DumpJson({{"input_tokens", tokens}}); }

}  // namespace inlay::serve

// Splits a template into its text and the tokens of its tags, and applies Jinja's rules on the
// white space around tags.
#ifndef INLAY_IO_TEMPLATE_LEXER_H_
#define INLAY_IO_TEMPLATE_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay::jinja {

enum class TokenKind : uint8_t {
  kData,           // text outside of tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,  // of the template
};

struct Token {
  TokenKind kind;
  int line;  // from 1
  // Data as it is output, a string without quotes and escapes, a name, an operator, a number.
  std::string text;
  int64_t integer = 0;
  double number = 0;

  bool Is(TokenKind k) const { return kind == k; }
  bool IsName(absl::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool IsOperator(absl::string_view op) const { return kind == TokenKind::kOperator && text == op; }
};

// The error of a template at a line; `code` tells what is wrong from what is not supported.
absl::Status ErrorAtLine(absl::StatusCode code, int line, absl::string_view what);
inline absl::Status SyntaxError(int line, absl::string_view what) {
  return ErrorAtLine(absl::StatusCode::kInvalidArgument, line, what);
}
inline absl::Status UnsupportedError(int line, absl::string_view what) {
  return ErrorAtLine(absl::StatusCode::kUnimplemented, line, what);
}

// The tokens as Jinja makes them with trim_blocks and lstrip_blocks on and keep_trailing_newline
// off; the last one is kEnd. Comments are left out, raw blocks are data.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_LEXER_H_

#include "io/template/token_stream.h"

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"

namespace inlay::jinja {
namespace {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kVariableBegin:
      return "{{";
    case TokenKind::kVariableEnd:
      return "}}";
    case TokenKind::kBlockBegin:
      return "{%";
    case TokenKind::kBlockEnd:
      return "%}";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return QuoteForMessage(token.text);
  }
}

}  // namespace

absl::Status TokenStream::Unexpected(absl::string_view expected) const {
  return SyntaxError(line(),
                     absl::StrCat(expected, " is expected here, not ", Describe(current())));
}

absl::Status TokenStream::ExpectName(absl::string_view name) {
  return SkipName(name) ? absl::OkStatus() : Unexpected(QuoteForMessage(name));
}

absl::Status TokenStream::ExpectOperator(absl::string_view op) {
  return SkipOperator(op) ? absl::OkStatus() : Unexpected(QuoteForMessage(op));
}

absl::Status TokenStream::Expect(TokenKind kind) {
  if (!current().Is(kind)) return Unexpected(Describe({.kind = kind, .line = 0, .text = ""}));
  Skip();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenStream::ReadName() {
  if (!current().Is(TokenKind::kName)) return Unexpected("a name");
  std::string name = current().text;
  Skip();
  return name;
}

}  // namespace inlay::jinja

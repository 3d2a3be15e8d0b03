// The tokens of a template, one after another.
#ifndef INLAY_IO_TEMPLATE_TOKEN_STREAM_H_
#define INLAY_IO_TEMPLATE_TOKEN_STREAM_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/template/lexer.h"

namespace inlay::jinja {

class TokenStream {
 public:
  // The last token must be kEnd.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  // The token after the current one; kEnd stays the last.
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }

  void Skip() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool SkipName(absl::string_view name) {
    const bool is = current().IsName(name);
    if (is) Skip();
    return is;
  }
  bool SkipOperator(absl::string_view op) {
    const bool is = current().IsOperator(op);
    if (is) Skip();
    return is;
  }

  absl::Status ExpectName(absl::string_view name);
  absl::Status ExpectOperator(absl::string_view op);
  absl::Status Expect(TokenKind kind);
  // The text of a name that must be here.
  absl::StatusOr<std::string> ReadName();
  // An error about the current token.
  absl::Status Unexpected(absl::string_view expected) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_TOKEN_STREAM_H_

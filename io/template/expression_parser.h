// Parses Jinja's expressions.
#ifndef INLAY_IO_TEMPLATE_EXPRESSION_PARSER_H_
#define INLAY_IO_TEMPLATE_EXPRESSION_PARSER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/template/ast.h"
#include "io/template/token_stream.h"

namespace inlay::jinja {

class ExpressionParser {
 public:
  // Both must outlive the parser.
  ExpressionParser(TokenStream& tokens, SymbolTable& symbols)
      : tokens_(tokens), symbols_(symbols) {}

  // With or without "a if b else c" at the top.
  absl::StatusOr<ExprPtr> ParseExpression(bool with_condition = true);
  // An expression, or several with commas between them, which are a tuple; of no expressions only
  // in parentheses.
  absl::StatusOr<ExprPtr> ParseTuple(bool with_condition = true, bool in_parentheses = false);
  // Filters after a "|", of `input`, which is null in front of a block. With `first_inline` the
  // first one has no "|" before it. Returns `input` when there is none.
  absl::StatusOr<ExprPtr> ParseFilters(ExprPtr input, bool first_inline);

  // Whether a missing filter or test is an error only when it is used, as it is for Jinja in the
  // branches of conditions.
  bool soft() const { return soft_; }
  void set_soft(bool soft) { soft_ = soft; }
  // The error of the first one that is missing elsewhere.
  absl::Status CheckMissing() const { return missing_.empty() ? absl::OkStatus() : missing_[0]; }

  // Counts the names caller, varargs and kwargs into all macros that are being parsed.
  std::vector<MacroDefinition*>& open_macros() { return open_macros_; }

 private:
  using Rule = absl::StatusOr<ExprPtr> (ExpressionParser::*)();

  absl::StatusOr<ExprPtr> Make(int line, decltype(Expr::node) node) const;
  absl::StatusOr<ExprPtr> ParseConditional();
  absl::StatusOr<ExprPtr> ParseOr();
  absl::StatusOr<ExprPtr> ParseAnd();
  absl::StatusOr<ExprPtr> ParseNot();
  absl::StatusOr<ExprPtr> ParseCompare();
  absl::StatusOr<ExprPtr> ParseSum();
  absl::StatusOr<ExprPtr> ParseConcat();
  absl::StatusOr<ExprPtr> ParseProduct();
  absl::StatusOr<ExprPtr> ParsePower();
  absl::StatusOr<ExprPtr> ParseOperand();  // with filters
  absl::StatusOr<ExprPtr> ParseUnary();
  absl::StatusOr<ExprPtr> ParsePrimary();
  absl::StatusOr<ExprPtr> ParseName();
  absl::StatusOr<ExprPtr> ParseList();
  absl::StatusOr<ExprPtr> ParseDict();
  absl::StatusOr<ExprPtr> ParsePostfix(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseFiltersAndTests(ExprPtr input);
  absl::StatusOr<ExprPtr> ParseAttribute(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSubscript(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSlice(int line, ExprPtr object, ExprPtr start);
  absl::StatusOr<ExprPtr> ParseCall(ExprPtr callee);
  absl::StatusOr<ExprPtr> ParseFilter(ExprPtr input);
  absl::StatusOr<ExprPtr> ParseTest(ExprPtr input);
  absl::StatusOr<ArgumentExprs> ParseArguments();
  absl::Status ParseArgument(ArgumentExprs* arguments);
  // A filter's or test's name may have dots.
  absl::StatusOr<std::string> ParseDottedName();
  // What stands for a filter or test that was not found.
  absl::StatusOr<ExprPtr> Missing(int line, const absl::Status& why);

  TokenStream& tokens_;
  SymbolTable& symbols_;
  std::vector<MacroDefinition*> open_macros_;
  bool soft_ = false;
  std::vector<absl::Status> missing_;
  int depth_ = 0;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_EXPRESSION_PARSER_H_

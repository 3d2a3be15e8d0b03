#include "io/template/expression_parser.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/functions.h"
#include "io/template/limits.h"

namespace inlay::jinja {
namespace {

// The greatest depth of the expressions right below one.
class ChildDepth {
 public:
  int operator()(const Constant&) const { return 0; }
  int operator()(const NameExpr&) const { return 0; }
  int operator()(const MissingExpr&) const { return 0; }
  int operator()(const ListExpr& e) const { return Of(e.items); }
  int operator()(const DictExpr& e) const {
    int depth = 0;
    for (const auto& [key, value] : e.entries) depth = std::max({depth, Of(key), Of(value)});
    return depth;
  }
  int operator()(const UnaryExpr& e) const { return Of(e.operand); }
  int operator()(const BinaryExpr& e) const { return std::max(Of(e.left), Of(e.right)); }
  int operator()(const ConcatExpr& e) const { return Of(e.parts); }
  int operator()(const LogicExpr& e) const { return std::max(Of(e.left), Of(e.right)); }
  int operator()(const CompareExpr& e) const {
    int depth = Of(e.first);
    for (const auto& [op, operand] : e.rest) depth = std::max(depth, Of(operand));
    return depth;
  }
  int operator()(const ConditionalExpr& e) const {
    return std::max({Of(e.test), Of(e.then), Of(e.otherwise)});
  }
  int operator()(const AttributeExpr& e) const { return Of(e.object); }
  int operator()(const SubscriptExpr& e) const { return std::max(Of(e.object), Of(e.index)); }
  int operator()(const SliceExpr& e) const {
    return std::max({Of(e.object), Of(e.start), Of(e.stop), Of(e.step)});
  }
  int operator()(const CallExpr& e) const { return std::max(Of(e.callee), Of(e.arguments)); }
  int operator()(const FilterExpr& e) const { return std::max(Of(e.input), Of(e.arguments)); }
  int operator()(const TestExpr& e) const { return std::max(Of(e.input), Of(e.arguments)); }

 private:
  static int Of(const ExprPtr& e) { return e == nullptr ? 0 : e->depth; }
  static int Of(const std::vector<ExprPtr>& expressions) {
    int depth = 0;
    for (const ExprPtr& e : expressions) depth = std::max(depth, Of(e));
    return depth;
  }
  static int Of(const ArgumentExprs& arguments) {
    int depth = std::max({Of(arguments.positional), Of(arguments.list), Of(arguments.dict)});
    for (const auto& [name, value] : arguments.named) depth = std::max(depth, Of(value));
    return depth;
  }
};

struct CompareName {
  absl::string_view text;
  CompareOperator op;
};
constexpr CompareName kComparisons[] = {{"==", CompareOperator::kEq}, {"!=", CompareOperator::kNe},
                                        {"<", CompareOperator::kLt},  {"<=", CompareOperator::kLe},
                                        {">", CompareOperator::kGt},  {">=", CompareOperator::kGe}};

}  // namespace

absl::StatusOr<ExprPtr> ExpressionParser::Make(int line, decltype(Expr::node) node) const {
  const int depth = 1 + std::visit(ChildDepth(), node);
  if (depth > kMaxNesting)
    return SyntaxError(line, absl::StrCat("an expression has more than ", kMaxNesting,
                                          " operators inside each other"));
  return ExprPtr(new Expr{line, depth, std::move(node)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseExpression(bool with_condition) {
  if (++depth_ > kMaxNesting)
    return SyntaxError(tokens_.line(), absl::StrCat("an expression has more than ", kMaxNesting,
                                                    " brackets inside each other"));
  auto expression = with_condition ? ParseConditional() : ParseOr();
  --depth_;
  return expression;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTuple(bool with_condition, bool in_parentheses) {
  const int line = tokens_.line();
  const auto at_end = [&] {
    const Token& t = tokens_.current();
    return t.Is(TokenKind::kVariableEnd) || t.Is(TokenKind::kBlockEnd) || t.IsOperator(")");
  };
  ListExpr tuple{SequenceKind::kTuple, {}};
  bool is_tuple = false;
  while (!at_end()) {
    INLAY_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(with_condition));
    tuple.items.push_back(std::move(item));
    if (!tokens_.SkipOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && tuple.items.size() == 1) return std::move(tuple.items[0]);
  if (tuple.items.empty() && !in_parentheses) return tokens_.Unexpected("an expression");
  return Make(line, std::move(tuple));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseConditional() {
  int line = tokens_.line();
  const bool was_soft = soft_;
  const size_t was_missing = missing_.size();
  const absl::Cleanup restore = [&] { soft_ = was_soft; };
  INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseOr());
  while (tokens_.SkipName("if")) {
    soft_ = true;
    missing_.resize(was_missing);  // what was parsed already is a branch
    ConditionalExpr condition;
    condition.then = std::move(value);
    INLAY_ASSIGN_OR_RETURN(condition.test, ParseOr());
    if (tokens_.SkipName("else")) {
      INLAY_ASSIGN_OR_RETURN(condition.otherwise, ParseExpression());
    }
    INLAY_ASSIGN_OR_RETURN(value, Make(line, std::move(condition)));
    line = tokens_.line();
  }
  return value;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOr() {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (tokens_.SkipName("or")) {
    INLAY_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    INLAY_ASSIGN_OR_RETURN(left, Make(line, LogicExpr{false, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAnd() {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (tokens_.SkipName("and")) {
    INLAY_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    INLAY_ASSIGN_OR_RETURN(left, Make(line, LogicExpr{true, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseNot() {
  const int line = tokens_.line();
  int count = 0;
  while (tokens_.SkipName("not")) ++count;
  INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseCompare());
  for (; count > 0; --count) {
    INLAY_ASSIGN_OR_RETURN(value, Make(line, UnaryExpr{UnaryOperator::kNot, std::move(value)}));
  }
  return value;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCompare() {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  CompareExpr compare;
  while (true) {
    const Token& token = tokens_.current();
    CompareOperator op = CompareOperator::kIn;
    const auto* symbol =
        std::find_if(std::begin(kComparisons), std::end(kComparisons),
                     [&](const CompareName& name) { return token.IsOperator(name.text); });
    if (symbol != std::end(kComparisons)) {
      op = symbol->op;
      tokens_.Skip();
    } else if (token.IsName("not") && tokens_.next().IsName("in")) {
      op = CompareOperator::kNotIn;
      tokens_.Skip();
      tokens_.Skip();
    } else if (!tokens_.SkipName("in")) {
      break;
    }
    INLAY_ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    compare.rest.emplace_back(op, std::move(operand));
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return Make(line, std::move(compare));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSum() {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (true) {
    const bool adds = tokens_.current().IsOperator("+");
    if (!adds && !tokens_.current().IsOperator("-")) return left;
    tokens_.Skip();
    INLAY_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    const BinaryOperator op = adds ? BinaryOperator::kAdd : BinaryOperator::kSub;
    INLAY_ASSIGN_OR_RETURN(left, Make(line, BinaryExpr{op, std::move(left), std::move(right)}));
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseConcat() {
  const int line = tokens_.line();
  ConcatExpr concat;
  do {
    INLAY_ASSIGN_OR_RETURN(ExprPtr part, ParseProduct());
    concat.parts.push_back(std::move(part));
  } while (tokens_.SkipOperator("~"));
  if (concat.parts.size() == 1) return std::move(concat.parts[0]);
  return Make(line, std::move(concat));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseProduct() {
  constexpr std::pair<absl::string_view, BinaryOperator> kOperators[] = {
      {"*", BinaryOperator::kMul},
      {"/", BinaryOperator::kDiv},
      {"//", BinaryOperator::kFloorDiv},
      {"%", BinaryOperator::kMod}};
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (true) {
    const auto* op = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const auto& o) {
      return tokens_.current().IsOperator(o.first);
    });
    if (op == std::end(kOperators)) return left;
    tokens_.Skip();
    INLAY_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    INLAY_ASSIGN_OR_RETURN(left,
                           Make(line, BinaryExpr{op->second, std::move(left), std::move(right)}));
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePower() {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ExprPtr left, ParseOperand());
  while (tokens_.SkipOperator("**")) {
    INLAY_ASSIGN_OR_RETURN(ExprPtr right, ParseOperand());
    INLAY_ASSIGN_OR_RETURN(
        left, Make(line, BinaryExpr{BinaryOperator::kPow, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOperand() {
  INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseUnary());
  return ParseFiltersAndTests(std::move(value));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseUnary() {
  const int line = tokens_.line();
  std::vector<UnaryOperator> signs;
  while (tokens_.current().IsOperator("-") || tokens_.current().IsOperator("+")) {
    signs.push_back(tokens_.current().IsOperator("-") ? UnaryOperator::kMinus
                                                      : UnaryOperator::kPlus);
    tokens_.Skip();
  }
  INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParsePrimary());
  INLAY_ASSIGN_OR_RETURN(value, ParsePostfix(std::move(value)));
  for (; !signs.empty(); signs.pop_back()) {
    INLAY_ASSIGN_OR_RETURN(value, Make(line, UnaryExpr{signs.back(), std::move(value)}));
  }
  return value;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseName() {
  const Token token = tokens_.current();
  tokens_.Skip();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False")
    return Make(token.line, Constant{Value::Bool(name[0] == 't' || name[0] == 'T')});
  if (name == "none" || name == "None") return Make(token.line, Constant{Value::None()});
  for (MacroDefinition* macro : open_macros_) {
    macro->uses_caller |= name == "caller";
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
  }
  return Make(token.line, NameExpr{symbols_.Add(name)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePrimary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kString: {
      std::string text;
      for (; tokens_.current().Is(TokenKind::kString); tokens_.Skip())
        absl::StrAppend(&text, tokens_.current().text);
      return Make(line, Constant{Value::String(text, Origin::kTemplate)});
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      const Value number =
          token.Is(TokenKind::kInteger) ? Value::Int(token.integer) : Value::Float(token.number);
      tokens_.Skip();
      return Make(line, Constant{number});
    }
    default:
      break;
  }
  if (tokens_.SkipOperator("(")) {
    INLAY_ASSIGN_OR_RETURN(ExprPtr value,
                           ParseTuple(/*with_condition=*/true, /*in_parentheses=*/true));
    INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    return value;
  }
  if (token.IsOperator("[")) return ParseList();
  if (token.IsOperator("{")) return ParseDict();
  return tokens_.Unexpected("an expression");
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseList() {
  const int line = tokens_.line();
  INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator("["));
  ListExpr list{SequenceKind::kList, {}};
  while (!tokens_.current().IsOperator("]")) {
    if (!list.items.empty()) {
      INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.current().IsOperator("]")) break;
    }
    INLAY_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list.items.push_back(std::move(item));
  }
  tokens_.Skip();
  return Make(line, std::move(list));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseDict() {
  const int line = tokens_.line();
  INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator("{"));
  DictExpr dict;
  while (!tokens_.current().IsOperator("}")) {
    if (!dict.entries.empty()) {
      INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.current().IsOperator("}")) break;
    }
    INLAY_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  tokens_.Skip();
  return Make(line, std::move(dict));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePostfix(ExprPtr object) {
  while (true) {
    const Token& token = tokens_.current();
    if (token.IsOperator(".")) {
      INLAY_ASSIGN_OR_RETURN(object, ParseAttribute(std::move(object)));
    } else if (token.IsOperator("[")) {
      INLAY_ASSIGN_OR_RETURN(object, ParseSubscript(std::move(object)));
    } else if (token.IsOperator("(")) {
      INLAY_ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFiltersAndTests(ExprPtr input) {
  while (true) {
    const Token& token = tokens_.current();
    if (token.IsOperator("|")) {
      tokens_.Skip();
      INLAY_ASSIGN_OR_RETURN(input, ParseFilter(std::move(input)));
    } else if (token.IsName("is")) {
      INLAY_ASSIGN_OR_RETURN(input, ParseTest(std::move(input)));
    } else if (token.IsOperator("(")) {
      INLAY_ASSIGN_OR_RETURN(input, ParseCall(std::move(input)));
    } else {
      return input;
    }
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFilters(ExprPtr input, bool first_inline) {
  while (first_inline || tokens_.SkipOperator("|")) {
    first_inline = false;
    INLAY_ASSIGN_OR_RETURN(input, ParseFilter(std::move(input)));
  }
  return input;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAttribute(ExprPtr object) {
  const int line = tokens_.line();
  tokens_.Skip();
  const Token token = tokens_.current();
  if (token.Is(TokenKind::kName)) {
    tokens_.Skip();
    return Make(line, AttributeExpr{std::move(object), token.text});
  }
  if (!token.Is(TokenKind::kInteger)) return tokens_.Unexpected("a name or a number");
  tokens_.Skip();
  INLAY_ASSIGN_OR_RETURN(ExprPtr index, Make(token.line, Constant{Value::Int(token.integer)}));
  return Make(line, SubscriptExpr{std::move(object), std::move(index)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSubscript(ExprPtr object) {
  const int line = tokens_.line();
  tokens_.Skip();
  ListExpr indices{SequenceKind::kTuple, {}};
  while (!tokens_.current().IsOperator("]")) {
    if (!indices.items.empty()) INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    ExprPtr index;
    if (!tokens_.current().IsOperator(":")) {
      INLAY_ASSIGN_OR_RETURN(index, ParseExpression());
    }
    if (tokens_.current().IsOperator(":")) {
      if (!indices.items.empty()) return UnsupportedError(line, "a slice among indices");
      INLAY_ASSIGN_OR_RETURN(ExprPtr slice, ParseSlice(line, std::move(object), std::move(index)));
      if (!tokens_.SkipOperator("]")) return UnsupportedError(line, "a slice among indices");
      return slice;
    }
    indices.items.push_back(std::move(index));
  }
  tokens_.Skip();
  ExprPtr index;
  if (indices.items.size() == 1) {
    index = std::move(indices.items[0]);
  } else {
    INLAY_ASSIGN_OR_RETURN(index, Make(line, std::move(indices)));
  }
  return Make(line, SubscriptExpr{std::move(object), std::move(index)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSlice(int line, ExprPtr object, ExprPtr start) {
  SliceExpr slice;
  slice.object = std::move(object);
  slice.start = std::move(start);
  tokens_.Skip();
  for (ExprPtr* part : {&slice.stop, &slice.step}) {
    const Token& token = tokens_.current();
    if (!token.IsOperator(":") && !token.IsOperator("]") && !token.IsOperator(",")) {
      INLAY_ASSIGN_OR_RETURN(*part, ParseExpression());
    }
    if (!tokens_.current().IsOperator(":") || part == &slice.step) break;
    tokens_.Skip();
  }
  return Make(line, std::move(slice));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCall(ExprPtr callee) {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(ArgumentExprs arguments, ParseArguments());
  return Make(line, CallExpr{std::move(callee), std::move(arguments)});
}

absl::StatusOr<ArgumentExprs> ExpressionParser::ParseArguments() {
  INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
  ArgumentExprs arguments;
  for (bool first = true; !tokens_.current().IsOperator(")"); first = false) {
    if (!first) {
      INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.current().IsOperator(")")) break;
    }
    INLAY_RETURN_IF_ERROR(ParseArgument(&arguments));
  }
  tokens_.Skip();
  return arguments;
}

absl::Status ExpressionParser::ParseArgument(ArgumentExprs* arguments) {
  const int line = tokens_.line();
  bool allowed = true;
  if (tokens_.SkipOperator("*")) {
    allowed = arguments->list == nullptr && arguments->dict == nullptr;
    INLAY_ASSIGN_OR_RETURN(arguments->list, ParseExpression());
  } else if (tokens_.SkipOperator("**")) {
    allowed = arguments->dict == nullptr;
    INLAY_ASSIGN_OR_RETURN(arguments->dict, ParseExpression());
  } else if (tokens_.current().Is(TokenKind::kName) && tokens_.next().IsOperator("=")) {
    allowed = arguments->dict == nullptr;
    INLAY_ASSIGN_OR_RETURN(std::string name, tokens_.ReadName());
    tokens_.Skip();
    if (arguments->named.size() == kMaxNames)
      return SyntaxError(line,
                         absl::StrCat("a call has more than ", kMaxNames, " arguments with names"));
    for (const auto& [other, value] : arguments->named) allowed = allowed && other != name;
    INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    arguments->named.emplace_back(std::move(name), std::move(value));
  } else {
    allowed = arguments->list == nullptr && arguments->dict == nullptr && arguments->named.empty();
    INLAY_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    arguments->positional.push_back(std::move(value));
  }
  if (!allowed) return SyntaxError(line, "the arguments of this call are in a wrong order");
  return absl::OkStatus();
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName() {
  INLAY_ASSIGN_OR_RETURN(std::string name, tokens_.ReadName());
  while (tokens_.SkipOperator(".")) {
    INLAY_ASSIGN_OR_RETURN(const std::string part, tokens_.ReadName());
    absl::StrAppend(&name, ".", part);
  }
  return name;
}

absl::StatusOr<ExprPtr> ExpressionParser::Missing(int line, const absl::Status& why) {
  if (!soft_) missing_.push_back(ErrorAtLine(why.code(), line, why.message()));
  return Make(line, MissingExpr{why.code(), std::string(why.message())});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFilter(ExprPtr input) {
  const int line = tokens_.line();
  INLAY_ASSIGN_OR_RETURN(const std::string name, ParseDottedName());
  ArgumentExprs arguments;
  if (tokens_.current().IsOperator("(")) {
    INLAY_ASSIGN_OR_RETURN(arguments, ParseArguments());
  }
  const auto filter = FindFilter(name);
  if (!filter.ok()) return Missing(line, filter.status());
  return Make(line, FilterExpr{*filter, std::move(input), std::move(arguments)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTest(ExprPtr input) {
  const int line = tokens_.line();
  tokens_.Skip();
  const bool negated = tokens_.SkipName("not");
  INLAY_ASSIGN_OR_RETURN(const std::string name, ParseDottedName());
  ArgumentExprs arguments;
  const Token& token = tokens_.current();
  const bool starts_operand = (token.Is(TokenKind::kName) && !token.IsName("else") &&
                               !token.IsName("or") && !token.IsName("and")) ||
                              token.Is(TokenKind::kString) || token.Is(TokenKind::kInteger) ||
                              token.Is(TokenKind::kFloat) || token.IsOperator("[") ||
                              token.IsOperator("{");
  if (token.IsOperator("(")) {
    INLAY_ASSIGN_OR_RETURN(arguments, ParseArguments());
  } else if (starts_operand) {
    if (token.IsName("is")) return SyntaxError(line, "tests with 'is' cannot be chained");
    INLAY_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    INLAY_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  const auto test = FindTest(name);
  if (!test.ok()) return Missing(line, test.status());
  INLAY_ASSIGN_OR_RETURN(ExprPtr result,
                         Make(line, TestExpr{*test, std::move(input), std::move(arguments)}));
  if (!negated) return result;
  return Make(line, UnaryExpr{UnaryOperator::kNot, std::move(result)});
}

}  // namespace inlay::jinja

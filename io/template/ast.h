// A parsed template: statements and expressions, as Jinja's grammar has them.
#ifndef INLAY_IO_TEMPLATE_AST_H_
#define INLAY_IO_TEMPLATE_AST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/template/operators.h"
#include "io/template/value.h"

namespace inlay::jinja {

struct Function;  // functions.h

// The names of variables, numbered from 0.
using Symbol = int;

class SymbolTable {
 public:
  Symbol Add(absl::string_view name);
  // -1 when there is none of this name.
  Symbol Find(absl::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, Symbol, std::less<>> numbers_;
};

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Constant {
  Value value;
};
struct NameExpr {
  Symbol symbol;
};
struct ListExpr {
  SequenceKind kind;  // kList or kTuple
  std::vector<ExprPtr> items;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct UnaryExpr {
  UnaryOperator op;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOperator op;
  ExprPtr left, right;
};
struct ConcatExpr {  // a ~ b ~ ...
  std::vector<ExprPtr> parts;
};
struct LogicExpr {
  bool is_and;  // or else "or"
  ExprPtr left, right;
};
struct CompareExpr {  // a < b == ...
  ExprPtr first;
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;
};
struct ConditionalExpr {
  ExprPtr test, then, otherwise;  // `otherwise` may be null
};
struct AttributeExpr {  // object.name
  ExprPtr object;
  std::string name;
};
struct SubscriptExpr {  // object[index]
  ExprPtr object, index;
};
struct SliceExpr {  // object[start:stop:step]; each of the three may be null
  ExprPtr object, start, stop, step;
};

struct ArgumentExprs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr list;  // *list, or null
  ExprPtr dict;  // **dict, or null
};
struct CallExpr {
  ExprPtr callee;
  ArgumentExprs arguments;
};
struct FilterExpr {  // input | filter(arguments)
  const Function* filter;
  ExprPtr input;  // null for the first filter of a block
  ArgumentExprs arguments;
};
struct TestExpr {  // input is test(arguments)
  const Function* test;
  ExprPtr input;
  ArgumentExprs arguments;
};
// A filter or test that does not exist, where Jinja complains only once it is used.
struct MissingExpr {
  absl::StatusCode code;
  std::string what;
};

struct Expr {
  int line;
  int depth;  // of expressions inside each other, from 1
  std::variant<Constant, NameExpr, ListExpr, DictExpr, UnaryExpr, BinaryExpr, ConcatExpr, LogicExpr,
               CompareExpr, ConditionalExpr, AttributeExpr, SubscriptExpr, SliceExpr, CallExpr,
               FilterExpr, TestExpr, MissingExpr>
      node;
};

// What can be assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
  Symbol symbol = -1;
  std::string attribute;  // of the namespace `symbol`, unless empty
  bool is_tuple = false;  // then only `parts` counts
  std::vector<Target> parts;
};

struct Statement;
using Body = std::vector<Statement>;

struct OutputStatement {
  ExprPtr value;
};
struct IfStatement {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStatement {
  Target target;
  ExprPtr items;
  ExprPtr test;  // or null
  bool recursive;
  Body body;
  Body otherwise;
};
struct SetStatement {
  Target target;
  ExprPtr value;
};
struct SetBlockStatement {
  Target target;
  ExprPtr filter;  // of the body, or null
  Body body;
};
// A macro, or the body of a call block.
struct MacroDefinition {
  std::string name;
  int line;
  std::vector<Symbol> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  Body body;
};
struct MacroStatement {
  Symbol symbol;
  std::unique_ptr<const MacroDefinition> macro;
};
struct CallBlockStatement {
  std::unique_ptr<const MacroDefinition> caller;
  ExprPtr call;  // a CallExpr
};
struct FilterBlockStatement {
  ExprPtr filter;
  Body body;
};
struct WithStatement {
  std::vector<std::pair<Target, ExprPtr>> variables;
  Body body;
};
// {% generation %} of Hugging Face's tokenizers: what an assistant wrote.
struct GenerationStatement {
  Body body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  int line;
  std::variant<OutputStatement, IfStatement, ForStatement, SetStatement, SetBlockStatement,
               MacroStatement, CallBlockStatement, FilterBlockStatement, WithStatement,
               GenerationStatement, BreakStatement, ContinueStatement>
      node;
};

struct ParsedTemplate {
  SymbolTable symbols;
  Body body;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_AST_H_

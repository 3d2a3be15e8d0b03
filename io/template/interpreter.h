// Runs a parsed template.
#ifndef INLAY_IO_TEMPLATE_INTERPRETER_H_
#define INLAY_IO_TEMPLATE_INTERPRETER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/template/ast.h"
#include "io/template/budget.h"
#include "io/template/functions.h"
#include "io/template/loop.h"
#include "io/template/render_options.h"
#include "io/template/scope.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

// What is written so far; its bytes count while it exists.
class OutputBuffer {
 public:
  explicit OutputBuffer(Budget& budget) : budget_(budget) {}
  ~OutputBuffer() { budget_.Return(charged_); }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  absl::Status Append(const Value& value);
  Text Take() && { return std::move(text_); }

 private:
  Budget& budget_;
  Text text_;
  size_t charged_ = 0;
};

// Renders once.
class Interpreter {
 public:
  // All must outlive the interpreter; `inputs` must be a dict.
  Interpreter(const ParsedTemplate& parsed, const Value& inputs, const RenderOptions& options);

  absl::StatusOr<Text> Run();

 private:
  // Where to go on after a statement.
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Capture;
  class NewScope;

  absl::StatusOr<Flow> ExecuteBody(const Body& body, Scope& scope);
  absl::StatusOr<Flow> Execute(const OutputStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const IfStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const ForStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const SetStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const SetBlockStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const MacroStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const CallBlockStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const FilterBlockStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const WithStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const GenerationStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const BreakStatement& s, Scope& scope);
  absl::StatusOr<Flow> Execute(const ContinueStatement& s, Scope& scope);

  absl::StatusOr<Value> Evaluate(const Expr& e, Scope& scope);
  // None for a null expression.
  absl::StatusOr<Value> EvaluateOrNone(const ExprPtr& e, Scope& scope);
  absl::StatusOr<Values> EvaluateAll(const std::vector<ExprPtr>& expressions, Scope& scope);
  absl::StatusOr<Value> Evaluate(const Constant& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const NameExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const ListExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const DictExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const UnaryExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const BinaryExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const ConcatExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const LogicExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const CompareExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const ConditionalExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const AttributeExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const SubscriptExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const SliceExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const CallExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const FilterExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const TestExpr& e, Scope& scope);
  absl::StatusOr<Value> Evaluate(const MissingExpr& e, Scope& scope);

  absl::StatusOr<Arguments> EvaluateArguments(const ArgumentExprs& expressions, Scope& scope);
  absl::Status Assign(const Target& target, const Value& value, Scope& scope);

  // Calls the value; `caller` is the body of a call block, or null.
  absl::StatusOr<Value> Call(const CallExpr& e, const MacroRep* caller, Scope& scope);
  absl::StatusOr<Value> CallMacro(const MacroRep& macro, Arguments arguments);
  absl::Status BindParameters(const MacroDefinition& macro, Arguments arguments, Scope& scope);
  absl::Status BindExtraArguments(const MacroDefinition& macro, Arguments arguments, Scope& scope);
  absl::StatusOr<Value> CallLoop(const Value& loop, const Arguments& arguments);
  const MacroRep* DefineMacro(const MacroDefinition& definition, Scope& scope);

  // A for loop over the items, in or (depth > 1) called by another one.
  absl::StatusOr<Flow> RunLoop(const ForStatement& s, std::shared_ptr<const SequenceRep> items,
                               int depth, Scope& scope);
  absl::StatusOr<Flow> RunLoopBody(const ForStatement& s, const std::shared_ptr<LoopRep>& loop,
                                   Scope& scope);
  absl::StatusOr<bool> Accepts(const ForStatement& s, const Value& item, Scope& scope);
  // The value that the filters of a block make of its text.
  absl::StatusOr<Value> ApplyFilters(const Expr& filters, Value text, Scope& scope);

  // The error with its line, unless it has one or is the template's own.
  absl::Status Locate(int line, absl::Status status);

  struct ActiveLoop {
    const LoopRep* loop;
    const ForStatement* statement;
    Scope* scope;
  };

  Budget budget_;  // first: values refer to it until they are gone
  const ParsedTemplate& parsed_;
  std::vector<Value> globals_;  // by symbol
  std::vector<std::unique_ptr<NamespaceRep>> namespaces_;
  std::list<Scope> pinned_scopes_;
  std::vector<std::unique_ptr<const MacroRep>> macros_;
  std::vector<ActiveLoop> active_loops_;
  Context context_;
  const Symbol loop_symbol_, caller_symbol_, varargs_symbol_, kwargs_symbol_;
  OutputBuffer* output_ = nullptr;
  Value filter_input_;
  bool located_ = false;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_INTERPRETER_H_

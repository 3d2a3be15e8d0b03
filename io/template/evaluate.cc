// The values of expressions.
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/template/interpreter.h"
#include "io/template/operators.h"
#include "io/template/print.h"

namespace inlay::jinja {

absl::StatusOr<Value> Interpreter::Evaluate(const Expr& e, Scope& scope) {
  const DepthGuard guard(budget_);
  if (!guard.status.ok()) return Locate(e.line, guard.status);
  if (absl::Status status = budget_.Step(); !status.ok()) return Locate(e.line, std::move(status));
  auto value = std::visit([&](const auto& node) { return Evaluate(node, scope); }, e.node);
  if (!value.ok()) return Locate(e.line, std::move(value).status());
  return value;
}

absl::StatusOr<Value> Interpreter::EvaluateOrNone(const ExprPtr& e, Scope& scope) {
  if (e == nullptr) return Value::None();
  return Evaluate(*e, scope);
}

absl::StatusOr<Values> Interpreter::EvaluateAll(const std::vector<ExprPtr>& expressions,
                                                Scope& scope) {
  Values values;
  values.reserve(expressions.size());
  for (const ExprPtr& e : expressions) {
    INLAY_ASSIGN_OR_RETURN(Value value, Evaluate(*e, scope));
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<Value> Interpreter::Evaluate(const Constant& e, Scope&) { return e.value; }

absl::StatusOr<Value> Interpreter::Evaluate(const NameExpr& e, Scope& scope) {
  for (const Scope* s = &scope; s != nullptr; s = s->parent) {
    INLAY_RETURN_IF_ERROR(budget_.Step(s->variables.size() / 64));
    if (const Value* value = s->Find(e.symbol); value != nullptr) return *value;
  }
  return globals_[static_cast<size_t>(e.symbol)];
}

absl::StatusOr<Value> Interpreter::Evaluate(const ListExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(Values items, EvaluateAll(e.items, scope));
  return Value::Sequence(e.kind, std::move(items), &budget_);
}

absl::StatusOr<Value> Interpreter::Evaluate(const DictExpr& e, Scope& scope) {
  const auto dict = std::make_shared<DictRep>();
  for (const auto& [key_expression, value_expression] : e.entries) {
    INLAY_ASSIGN_OR_RETURN(Value key, Evaluate(*key_expression, scope));
    INLAY_ASSIGN_OR_RETURN(Value value, Evaluate(*value_expression, scope));
    if (!IsHashable(key))
      return absl::InvalidArgumentError(
          absl::StrCat("a value of the type ", TypeName(key), " cannot be a key"));
    INLAY_RETURN_IF_ERROR(CountKey(budget_, key));
    dict->Set(std::move(key), std::move(value));
    INLAY_RETURN_IF_ERROR(budget_.CheckBytes(dict->bytes()));
  }
  dict->Finish(&budget_);
  return Value::Dict(dict);
}

absl::StatusOr<Value> Interpreter::Evaluate(const UnaryExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*e.operand, scope));
  if (e.op == UnaryOperator::kNot) return Value::Bool(!IsTrue(value));
  INLAY_ASSIGN_OR_RETURN(const Value negative, Negate(value));
  return e.op == UnaryOperator::kMinus ? negative : Negate(negative);
}

absl::StatusOr<Value> Interpreter::Evaluate(const BinaryExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value left, Evaluate(*e.left, scope));
  INLAY_ASSIGN_OR_RETURN(const Value right, Evaluate(*e.right, scope));
  return Calculate(budget_, e.op, left, right);
}

absl::StatusOr<Value> Interpreter::Evaluate(const ConcatExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Values parts, EvaluateAll(e.parts, scope));
  OutputBuffer text(budget_);
  for (const Value& part : parts) INLAY_RETURN_IF_ERROR(text.Append(part));
  return Value::String(std::move(text).Take(), &budget_);
}

absl::StatusOr<Value> Interpreter::Evaluate(const LogicExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(Value left, Evaluate(*e.left, scope));
  if (IsTrue(left) != e.is_and) return left;
  return Evaluate(*e.right, scope);
}

absl::StatusOr<Value> Interpreter::Evaluate(const CompareExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(Value left, Evaluate(*e.first, scope));
  for (const auto& [op, operand] : e.rest) {
    INLAY_ASSIGN_OR_RETURN(Value right, Evaluate(*operand, scope));
    INLAY_ASSIGN_OR_RETURN(const bool holds, Compare(budget_, op, left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

absl::StatusOr<Value> Interpreter::Evaluate(const ConditionalExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value test, Evaluate(*e.test, scope));
  if (IsTrue(test)) return Evaluate(*e.then, scope);
  if (e.otherwise == nullptr) return Value();
  return Evaluate(*e.otherwise, scope);
}

absl::StatusOr<Value> Interpreter::Evaluate(const AttributeExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value object, Evaluate(*e.object, scope));
  return GetAttribute(context_, object, e.name);
}

absl::StatusOr<Value> Interpreter::Evaluate(const SubscriptExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value object, Evaluate(*e.object, scope));
  INLAY_ASSIGN_OR_RETURN(const Value index, Evaluate(*e.index, scope));
  return GetItem(context_, object, index);
}

absl::StatusOr<Value> Interpreter::Evaluate(const SliceExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value object, Evaluate(*e.object, scope));
  INLAY_ASSIGN_OR_RETURN(const Value start, EvaluateOrNone(e.start, scope));
  INLAY_ASSIGN_OR_RETURN(const Value stop, EvaluateOrNone(e.stop, scope));
  INLAY_ASSIGN_OR_RETURN(const Value step, EvaluateOrNone(e.step, scope));
  return Slice(budget_, object, start, stop, step);
}

absl::StatusOr<Arguments> Interpreter::EvaluateArguments(const ArgumentExprs& expressions,
                                                         Scope& scope) {
  Arguments arguments;
  INLAY_ASSIGN_OR_RETURN(arguments.positional, EvaluateAll(expressions.positional, scope));
  for (const auto& [name, expression] : expressions.named) {
    INLAY_ASSIGN_OR_RETURN(Value value, Evaluate(*expression, scope));
    arguments.named.emplace_back(Text(name, Origin::kTemplate), std::move(value));
  }
  if (expressions.list != nullptr) {
    INLAY_ASSIGN_OR_RETURN(const Value list, Evaluate(*expressions.list, scope));
    INLAY_ASSIGN_OR_RETURN(const auto items, Iterate(budget_, list));
    INLAY_RETURN_IF_ERROR(budget_.Reserve(items->items.size() * sizeof(Value)));
    arguments.positional.insert(arguments.positional.end(), items->items.begin(),
                                items->items.end());
  }
  if (expressions.dict == nullptr) return arguments;
  INLAY_ASSIGN_OR_RETURN(const Value dict, Evaluate(*expressions.dict, scope));
  if (!dict.is(Type::kDict))
    return absl::InvalidArgumentError(
        absl::StrCat("what is after ** must be a mapping, not of the type ", TypeName(dict)));
  for (const auto& [name, value] : dict.dict().entries()) {
    if (!name.is(Type::kString))
      return absl::InvalidArgumentError("the names of arguments must be strings");
    INLAY_RETURN_IF_ERROR(budget_.Reserve(name.text().memory() + sizeof(Argument)));
    INLAY_RETURN_IF_ERROR(budget_.Step(expressions.named.size() / 16));
    for (const auto& [other, unused] : expressions.named) {
      if (other == name.bytes()) return absl::InvalidArgumentError("an argument is given twice");
    }
    // What a message names stays the message's: a macro may print the names in its kwargs.
    arguments.named.emplace_back(name.text(), value);
  }
  return arguments;
}

absl::StatusOr<Value> Interpreter::Evaluate(const CallExpr& e, Scope& scope) {
  return Call(e, /*caller=*/nullptr, scope);
}

absl::StatusOr<Value> Interpreter::Evaluate(const FilterExpr& e, Scope& scope) {
  Value input;
  if (e.input == nullptr) {
    input = std::exchange(filter_input_, Value());
  } else {
    INLAY_ASSIGN_OR_RETURN(input, Evaluate(*e.input, scope));
  }
  INLAY_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(e.arguments, scope));
  return e.filter->call(context_, input, arguments);
}

absl::StatusOr<Value> Interpreter::Evaluate(const TestExpr& e, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value input, Evaluate(*e.input, scope));
  INLAY_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(e.arguments, scope));
  return e.test->call(context_, input, arguments);
}

absl::StatusOr<Value> Interpreter::Evaluate(const MissingExpr& e, Scope&) {
  return absl::Status(e.code, e.what);
}

}  // namespace inlay::jinja

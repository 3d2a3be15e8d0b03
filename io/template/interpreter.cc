#include "io/template/interpreter.h"

#include <algorithm>
#include <cassert>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/lexer.h"
#include "io/template/operators.h"
#include "io/template/print.h"

namespace inlay::jinja {

// A scope for as long as this lives, or longer where a macro needs it.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter& interpreter, Scope* parent) : interpreter_(interpreter), scope_(1) {
    scope_.front().parent = parent;
  }
  ~NewScope() {
    std::list<Scope>& pinned = interpreter_.pinned_scopes_;
    if (scope_.front().pinned) pinned.splice(pinned.end(), scope_);  // takes no memory
  }
  NewScope(const NewScope&) = delete;
  NewScope& operator=(const NewScope&) = delete;

  Scope& operator*() { return scope_.front(); }
  Scope* operator->() { return &scope_.front(); }

 private:
  Interpreter& interpreter_;
  std::list<Scope> scope_;  // that one
};

// Collects the output for as long as this lives.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter),
        buffer_(interpreter.budget_),
        outer_(std::exchange(interpreter.output_, &buffer_)) {}
  ~Capture() { interpreter_.output_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The output so far; call once.
  Value Take() { return Value::String(std::move(buffer_).Take(), &interpreter_.budget_); }

 private:
  Interpreter& interpreter_;
  OutputBuffer buffer_;
  OutputBuffer* outer_;
};

absl::Status OutputBuffer::Append(const Value& value) {
  INLAY_RETURN_IF_ERROR(AppendStr(budget_, value, &text_));
  const size_t bytes = text_.memory();
  budget_.Take(bytes - charged_);
  charged_ = bytes;
  return absl::OkStatus();
}

Interpreter::Interpreter(const ParsedTemplate& parsed, const Value& inputs,
                         const RenderOptions& options)
    : budget_(options.limits),
      parsed_(parsed),
      context_{budget_, options.now, options.time_zone, namespaces_},
      loop_symbol_(parsed.symbols.Find("loop")),
      caller_symbol_(parsed.symbols.Find("caller")),
      varargs_symbol_(parsed.symbols.Find("varargs")),
      kwargs_symbol_(parsed.symbols.Find("kwargs")) {
  assert(inputs.is(Type::kDict));
  for (const std::string& name : parsed.symbols.names()) {
    const Value* input = inputs.dict().Find(name);
    const Function* function = FindGlobal(name);
    globals_.push_back(input != nullptr      ? *input
                       : function != nullptr ? Value::OfFunction(function)
                                             : Value::UndefinedNamed(&name));
  }
}

absl::StatusOr<Text> Interpreter::Run() {
  OutputBuffer result(budget_);
  output_ = &result;
  NewScope root(*this, nullptr);
  INLAY_RETURN_IF_ERROR(ExecuteBody(parsed_.body, *root).status());
  INLAY_RETURN_IF_ERROR(budget_.Step());  // what was made last may have been too much
  return std::move(result).Take();
}

absl::Status Interpreter::Locate(int line, absl::Status status) {
  if (located_ || absl::IsFailedPrecondition(status)) return status;
  located_ = true;
  return ErrorAtLine(status.code(), line, status.message());
}

absl::StatusOr<Interpreter::Flow> Interpreter::ExecuteBody(const Body& body, Scope& scope) {
  const DepthGuard guard(budget_);
  INLAY_RETURN_IF_ERROR(guard.status);
  for (const Statement& statement : body) {
    if (absl::Status status = budget_.Step(); !status.ok())
      return Locate(statement.line, std::move(status));
    auto flow = std::visit([&](const auto& node) { return Execute(node, scope); }, statement.node);
    if (!flow.ok()) return Locate(statement.line, std::move(flow).status());
    if (*flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const OutputStatement& s, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*s.value, scope));
  INLAY_RETURN_IF_ERROR(output_->Append(value));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const IfStatement& s, Scope& scope) {
  for (const auto& [test, body] : s.branches) {
    INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*test, scope));
    if (IsTrue(value)) return ExecuteBody(body, scope);
  }
  return ExecuteBody(s.otherwise, scope);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const ForStatement& s, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*s.items, scope));
  INLAY_ASSIGN_OR_RETURN(auto items, Iterate(budget_, value));
  return RunLoop(s, std::move(items), /*depth=*/1, scope);
}

absl::StatusOr<bool> Interpreter::Accepts(const ForStatement& s, const Value& item, Scope& scope) {
  NewScope inner(*this, &scope);
  INLAY_RETURN_IF_ERROR(Assign(s.target, item, *inner));
  INLAY_ASSIGN_OR_RETURN(const Value accepted, Evaluate(*s.test, *inner));
  return IsTrue(accepted);
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunLoop(const ForStatement& s,
                                                       std::shared_ptr<const SequenceRep> items,
                                                       int depth, Scope& scope) {
  LoopRep::Accept accept;
  if (s.test != nullptr) accept = [&](const Value& item) { return Accepts(s, item, scope); };
  const auto loop = std::make_shared<LoopRep>(std::move(items), std::move(accept), depth);
  active_loops_.push_back({loop.get(), &s, &scope});
  const absl::Cleanup end = [&] {
    loop->End();
    active_loops_.pop_back();
  };
  return RunLoopBody(s, loop, scope);
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunLoopBody(const ForStatement& s,
                                                           const std::shared_ptr<LoopRep>& loop,
                                                           Scope& scope) {
  // As in Jinja, what leaves the body early has not run it.
  bool has_run = false;
  while (true) {
    INLAY_RETURN_IF_ERROR(budget_.Step());
    INLAY_ASSIGN_OR_RETURN(const bool found, loop->Next());
    if (!found) break;
    NewScope inner(*this, &scope);
    INLAY_RETURN_IF_ERROR(Assign(s.target, loop->current(), *inner));
    if (loop_symbol_ >= 0) inner->Set(loop_symbol_, Value::Loop(loop));
    INLAY_ASSIGN_OR_RETURN(const Flow flow, ExecuteBody(s.body, *inner));
    has_run = has_run || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  if (has_run || s.otherwise.empty()) return Flow::kNext;
  NewScope inner(*this, &scope);
  return ExecuteBody(s.otherwise, *inner);
}

absl::Status Interpreter::Assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.is_tuple && target.attribute.empty()) {
    scope.Set(target.symbol, value);
    return budget_.Step(scope.variables.size() / 64 + 1);
  }
  if (!target.is_tuple) {
    INLAY_ASSIGN_OR_RETURN(const Value object, Evaluate(NameExpr{target.symbol}, scope));
    if (!object.is(Type::kNamespace))
      return absl::InvalidArgumentError(absl::StrCat(
          "the attribute ", QuoteForMessage(target.attribute),
          " can only be set of a namespace, not of a value of the type ", TypeName(object)));
    object.name_space()->Set(target.attribute, value);
    return budget_.Step(object.name_space()->attributes.size() / 64 + 1);
  }
  INLAY_ASSIGN_OR_RETURN(const auto items, Iterate(budget_, value));
  if (items->items.size() != target.parts.size())
    return absl::InvalidArgumentError(absl::StrCat(items->items.size(), " values are assigned to ",
                                                   target.parts.size(), " names"));
  for (size_t i = 0; i < target.parts.size(); ++i)
    INLAY_RETURN_IF_ERROR(Assign(target.parts[i], items->items[i], scope));
  return absl::OkStatus();
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const SetStatement& s, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*s.value, scope));
  INLAY_RETURN_IF_ERROR(Assign(s.target, value, scope));
  return Flow::kNext;
}

absl::StatusOr<Value> Interpreter::ApplyFilters(const Expr& filters, Value text, Scope& scope) {
  // The innermost filter takes it before anything else runs.
  filter_input_ = std::move(text);
  return Evaluate(filters, scope);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const SetBlockStatement& s, Scope& scope) {
  Value value;
  {
    NewScope inner(*this, &scope);
    Capture capture(*this);
    INLAY_ASSIGN_OR_RETURN(const Flow flow, ExecuteBody(s.body, *inner));
    value = capture.Take();
    if (flow != Flow::kNext) return flow;
    if (s.filter != nullptr) {
      INLAY_ASSIGN_OR_RETURN(value, ApplyFilters(*s.filter, std::move(value), *inner));
    }
  }
  INLAY_RETURN_IF_ERROR(Assign(s.target, value, scope));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const FilterBlockStatement& s,
                                                       Scope& scope) {
  NewScope inner(*this, &scope);
  Value text;
  {
    Capture capture(*this);
    INLAY_ASSIGN_OR_RETURN(const Flow flow, ExecuteBody(s.body, *inner));
    if (flow != Flow::kNext) return flow;
    text = capture.Take();
  }
  INLAY_ASSIGN_OR_RETURN(const Value filtered, ApplyFilters(*s.filter, std::move(text), *inner));
  INLAY_RETURN_IF_ERROR(output_->Append(filtered));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const WithStatement& s, Scope& scope) {
  NewScope inner(*this, &scope);
  for (const auto& [target, expression] : s.variables) {
    INLAY_ASSIGN_OR_RETURN(const Value value, Evaluate(*expression, scope));
    INLAY_RETURN_IF_ERROR(Assign(target, value, *inner));
  }
  return ExecuteBody(s.body, *inner);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const GenerationStatement& s, Scope& scope) {
  NewScope inner(*this, &scope);
  return ExecuteBody(s.body, *inner);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const BreakStatement&, Scope&) {
  return Flow::kBreak;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const ContinueStatement&, Scope&) {
  return Flow::kContinue;
}

const MacroRep* Interpreter::DefineMacro(const MacroDefinition& definition, Scope& scope) {
  for (Scope* s = &scope; s != nullptr && !s->pinned; s = s->parent) s->pinned = true;
  budget_.Take(sizeof(MacroRep) + sizeof(Scope));
  macros_.push_back(std::make_unique<const MacroRep>(MacroRep{&definition, &scope}));
  return macros_.back().get();
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const MacroStatement& s, Scope& scope) {
  scope.Set(s.symbol, Value::Macro(DefineMacro(*s.macro, scope)));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const CallBlockStatement& s, Scope& scope) {
  const MacroRep* caller = DefineMacro(*s.caller, scope);
  INLAY_ASSIGN_OR_RETURN(const Value text, Call(std::get<CallExpr>(s.call->node), caller, scope));
  INLAY_RETURN_IF_ERROR(output_->Append(text));
  return Flow::kNext;
}

absl::StatusOr<Value> Interpreter::Call(const CallExpr& e, const MacroRep* caller, Scope& scope) {
  INLAY_ASSIGN_OR_RETURN(const Value callee, Evaluate(*e.callee, scope));
  INLAY_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(e.arguments, scope));
  if (caller != nullptr)
    arguments.named.emplace_back(Text("caller", Origin::kTemplate), Value::Macro(caller));
  switch (callee.type()) {
    case Type::kUndefined:
      return UndefinedError(callee);
    case Type::kMacro:
      return CallMacro(callee.macro(), std::move(arguments));
    case Type::kFunction:
      return callee.function().call(context_, Value(), arguments);
    case Type::kMethod:
      return callee.method().function->call(context_, callee.method().self, arguments);
    case Type::kLoop:
      return CallLoop(callee, arguments);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a value of the type ", TypeName(callee), " cannot be called"));
  }
}

absl::StatusOr<Value> Interpreter::CallMacro(const MacroRep& macro, Arguments arguments) {
  NewScope inner(*this, macro.scope);
  const MacroDefinition& definition = *macro.definition;
  INLAY_RETURN_IF_ERROR(BindParameters(definition, std::move(arguments), *inner));
  Capture capture(*this);
  INLAY_RETURN_IF_ERROR(ExecuteBody(definition.body, *inner).status());
  return capture.Take();
}

absl::Status Interpreter::BindParameters(const MacroDefinition& macro, Arguments arguments,
                                         Scope& scope) {
  const size_t given = arguments.positional.size(), parameters = macro.parameters.size();
  const size_t first_default = parameters - macro.defaults.size();
  const auto name_of = [&](size_t i) -> const std::string& {
    return parsed_.symbols.names()[static_cast<size_t>(macro.parameters[i])];
  };
  for (size_t i = 0; i < parameters; ++i) {
    // Each parameter is looked for among the arguments and among the variables.
    INLAY_RETURN_IF_ERROR(
        budget_.Step(scope.variables.size() / 64 + arguments.named.size() / 16 + 1));
    Value value = Value::UndefinedNamed(&name_of(i));
    bool found = i < given;
    if (found) value = arguments.positional[i];
    for (size_t n = 0; !found && n < arguments.named.size(); ++n) {
      if (arguments.named[n].first.bytes() != name_of(i)) continue;
      value = std::move(arguments.named[n].second);
      arguments.named.erase(arguments.named.begin() + static_cast<ptrdiff_t>(n));
      found = true;
    }
    if (!found && i >= first_default) {
      INLAY_ASSIGN_OR_RETURN(value, Evaluate(*macro.defaults[i - first_default], scope));
    }
    scope.Set(macro.parameters[i], std::move(value));
  }
  arguments.positional.erase(
      arguments.positional.begin(),
      arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(given, parameters)));
  return BindExtraArguments(macro, std::move(arguments), scope);
}

absl::Status Interpreter::BindExtraArguments(const MacroDefinition& macro, Arguments arguments,
                                             Scope& scope) {
  if (macro.uses_caller) {
    Value caller =
        Value::UndefinedNamed(&parsed_.symbols.names()[static_cast<size_t>(caller_symbol_)]);
    for (auto named = arguments.named.begin(); named != arguments.named.end(); ++named) {
      if (named->first.bytes() != "caller") continue;
      caller = std::move(named->second);
      arguments.named.erase(named);
      break;
    }
    scope.Set(caller_symbol_, std::move(caller));
  }
  if (macro.uses_kwargs) {
    const auto dict = std::make_shared<DictRep>();
    for (auto& [name, value] : arguments.named)
      dict->Set(Value::String(std::move(name), &budget_), std::move(value));
    dict->Finish(&budget_);
    scope.Set(kwargs_symbol_, Value::Dict(dict));
  } else if (!arguments.named.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the macro ", QuoteForMessage(macro.name), " takes no argument ",
                     QuoteForMessage(arguments.named[0].first.bytes())));
  }
  if (macro.uses_varargs) {
    scope.Set(varargs_symbol_,
              Value::Sequence(SequenceKind::kTuple, std::move(arguments.positional), &budget_));
  } else if (!arguments.positional.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the macro ", QuoteForMessage(macro.name),
                                                   " takes at most ", macro.parameters.size(),
                                                   " arguments"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::CallLoop(const Value& loop, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("loop", {"iterable"}, 1, arguments));
  for (const ActiveLoop& active : active_loops_) {
    if (active.loop != &loop.loop()) continue;
    const ForStatement& statement = *active.statement;
    if (!statement.recursive) break;
    Scope& scope = *active.scope;
    const int depth = active.loop->depth() + 1;
    INLAY_ASSIGN_OR_RETURN(auto items, Iterate(budget_, args[0]));
    Capture capture(*this);
    INLAY_RETURN_IF_ERROR(RunLoop(statement, std::move(items), depth, scope).status());
    return capture.Take();
  }
  return absl::InvalidArgumentError(
      "only the variable loop of a running loop with 'recursive' can be called");
}

}  // namespace inlay::jinja

// What an interpreter opens and closes around parts of a template.
#ifndef INLAY_IO_TEMPLATE_INTERPRETER_SCOPES_H_
#define INLAY_IO_TEMPLATE_INTERPRETER_SCOPES_H_

#include <memory>
#include <utility>

#include "io/template/interpreter.h"

namespace inlay::jinja {

// A scope for as long as this lives, or longer where a macro needs it.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), scope_(std::make_unique<Scope>()) {
    scope_->parent = parent;
  }
  ~NewScope() {
    if (scope_->pinned) interpreter_.pinned_scopes_.push_back(std::move(scope_));
  }
  NewScope(const NewScope&) = delete;
  NewScope& operator=(const NewScope&) = delete;

  Scope& operator*() const { return *scope_; }
  Scope* operator->() const { return scope_.get(); }

 private:
  Interpreter& interpreter_;
  std::unique_ptr<Scope> scope_;
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

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_INTERPRETER_SCOPES_H_

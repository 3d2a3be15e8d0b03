// The variables of a part of a template, and the macros that see them.
#ifndef INLAY_IO_TEMPLATE_SCOPE_H_
#define INLAY_IO_TEMPLATE_SCOPE_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "io/template/ast.h"
#include "io/template/value.h"

namespace inlay::jinja {

// The variables that were set in one part of a template; others are those of `parent`.
struct Scope {
  Scope* parent = nullptr;
  // A macro that was defined here or further inside may still be called: lives until the end.
  bool pinned = false;
  absl::InlinedVector<std::pair<Symbol, Value>, 4> variables;

  const Value* Find(Symbol symbol) const;
  void Set(Symbol symbol, Value value);
};

// A macro with the variables that it sees, or the body of a call block.
struct MacroRep {
  const MacroDefinition* definition;
  Scope* scope;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_SCOPE_H_

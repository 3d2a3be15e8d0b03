#include "io/template/scope.h"

namespace inlay::jinja {

const Value* Scope::Find(Symbol symbol) const {
  for (const auto& [name, value] : variables) {
    if (name == symbol) return &value;
  }
  return nullptr;
}

void Scope::Set(Symbol symbol, Value value) {
  for (auto& [name, old] : variables) {
    if (name != symbol) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(symbol, std::move(value));
}

}  // namespace inlay::jinja

#include "serve/prefixes/known_states.h"

namespace inlay::serve {

std::vector<size_t> KnownStates::Lengths(const std::string& root, size_t most) const {
  std::vector<size_t> lengths;
  const std::lock_guard lock(mutex_);
  auto state = states_.lower_bound(KeyView(root, 0, ""));
  while (state != states_.end()) {
    const auto& [its_root, length, name] = state->first;
    if (its_root != root || length > most) break;
    lengths.push_back(length);
    state = states_.lower_bound(KeyView(root, length + 1, ""));  // several may have this length
  }
  return lengths;
}

bool KnownStates::Has(const std::string& root, size_t length, absl::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto state = states_.find(KeyView(root, length, name));
  return state != states_.end() && Clock::now() - state->second < lifetime_;
}

void KnownStates::Add(const std::string& root, size_t length, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (states_.size() >= kMost) states_.clear();
  states_.insert_or_assign(Key(root, length, name), Clock::now());
}

void KnownStates::Remove(const std::string& root, size_t length, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto state = states_.find(KeyView(root, length, name));
  if (state != states_.end()) states_.erase(state);
}

void KnownStates::Clear() {
  const std::lock_guard lock(mutex_);
  states_.clear();
}

}  // namespace inlay::serve

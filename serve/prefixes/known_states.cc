#include "serve/prefixes/known_states.h"

namespace inlay::serve {

std::vector<size_t> KnownStates::Lengths(const std::string& root, size_t most) const {
  std::vector<size_t> lengths;
  const std::lock_guard lock(mutex_);
  const auto at = roots_.find(root);
  if (at == roots_.end()) return lengths;
  for (const auto& [length, named] : at->second) {
    if (length <= most) lengths.push_back(length);
  }
  return lengths;
}

bool KnownStates::Has(const std::string& root, size_t length, absl::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = roots_.find(root);
  if (at == roots_.end()) return false;
  const auto named = at->second.find(length);
  if (named == at->second.end()) return false;
  const auto state = named->second.find(name);
  return state != named->second.end() && Clock::now() - state->second < lifetime_;
}

void KnownStates::Add(const std::string& root, size_t length, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (count_ >= kMost) {
    roots_.clear();
    count_ = 0;
  }
  if (roots_[root][length].insert_or_assign(name, Clock::now()).second) ++count_;
}

void KnownStates::Remove(const std::string& root, size_t length, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto at = roots_.find(root);
  if (at == roots_.end()) return;
  const auto named = at->second.find(length);
  if (named == at->second.end()) return;
  count_ -= named->second.erase(name);
  // They are not counted, and would stay for ever.
  if (named->second.empty()) at->second.erase(named);
  if (at->second.empty()) roots_.erase(at);
}

void KnownStates::Clear() {
  const std::lock_guard lock(mutex_);
  roots_.clear();
  count_ = 0;
}

}  // namespace inlay::serve

#include "io/template/loop.h"

#include <algorithm>

#include "base/status_macros.h"

namespace inlay::jinja {

absl::StatusOr<bool> LoopRep::Peek() {
  if (!ahead_.empty()) return true;
  while (items_ != nullptr && next_ < items_->items.size()) {
    const Value item = items_->items[next_++];
    if (accept_ != nullptr) {
      INLAY_ASSIGN_OR_RETURN(const bool accepted, accept_(item));
      if (!accepted) continue;
    }
    ahead_.push_back(item);
    return true;
  }
  return false;
}

absl::StatusOr<bool> LoopRep::Next() {
  INLAY_ASSIGN_OR_RETURN(const bool found, Peek());
  if (!found) return false;
  before_ = std::exchange(current_, std::move(ahead_.back()));
  ahead_.pop_back();
  ++index0_;
  return true;
}

absl::StatusOr<int64_t> LoopRep::Length() {
  if (length_ >= 0 || items_ == nullptr) return length_;
  if (accept_ == nullptr) {
    length_ = static_cast<int64_t>(items_->items.size());
    return length_;
  }
  Values rest;
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const bool found, Peek());
    if (!found) break;
    rest.push_back(std::move(ahead_.back()));
    ahead_.pop_back();
  }
  length_ = index0_ + 1 + static_cast<int64_t>(rest.size());
  std::reverse(rest.begin(), rest.end());
  ahead_ = std::move(rest);
  return length_;
}

absl::StatusOr<Value> LoopRep::Attribute(const std::string& name) {
  if (name == "index") return Value::Int(index0_ + 1);
  if (name == "index0") return Value::Int(index0_);
  if (name == "first") return Value::Bool(index0_ == 0);
  if (name == "depth") return Value::Int(depth_);
  if (name == "depth0") return Value::Int(depth_ - 1);
  if (name == "previtem") return index0_ == 0 ? Value() : before_;
  if (name == "last" || name == "nextitem") {
    INLAY_ASSIGN_OR_RETURN(const bool found, Peek());
    if (name == "last") return Value::Bool(!found);
    return found ? ahead_.back() : Value();
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    INLAY_ASSIGN_OR_RETURN(const int64_t length, Length());
    if (name == "length") return Value::Int(length);
    return Value::Int(length - index0_ - (name == "revindex0" ? 1 : 0));
  }
  return Value::UndefinedNamed(&name);
}

void LoopRep::Remember(Values values) {
  if (!active_) return;
  has_remembered_ = true;
  remembered_ = std::move(values);
}

void LoopRep::End() {
  active_ = false;
  items_ = nullptr;
  accept_ = nullptr;
  before_ = current_ = Value();
  ahead_.clear();
  remembered_.clear();
}

}  // namespace inlay::jinja

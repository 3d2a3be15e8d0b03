#include "io/template/value.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "io/template/limits.h"

namespace inlay::jinja {
namespace {

// The depth of what holds values of at most this depth.
int DepthAbove(int depth, Budget* budget) {
  if (budget != nullptr && depth >= kMaxValueDepth) budget->SetTooDeep();
  return depth + 1;
}

int DepthAbove(const Values& items, Budget* budget) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return DepthAbove(depth, budget);
}

// A number that equals an integer has the integer's key.
std::string NumberKey(double number) {
  if (number >= -9.2e18 && number <= 9.2e18 && number == std::floor(number))
    return absl::StrCat("i", static_cast<int64_t>(number));
  if (std::isfinite(number) && number == std::floor(number))
    return Format("i%.0f", number);  // exactly, and perhaps a kBigInt
  return absl::StrCat("f", std::bit_cast<uint64_t>(number));
}

// Python compares functions, macros, namespaces and loops by which object they are.
std::string ObjectKey(const void* object) { return absl::StrCat("o", absl::Hex(object)); }

// Whether a value can be a key by itself or in a tuple.
bool IsPlainKey(const Value& value) {
  switch (value.type()) {
    case Type::kSequence:
    case Type::kDict:
    case Type::kIterator:
    case Type::kMethod:
      return false;
    default:
      return true;
  }
}

// Whether KeyOf is equal for both, without making copies of long ones.
bool SameKey(const Value& a, const Value& b) {
  if (a.is(Type::kString) && b.is(Type::kString)) return a.bytes() == b.bytes();
  if (a.is(Type::kSequence) && b.is(Type::kSequence)) {
    const Values &left = a.sequence()->items, &right = b.sequence()->items;
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), SameKey);
  }
  const auto is_long = [](const Value& v) { return v.is(Type::kString) || v.is(Type::kSequence); };
  return !is_long(a) && !is_long(b) && KeyOf(a) == KeyOf(b);
}

}  // namespace

Value Value::String(Text text, Budget* budget, bool markup) {
  return Value(Type::kString, {}, std::make_shared<StringRep>(std::move(text), markup, budget));
}

Value Value::Sequence(SequenceKind kind, Values items, Budget* budget) {
  const int depth = DepthAbove(items, budget);
  return Value(Type::kSequence, {},
               std::make_shared<SequenceRep>(kind, std::move(items), depth, budget));
}

Value Value::Iterator(Values items, Budget* budget) {
  const int depth = DepthAbove(items, budget);
  return Value(Type::kIterator, {}, std::make_shared<IteratorRep>(std::move(items), depth, budget));
}

Value Value::Method(Value self, const Function* function, Budget* budget) {
  const int depth = DepthAbove(self.depth(), budget);
  return Value(Type::kMethod, {},
               std::make_shared<MethodRep>(std::move(self), function, depth, budget));
}

std::shared_ptr<const SequenceRep> Value::shared_sequence() const {
  assert(type_ == Type::kSequence);
  return std::static_pointer_cast<const SequenceRep>(owned_);
}

const Text& Value::text() const { return string().text; }

bool Value::is_sequence(SequenceKind kind) const {
  return is(Type::kSequence) && sequence()->kind == kind;
}

int Value::depth() const {
  switch (type()) {
    case Type::kSequence:
      return sequence()->depth;
    case Type::kDict:
      return dict().depth();
    case Type::kIterator:
      return iterator().depth;
    case Type::kMethod:
      return method().depth;
    default:
      return 0;
  }
}

bool Value::SameObject(const Value& other) const {
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::kUndefined:  // each is an object of its own in Python; here they count as one
    case Type::kNone:
      return true;
    case Type::kBool:
      return bool_value() == other.bool_value();
    case Type::kInt:
      return int_value() == other.int_value();
    case Type::kFloat:
      return float_value() == other.float_value();
    case Type::kNamespace:
      return name_space() == other.name_space();
    case Type::kMacro:
      return &macro() == &other.macro();
    case Type::kFunction:
      return &function() == &other.function();
    default:
      return owned_ == other.owned_;
  }
}

const Value* NamespaceRep::Find(absl::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void NamespaceRep::Set(absl::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

void DictRep::Set(Value key, Value value) {
  assert(IsHashable(key) && charge_ == nullptr);
  depth_ = std::max({depth_, key.depth(), value.depth()});
  const size_t at = IndexOf(key);
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  bytes_ += sizeof(Entry);
  if (entries_.size() == kIndexedFrom) {
    for (size_t i = 0; i < entries_.size(); ++i) AddToIndex(i);
  } else if (entries_.size() > kIndexedFrom) {
    AddToIndex(entries_.size() - 1);
  }
}

void DictRep::AddToIndex(size_t entry) {
  std::string key = KeyOf(entries_[entry].first);
  bytes_ += key.size() + 3 * sizeof(std::string);
  index_.emplace(std::move(key), entry);
}

void DictRep::Finish(Budget* budget) {
  assert(charge_ == nullptr);
  depth_ = DepthAbove(depth_, budget);
  charge_ = std::make_unique<Charge>(budget, bytes_);
}

const Value* DictRep::Find(const Value& key) const {
  const size_t at = key.is(Type::kString) ? IndexOfString(key.bytes()) : IndexOf(key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

const Value* DictRep::Find(absl::string_view key) const {
  const size_t at = IndexOfString(key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

size_t DictRep::IndexOf(const Value& key) const {
  if (key.is(Type::kString)) return IndexOfString(key.bytes());
  if (entries_.size() >= kIndexedFrom) {
    const auto found = index_.find(KeyOf(key));
    return found == index_.end() ? entries_.size() : found->second;
  }
  size_t at = 0;
  while (at < entries_.size() && !SameKey(entries_[at].first, key)) ++at;
  return at;
}

size_t DictRep::IndexOfString(absl::string_view key) const {
  if (entries_.size() >= kIndexedFrom) {
    const auto found = index_.find(absl::StrCat("s", key));
    return found == index_.end() ? entries_.size() : found->second;
  }
  size_t at = 0;
  while (at < entries_.size() &&
         !(entries_[at].first.is(Type::kString) && entries_[at].first.bytes() == key)) {
    ++at;
  }
  return at;
}

bool IsHashable(const Value& value) {
  // Of tuples those that hold no other: looking at deeper ones could take forever.
  return IsPlainKey(value) || (value.is_sequence(SequenceKind::kTuple) && value.depth() == 1);
}

absl::Status CountKey(Budget& budget, const Value& key) {
  if (key.is(Type::kString)) return budget.StepBytes(key.bytes().size());
  if (!key.is_sequence(SequenceKind::kTuple)) return absl::OkStatus();
  size_t bytes = 0;
  for (const Value& item : key.sequence()->items)
    bytes += sizeof(Value) + (item.is(Type::kString) ? item.bytes().size() : 0);
  return budget.Reserve(bytes);
}

std::string KeyOf(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return "u";
    case Type::kNone:
      return "n";
    case Type::kBool:
      return value.bool_value() ? "i1" : "i0";
    case Type::kInt:
      return absl::StrCat("i", value.int_value());
    case Type::kBigInt:
      return absl::StrCat("i", value.digits());
    case Type::kFloat:
      return NumberKey(value.float_value());
    case Type::kString:
      return absl::StrCat("s", value.bytes());
    case Type::kNamespace:
      return ObjectKey(value.name_space());
    case Type::kLoop:
      return ObjectKey(&value.loop());
    case Type::kMacro:
      return ObjectKey(&value.macro());
    case Type::kFunction:
      return ObjectKey(&value.function());
    case Type::kSequence:
      break;
    default:
      assert(false);  // it is not hashable
      return "";
  }
  std::string key = "t";
  for (const Value& item : value.sequence()->items) {
    const std::string part = KeyOf(item);
    absl::StrAppend(&key, part.size(), ":", part);
  }
  return key;
}

Value StringList(const std::vector<std::string>& strings) {
  Values values;
  for (const std::string& string : strings)
    values.push_back(Value::String(string, Origin::kTemplate));
  return Value::List(std::move(values));
}

}  // namespace inlay::jinja

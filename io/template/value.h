// The values that templates compute with, as Python has them.
#ifndef INLAY_IO_TEMPLATE_VALUE_H_
#define INLAY_IO_TEMPLATE_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "io/template/budget.h"
#include "io/template/text.h"

namespace inlay::jinja {

class Value;
struct StringRep;
struct SequenceRep;
struct DictRep;
struct IteratorRep;
struct NamespaceRep;
struct MethodRep;
class LoopRep;    // loop.h
struct MacroRep;  // scope.h
struct Function;  // functions.h

using Values = std::vector<Value>;

// In the order of Value's variant.
enum class Type : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kIterator,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,
  kMethod,
};

// What Python would call the sequence: they print, compare and index differently.
enum class SequenceKind : uint8_t { kList, kTuple, kGroup, kRange, kKeys, kValues, kItems };

// A value; copies share what it holds. All but namespaces and loops are immutable, and iterators
// remember how far they were read.
class Value {
 public:
  Value() : data_(Undefined{nullptr}) {}

  // The value of a name or key that does not exist; `name` must outlive it, or be null.
  static Value UndefinedNamed(const std::string* name) { return Value(Undefined{name}); }
  static Value None() { return Value(NoneData{}); }
  static Value Bool(bool value) { return Value(value); }
  static Value Int(int64_t value) { return Value(value); }
  static Value Float(double value) { return Value(value); }
  // Values that a template makes count in `budget`, which must outlive them.
  static Value String(Text text, Budget* budget = nullptr, bool markup = false);
  static Value String(absl::string_view bytes, Origin origin, Budget* budget = nullptr) {
    return String(Text(std::string(bytes), origin), budget);
  }
  static Value Sequence(SequenceKind kind, Values items, Budget* budget = nullptr);
  static Value List(Values items, Budget* budget = nullptr) {
    return Sequence(SequenceKind::kList, std::move(items), budget);
  }
  static Value Dict(std::shared_ptr<const DictRep> dict) { return Value(std::move(dict)); }
  // What Python computes item by item, as the filter map does: it is read once. `kind` is what an
  // error calls it.
  static Value Iterator(Values items, Budget* budget = nullptr);
  static Value Namespace(NamespaceRep* rep) { return Value(rep); }
  static Value Loop(std::shared_ptr<LoopRep> loop) { return Value(std::move(loop)); }
  static Value Macro(const MacroRep* macro) { return Value(macro); }
  static Value OfFunction(const Function* function) { return Value(function); }
  // A function of an object, as the `strip` of a string.
  static Value Method(Value self, const Function* function, Budget* budget);

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is(Type type) const { return this->type() == type; }

  // Each requires its type.
  const std::string* undefined_name() const { return std::get<Undefined>(data_).name; }
  bool bool_value() const { return std::get<bool>(data_); }
  int64_t int_value() const { return std::get<int64_t>(data_); }
  double float_value() const { return std::get<double>(data_); }
  const StringRep& string() const { return *std::get<std::shared_ptr<const StringRep>>(data_); }
  const Text& text() const;
  absl::string_view bytes() const { return text().bytes(); }
  const std::shared_ptr<const SequenceRep>& sequence() const {
    return std::get<std::shared_ptr<const SequenceRep>>(data_);
  }
  const DictRep& dict() const { return *std::get<std::shared_ptr<const DictRep>>(data_); }
  IteratorRep& iterator() const { return *std::get<std::shared_ptr<IteratorRep>>(data_); }
  NamespaceRep* name_space() const { return std::get<NamespaceRep*>(data_); }
  LoopRep& loop() const { return *std::get<std::shared_ptr<LoopRep>>(data_); }
  const MacroRep& macro() const { return *std::get<const MacroRep*>(data_); }
  const Function& function() const { return *std::get<const Function*>(data_); }
  const MethodRep& method() const { return *std::get<std::shared_ptr<const MethodRep>>(data_); }

  bool is_sequence(SequenceKind kind) const;
  // Lists and tuples of lists and tuples, and so on: 0 for what holds no values.
  int depth() const;
  // Whether both are the same object, as Python's `is`.
  bool SameObject(const Value& other) const;

 private:
  struct Undefined {
    const std::string* name;
    friend bool operator==(const Undefined&, const Undefined&) = default;
  };
  struct NoneData {
    friend bool operator==(const NoneData&, const NoneData&) = default;
  };
  using Data =
      std::variant<Undefined, NoneData, bool, int64_t, double, std::shared_ptr<const StringRep>,
                   std::shared_ptr<const SequenceRep>, std::shared_ptr<const DictRep>,
                   std::shared_ptr<IteratorRep>, NamespaceRep*, std::shared_ptr<LoopRep>,
                   const MacroRep*, const Function*, std::shared_ptr<const MethodRep>>;

  template <class T>
  explicit Value(T data) : data_(std::in_place_type<T>, std::move(data)) {}

  Data data_;
};

struct StringRep {
  StringRep(Text t, bool m, Budget* budget)
      : text(std::move(t)), markup(m), charge(budget, sizeof(StringRep) + text.size()) {}
  const Text text;
  // Made by the filters safe and escape, as Python's Markup: what is added to it is escaped.
  const bool markup;
  const Charge charge;
};

struct SequenceRep {
  SequenceRep(SequenceKind k, Values v, int d, Budget* budget)
      : kind(k),
        items(std::move(v)),
        depth(d),
        charge(budget, sizeof(SequenceRep) + items.size() * sizeof(Value)) {}
  const SequenceKind kind;
  const Values items;
  const int depth;
  const Charge charge;
};

struct IteratorRep {
  IteratorRep(Values v, int d, Budget* budget)
      : items(std::move(v)), depth(d), charge(budget, items.size() * sizeof(Value)) {}
  Values items;
  size_t next = 0;  // items before it were read
  const int depth;
  const Charge charge;
};

// The one object that a template can change. Values do not own it: it lives as long as the
// rendering.
struct NamespaceRep {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* Find(absl::string_view name) const;
  void Set(absl::string_view name, Value value);
};

struct MethodRep {
  Value self;
  const Function* function;
  int depth;
};

// Keys to values, in the order in which the keys were first set. Keys are compared as Python does:
// 1, 1.0 and true are one key. The origins of their bytes do not matter.
struct DictRep {
  using Entry = std::pair<Value, Value>;

  // Only until the dict becomes a Value. `key` must be hashable (see HashOf).
  void Set(Value key, Value value);
  // Counts the dict in `budget`; call once, after the last Set.
  void Finish(Budget* budget);

  // Null when there is none.
  const Value* Find(const Value& key) const;
  const Value* Find(absl::string_view key) const;

  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }

 private:
  // Small dicts are searched from the front.
  static constexpr size_t kIndexedFrom = 9;

  size_t IndexOf(const Value& key) const;
  size_t IndexOfString(absl::string_view key) const;
  void AddToIndex(size_t entry);

  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // by KeyOf
  int depth_ = 0;
  std::unique_ptr<Charge> charge_;
};

// Whether a value can be a key: lists, dicts and what holds them cannot, nor (unlike in Python)
// tuples of tuples.
bool IsHashable(const Value& value);

// Equal for equal keys and different for different ones.
std::string KeyOf(const Value& value);

// A list of which every value is a string of the template's.
Value StringList(const std::vector<std::string>& strings);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_VALUE_H_

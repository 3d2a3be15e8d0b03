// The values that templates compute with, as Python has them.
#ifndef INLAY_IO_TEMPLATE_VALUE_H_
#define INLAY_IO_TEMPLATE_VALUE_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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

enum class Type : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,
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
  Value() = default;

  // The value of a name or key that does not exist; `name` must outlive it, or be null.
  static Value UndefinedNamed(const std::string* name) {
    return Value(Type::kUndefined, {.name = name});
  }
  static Value None() { return Value(Type::kNone, {}); }
  static Value Bool(bool value) { return Value(Type::kBool, {.boolean = value}); }
  static Value Int(int64_t value) { return Value(Type::kInt, {.integer = value}); }
  // An int that has more than 64 bits, as its digits, without needless zeros, behind '-' if it is
  // negative. It can be printed and compared for equality; nothing is computed with it.
  static Value BigInt(std::string digits) {
    return Value(Type::kBigInt, {}, std::make_shared<std::string>(std::move(digits)));
  }
  static Value Float(double value) { return Value(Type::kFloat, {.number = value}); }
  // Values that a template makes count in `budget`, which must outlive them.
  static Value String(Text text, Budget* budget = nullptr, bool markup = false);
  static Value String(absl::string_view bytes, Origin origin, Budget* budget = nullptr) {
    return String(Text(std::string(bytes), origin), budget);
  }
  static Value Sequence(SequenceKind kind, Values items, Budget* budget = nullptr);
  static Value List(Values items, Budget* budget = nullptr) {
    return Sequence(SequenceKind::kList, std::move(items), budget);
  }
  // After its Finish.
  static Value Dict(std::shared_ptr<DictRep> dict) {
    return Value(Type::kDict, {}, std::move(dict));
  }
  // What Python computes item by item, as the filter map does: it is read once.
  static Value Iterator(Values items, Budget* budget = nullptr);
  static Value Namespace(NamespaceRep* rep) { return Value(Type::kNamespace, {.name_space = rep}); }
  static Value Loop(std::shared_ptr<LoopRep> loop) {
    return Value(Type::kLoop, {}, std::move(loop));
  }
  static Value Macro(const MacroRep* macro) { return Value(Type::kMacro, {.macro = macro}); }
  static Value OfFunction(const Function* function) {
    return Value(Type::kFunction, {.function = function});
  }
  // A function of an object, as the `strip` of a string.
  static Value Method(Value self, const Function* function, Budget* budget);

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }

  // Each requires its type.
  const std::string* undefined_name() const { return plain(Type::kUndefined).name; }
  bool bool_value() const { return plain(Type::kBool).boolean; }
  int64_t int_value() const { return plain(Type::kInt).integer; }
  const std::string& digits() const { return *owned<std::string>(Type::kBigInt); }
  double float_value() const { return plain(Type::kFloat).number; }
  const StringRep& string() const { return *owned<StringRep>(Type::kString); }
  const Text& text() const;
  absl::string_view bytes() const { return text().bytes(); }
  const SequenceRep* sequence() const { return owned<SequenceRep>(Type::kSequence); }
  std::shared_ptr<const SequenceRep> shared_sequence() const;
  const DictRep& dict() const { return *owned<DictRep>(Type::kDict); }
  IteratorRep& iterator() const { return *owned<IteratorRep>(Type::kIterator); }
  NamespaceRep* name_space() const { return plain(Type::kNamespace).name_space; }
  LoopRep& loop() const { return *owned<LoopRep>(Type::kLoop); }
  const MacroRep& macro() const { return *plain(Type::kMacro).macro; }
  const Function& function() const { return *plain(Type::kFunction).function; }
  const MethodRep& method() const { return *owned<MethodRep>(Type::kMethod); }

  bool is_sequence(SequenceKind kind) const;
  // Lists and tuples of lists and tuples, and so on: 0 for what holds no values.
  int depth() const;
  // Whether both are the same object, as Python's `is`.
  bool SameObject(const Value& other) const;

 private:
  // What needs no memory of its own, or belongs to the rendering.
  union Plain {
    const std::string* name = nullptr;  // of what is undefined, or null
    bool boolean;
    int64_t integer;
    double number;
    NamespaceRep* name_space;
    const MacroRep* macro;
    const Function* function;
  };

  Value(Type type, Plain plain, std::shared_ptr<void> owned = nullptr)
      : type_(type), plain_(plain), owned_(std::move(owned)) {}

  const Plain& plain([[maybe_unused]] Type type) const {
    assert(type_ == type);
    return plain_;
  }
  template <class Rep>
  Rep* owned([[maybe_unused]] Type type) const {
    assert(type_ == type);
    return static_cast<Rep*>(owned_.get());
  }

  Type type_ = Type::kUndefined;
  Plain plain_;
  // The object behind a value of the other types. One pointer for all of them keeps the code for
  // copies small, of which there is much.
  std::shared_ptr<void> owned_;
};

struct StringRep {
  StringRep(Text t, bool m, Budget* budget)
      : text(std::move(t)), markup(m), charge(budget, sizeof(StringRep) + text.memory()) {}
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
  MethodRep(Value s, const Function* f, int d, Budget* budget)
      : self(std::move(s)), function(f), depth(d), charge(budget, sizeof(MethodRep)) {}
  const Value self;
  const Function* const function;
  const int depth;
  const Charge charge;
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
  // The memory that Finish counts.
  size_t bytes() const { return bytes_; }

 private:
  // Small dicts are searched from the front.
  static constexpr size_t kIndexedFrom = 9;

  size_t IndexOf(const Value& key) const;
  size_t IndexOfString(absl::string_view key) const;
  void AddToIndex(size_t entry);

  std::vector<Entry> entries_;
  std::map<std::string, size_t> index_;  // by KeyOf
  int depth_ = 0;
  size_t bytes_ = sizeof(DictRep);
  std::unique_ptr<Charge> charge_;
};

// Whether a value can be a key: lists, dicts and what holds them cannot, nor (unlike in Python)
// tuples of tuples and methods.
bool IsHashable(const Value& value);

// Counts what finding or setting a key takes. Call it before: one string may be in a tuple many
// times, and each time it is read or copied.
absl::Status CountKey(Budget& budget, const Value& key);

// Equal for equal keys and different for different ones. `value` must be hashable.
std::string KeyOf(const Value& value);

// A list of which every value is a string of the template's.
Value StringList(const std::vector<std::string>& strings);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_VALUE_H_

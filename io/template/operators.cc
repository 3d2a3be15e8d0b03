#include "io/template/operators.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/loop.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {
namespace {

absl::string_view SequenceTypeName(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
    case SequenceKind::kGroup:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kKeys:
      return "dict_keys";
    case SequenceKind::kValues:
      return "dict_values";
    case SequenceKind::kItems:
      return "dict_items";
  }
  return "";
}

// What list[i] and the like work on: a view of a dict has no order of its own.
bool IsIndexed(SequenceKind kind) {
  return kind == SequenceKind::kList || kind == SequenceKind::kTuple ||
         kind == SequenceKind::kGroup || kind == SequenceKind::kRange;
}

absl::Status CannotCompare(const Value& left, const Value& right) {
  return absl::InvalidArgumentError(absl::StrCat("values of the types ", TypeName(left), " and ",
                                                 TypeName(right), " have no order"));
}

int Sign(int64_t left, int64_t right) { return left < right ? -1 : left > right ? 1 : 0; }

// Lists and tuples compare by their first difference.
absl::StatusOr<int> OrderItems(Budget& budget, const Values& left, const Values& right) {
  const size_t both = std::min(left.size(), right.size());
  for (size_t i = 0; i < both; ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(budget, left[i], right[i]));
    if (!equal) return Order(budget, left[i], right[i]);
  }
  return Sign(static_cast<int64_t>(left.size()), static_cast<int64_t>(right.size()));
}

absl::StatusOr<bool> EqualItems(Budget& budget, const Values& left, const Values& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(budget, left[i], right[i]));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> EqualDicts(Budget& budget, const DictRep& left, const DictRep& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    INLAY_RETURN_IF_ERROR(CountKey(budget, key));
    const Value* other = right.Find(key);
    if (other == nullptr) return false;
    INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(budget, value, *other));
    if (!equal) return false;
  }
  return true;
}

// A position in a slice, clipped to [low, high] as Python does.
int64_t ClipIndex(int64_t index, int64_t length, int64_t low, int64_t high) {
  if (index < 0) index = index < -length ? low : index + length;
  return std::clamp(index, low, high);
}

struct SliceRange {
  int64_t start, stop, step;

  int64_t size() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};

absl::StatusOr<SliceRange> FindRange(const Value& start, const Value& stop, const Value& step,
                                     int64_t length) {
  for (const Value* index : {&start, &stop, &step}) {
    if (!index->is(Type::kNone) && !AsInteger(*index).has_value())
      return absl::InvalidArgumentError(absl::StrCat(
          "the parts of a slice must be integers, not of the type ", TypeName(*index)));
  }
  SliceRange range{0, 0, AsInteger(step).value_or(1)};
  if (range.step == 0) return absl::InvalidArgumentError("a slice cannot have the step 0");
  // Larger steps take no more than one item either, and their sums do not overflow.
  range.step = std::clamp<int64_t>(range.step, -length - 1, length + 1);
  const int64_t low = range.step < 0 ? -1 : 0, high = range.step < 0 ? length - 1 : length;
  const auto clip = [&](const Value& index, int64_t none) {
    const std::optional<int64_t> at = AsInteger(index);
    return at.has_value() ? ClipIndex(*at, length, low, high) : none;
  };
  range.start = clip(start, range.step < 0 ? high : low);
  range.stop = clip(stop, range.step < 0 ? low : high);
  return range;
}

absl::StatusOr<Value> SliceString(Budget& budget, const Value& object, const SliceRange& range) {
  const Text& text = object.text();
  const absl::string_view bytes = text.bytes();
  const bool markup = object.string().markup;
  const auto count = static_cast<size_t>(range.size());
  if (range.step == 1 || count <= 1) {
    const size_t begin =
        ByteOfCodePoint(bytes, static_cast<size_t>(std::max<int64_t>(0, range.start)));
    const size_t size = ByteOfCodePoint(bytes.substr(begin), count);
    return Value::String(text.Part(begin, begin + size), &budget, markup);
  }
  INLAY_RETURN_IF_ERROR(budget.Reserve(bytes.size() * sizeof(size_t)));
  std::vector<size_t> starts;
  for (size_t at = 0; at < bytes.size(); at += ByteOfCodePoint(bytes.substr(at), 1))
    starts.push_back(at);
  starts.push_back(bytes.size());
  Text part;
  int64_t at = range.start;
  for (size_t i = 0; i < count; ++i, at += range.step) {
    const auto index = static_cast<size_t>(at);
    part.AppendPart(text, starts[index], starts[index + 1]);
  }
  return Value::String(std::move(part), &budget, markup);
}

}  // namespace

std::string TypeName(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kBigInt:
      return "int of more than 64 bits";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return "str";
    case Type::kSequence:
      return std::string(SequenceTypeName(value.sequence()->kind));
    case Type::kDict:
      return "dict";
    case Type::kIterator:
      return "generator";
    case Type::kNamespace:
      return "Namespace";
    case Type::kLoop:
      return "LoopContext";
    case Type::kMacro:
      return "Macro";
    case Type::kFunction:
    case Type::kMethod:
      return "function";
  }
  return "";
}

absl::Status UndefinedError(const Value& undefined) {
  const std::string* name = undefined.undefined_name();
  return absl::InvalidArgumentError(name == nullptr
                                        ? "a value that is used here is undefined"
                                        : absl::StrCat(QuoteForMessage(*name), " is undefined"));
}

bool IsTrue(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.bool_value();
    case Type::kInt:
      return value.int_value() != 0;
    case Type::kFloat:
      return value.float_value() != 0;
    case Type::kString:
      return !value.bytes().empty();
    case Type::kSequence:
      return !value.sequence()->items.empty();
    case Type::kDict:
      return !value.dict().entries().empty();
    default:
      return true;
  }
}

bool IsNumber(const Value& value) {
  return value.is(Type::kBool) || value.is(Type::kInt) || value.is(Type::kFloat);
}

bool IsAnyNumber(const Value& value) { return IsNumber(value) || value.is(Type::kBigInt); }

double NumberAsDouble(const Value& value) {
  if (value.is(Type::kBigInt)) {
    double number = 0;
    [[maybe_unused]] const bool read = absl::SimpleAtod(value.digits(), &number);
    assert(read);
    return number;
  }
  return value.is(Type::kFloat) ? value.float_value() : static_cast<double>(*AsInteger(value));
}

std::optional<int64_t> AsInteger(const Value& value) {
  if (value.is(Type::kBool)) return value.bool_value() ? 1 : 0;
  if (value.is(Type::kInt)) return value.int_value();
  return std::nullopt;
}

absl::StatusOr<bool> Equal(Budget& budget, const Value& left, const Value& right) {
  INLAY_RETURN_IF_ERROR(budget.Step());
  if (IsNumber(left) && IsNumber(right)) {
    if (left.is(Type::kFloat) || right.is(Type::kFloat))
      return NumberAsDouble(left) == NumberAsDouble(right);
    return *AsInteger(left) == *AsInteger(right);
  }
  if (IsAnyNumber(left) && IsAnyNumber(right)) return KeyOf(left) == KeyOf(right);
  if (left.type() != right.type()) return false;
  if (left.is(Type::kUndefined)) return true;
  if (left.is(Type::kString)) {
    INLAY_RETURN_IF_ERROR(budget.StepBytes(std::min(left.bytes().size(), right.bytes().size())));
    return left.bytes() == right.bytes();
  }
  if (left.is(Type::kDict)) return EqualDicts(budget, left.dict(), right.dict());
  if (left.is(Type::kSequence) && IsIndexed(left.sequence()->kind)) {
    const auto kind = SequenceTypeName(left.sequence()->kind);
    if (kind != SequenceTypeName(right.sequence()->kind)) return false;
    return EqualItems(budget, left.sequence()->items, right.sequence()->items);
  }
  return left.SameObject(right);
}

absl::StatusOr<int> Order(Budget& budget, const Value& left, const Value& right) {
  INLAY_RETURN_IF_ERROR(budget.Step());
  if (left.is(Type::kUndefined)) return UndefinedError(left);
  if (right.is(Type::kUndefined)) return UndefinedError(right);
  if (IsNumber(left) && IsNumber(right)) {
    if (!left.is(Type::kFloat) && !right.is(Type::kFloat))
      return Sign(*AsInteger(left), *AsInteger(right));
    const double l = NumberAsDouble(left), r = NumberAsDouble(right);
    return l < r ? -1 : l > r ? 1 : 0;
  }
  if (left.is(Type::kString) && right.is(Type::kString)) {
    INLAY_RETURN_IF_ERROR(budget.StepBytes(std::min(left.bytes().size(), right.bytes().size())));
    return left.bytes().compare(right.bytes());
  }
  if (left.is(Type::kSequence) && right.is(Type::kSequence)) {
    const SequenceRep &l = *left.sequence(), &r = *right.sequence();
    const bool ordered = IsIndexed(l.kind) && l.kind != SequenceKind::kRange;
    if (ordered && SequenceTypeName(l.kind) == SequenceTypeName(r.kind))
      return OrderItems(budget, l.items, r.items);
  }
  return CannotCompare(left, right);
}

absl::StatusOr<bool> Compare(Budget& budget, CompareOperator op, const Value& left,
                             const Value& right) {
  switch (op) {
    case CompareOperator::kEq:
      return Equal(budget, left, right);
    case CompareOperator::kNe: {
      INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(budget, left, right));
      return !equal;
    }
    case CompareOperator::kIn:
      return Contains(budget, right, left);
    case CompareOperator::kNotIn: {
      INLAY_ASSIGN_OR_RETURN(const bool contains, Contains(budget, right, left));
      return !contains;
    }
    default:
      break;
  }
  const bool nan = (left.is(Type::kFloat) && std::isnan(left.float_value())) ||
                   (right.is(Type::kFloat) && std::isnan(right.float_value()));
  INLAY_ASSIGN_OR_RETURN(const int order, Order(budget, left, right));
  if (nan) return false;
  if (op == CompareOperator::kLt) return order < 0;
  if (op == CompareOperator::kLe) return order <= 0;
  return op == CompareOperator::kGt ? order > 0 : order >= 0;
}

absl::StatusOr<size_t> Find(Budget& budget, absl::string_view text, absl::string_view needle,
                            size_t from) {
  if (needle.empty()) return from <= text.size() ? from : absl::string_view::npos;
  // The search may compare the whole needle at every place: so many places at a time that steps are
  // counted often enough.
  constexpr size_t kMostPlaces = 4096, kMostCompared = size_t{4} << 20;
  const size_t window = std::clamp<size_t>(kMostCompared / needle.size(), 1, kMostPlaces);
  while (from <= text.size() && needle.size() <= text.size() - from) {
    const size_t places = std::min(window, text.size() - from - needle.size() + 1);
    const size_t at = text.substr(from, places + needle.size() - 1).find(needle);
    const bool found = at != absl::string_view::npos;
    const size_t searched = found ? at + 1 : places;
    INLAY_RETURN_IF_ERROR(budget.Step(searched / 16 + searched * needle.size() / 1024 + 1));
    if (found) return from + at;
    from += places;
  }
  return absl::string_view::npos;
}

absl::StatusOr<size_t> FindLast(Budget& budget, absl::string_view text, absl::string_view needle) {
  if (needle.size() > text.size()) return absl::string_view::npos;
  const size_t places = text.size() - needle.size() + 1;
  INLAY_RETURN_IF_ERROR(budget.Step(places / 16 + places * needle.size() / 1024 + 1));
  return text.rfind(needle);
}

absl::StatusOr<bool> Contains(Budget& budget, const Value& container, const Value& item) {
  switch (container.type()) {
    case Type::kString: {
      if (!item.is(Type::kString))
        return absl::InvalidArgumentError(absl::StrCat(
            "'in' looks in a string for a string, not for a value of the type ", TypeName(item)));
      INLAY_ASSIGN_OR_RETURN(const size_t at, Find(budget, container.bytes(), item.bytes()));
      return at != absl::string_view::npos;
    }
    case Type::kDict:
      if (!IsHashable(item))
        return absl::InvalidArgumentError(
            absl::StrCat("a value of the type ", TypeName(item), " cannot be a key"));
      INLAY_RETURN_IF_ERROR(CountKey(budget, item));
      return container.dict().Find(item) != nullptr;
    case Type::kIterator: {
      IteratorRep& iterator = container.iterator();
      while (iterator.next < iterator.items.size()) {
        INLAY_ASSIGN_OR_RETURN(const bool equal,
                               Equal(budget, iterator.items[iterator.next++], item));
        if (equal) return true;
      }
      return false;
    }
    default: {
      INLAY_ASSIGN_OR_RETURN(const auto items, Iterate(budget, container));
      for (const Value& value : items->items) {
        INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(budget, value, item));
        if (equal) return true;
      }
      return false;
    }
  }
}

absl::StatusOr<int64_t> Length(Budget& budget, const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      INLAY_RETURN_IF_ERROR(budget.StepBytes(value.bytes().size()));
      return static_cast<int64_t>(CountCodePoints(value.bytes()));
    case Type::kSequence:
      return static_cast<int64_t>(value.sequence()->items.size());
    case Type::kDict:
      return static_cast<int64_t>(value.dict().entries().size());
    case Type::kLoop:
      return value.loop().Length();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a value of the type ", TypeName(value), " has no length"));
  }
}

bool IsIterable(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kString:
    case Type::kSequence:
    case Type::kDict:
    case Type::kIterator:
    case Type::kLoop:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<std::shared_ptr<const SequenceRep>> Iterate(Budget& budget, const Value& value) {
  if (value.is(Type::kSequence)) return value.shared_sequence();
  Values items;
  switch (value.type()) {
    case Type::kUndefined:
      break;
    case Type::kString: {
      const absl::string_view bytes = value.bytes();
      // Every character becomes a string.
      INLAY_RETURN_IF_ERROR(budget.Reserve(bytes.size() * (sizeof(StringRep) + sizeof(Value))));
      for (size_t at = 0; at < bytes.size();) {
        const size_t end = at + ByteOfCodePoint(bytes.substr(at), 1);
        items.push_back(Value::String(value.text().Part(at, end), &budget));
        at = end;
      }
      break;
    }
    case Type::kDict:
      for (const auto& [key, unused] : value.dict().entries()) items.push_back(key);
      break;
    case Type::kIterator: {
      IteratorRep& iterator = value.iterator();
      items.assign(iterator.items.begin() + static_cast<ptrdiff_t>(iterator.next),
                   iterator.items.end());
      iterator.next = iterator.items.size();
      break;
    }
    case Type::kLoop:
      return absl::UnimplementedError("going through the variable loop is not supported");
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a value of the type ", TypeName(value), " has no items"));
  }
  INLAY_RETURN_IF_ERROR(budget.Reserve(items.size() * sizeof(Value)));
  return Value::List(std::move(items), &budget).shared_sequence();
}

absl::StatusOr<Value> Slice(Budget& budget, const Value& object, const Value& start,
                            const Value& stop, const Value& step) {
  if (object.is(Type::kUndefined)) return UndefinedError(object);
  const bool string = object.is(Type::kString);
  if (!string && !(object.is(Type::kSequence) && IsIndexed(object.sequence()->kind)))
    return absl::InvalidArgumentError(
        absl::StrCat("a value of the type ", TypeName(object), " cannot be sliced"));
  INLAY_ASSIGN_OR_RETURN(const int64_t length, Length(budget, object));
  INLAY_ASSIGN_OR_RETURN(const SliceRange range, FindRange(start, stop, step, length));
  if (string) return SliceString(budget, object, range);
  const auto count = static_cast<size_t>(range.size());
  INLAY_RETURN_IF_ERROR(budget.Reserve(count * sizeof(Value)));
  Values items;
  int64_t at = range.start;
  for (size_t i = 0; i < count; ++i, at += range.step)
    items.push_back(object.sequence()->items[static_cast<size_t>(at)]);
  const SequenceKind kind = object.sequence()->kind;
  return Value::Sequence(kind == SequenceKind::kGroup ? SequenceKind::kTuple : kind,
                         std::move(items), &budget);
}

}  // namespace inlay::jinja

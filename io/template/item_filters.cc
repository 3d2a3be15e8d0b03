// Jinja's filters of lists and mappings.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "io/template/filters.h"
#include "io/template/functions.h"
#include "io/template/operators.h"
#include "io/template/print.h"
#include "io/template/sort.h"
#include "io/template/text_operations.h"

namespace inlay::jinja {
namespace {

using Items = std::shared_ptr<const SequenceRep>;

// Texts in lower case, as filters compare them unless they are told to tell cases apart.
absl::StatusOr<Value> IgnoreCase(Context& context, const Value& value) {
  if (!value.is(Type::kString)) return value;
  INLAY_ASSIGN_OR_RETURN(Text lower, InCase(context.budget, value.text(), Case::kLower));
  return Value::String(std::move(lower), &context.budget);
}

// The parts of an attribute, as many as a path or a list of paths may have.
absl::StatusOr<std::vector<absl::string_view>> SplitAttribute(Context& context,
                                                              absl::string_view attribute,
                                                              char separator) {
  // Each part becomes some values; published templates have at most three.
  constexpr ptrdiff_t kMostParts = 64;
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(attribute.size()));
  const ptrdiff_t parts = std::count(attribute.begin(), attribute.end(), separator) + 1;
  if (parts > kMostParts)
    return absl::InvalidArgumentError(absl::StrCat(
        "an attribute has ", parts, " parts, and at most ", kMostParts, " are supported"));
  return std::vector<absl::string_view>(absl::StrSplit(attribute, separator));
}

// Finds "a.b.0" in values: parts of digits are numbers. Without an attribute, the value itself.
class AttributePath {
 public:
  // `attribute` is a string, an integer or none.
  static absl::StatusOr<AttributePath> Parse(Context& context, const Value& attribute) {
    AttributePath path;
    if (attribute.is(Type::kString)) {
      INLAY_ASSIGN_OR_RETURN(const auto parts, SplitAttribute(context, attribute.bytes(), '.'));
      for (const absl::string_view part : parts) path.parts_.push_back(ParsePart(context, part));
    } else if (!attribute.is(Type::kNone)) {
      if (!AsInteger(attribute).has_value())
        return absl::InvalidArgumentError(absl::StrCat(
            "an attribute must be a string, not a value of the type ", TypeName(attribute)));
      path.parts_.push_back(attribute);
    }
    return path;
  }

  // `otherwise` replaces what is undefined, unless it is none.
  absl::StatusOr<Value> Find(Context& context, Value value,
                             const Value& otherwise = Value::None()) const {
    for (const Value& part : parts_) {
      INLAY_ASSIGN_OR_RETURN(value, GetItem(context, value, part));
      if (value.is(Type::kUndefined) && !otherwise.is(Type::kNone)) value = otherwise;
    }
    return value;
  }

 private:
  static Value ParsePart(Context& context, absl::string_view part) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    int64_t index = 0;
    if (digits && absl::SimpleAtoi(part, &index)) return Value::Int(index);
    return Value::String(part, Origin::kTemplate, &context.budget);
  }

  std::vector<Value> parts_;
};

// What filters compare items by.
class ItemKey {
 public:
  static absl::StatusOr<ItemKey> Parse(Context& context, const Value& attribute,
                                       bool case_sensitive, Value otherwise = Value::None()) {
    ItemKey key;
    INLAY_ASSIGN_OR_RETURN(key.path_, AttributePath::Parse(context, attribute));
    key.case_sensitive_ = case_sensitive;
    key.otherwise_ = std::move(otherwise);
    return key;
  }

  absl::StatusOr<Value> Of(Context& context, const Value& item) const {
    INLAY_ASSIGN_OR_RETURN(Value key, path_.Find(context, item, otherwise_));
    return case_sensitive_ ? std::move(key) : IgnoreCase(context, key);
  }

 private:
  AttributePath path_;
  bool case_sensitive_ = false;
  Value otherwise_;
};

absl::StatusOr<Value> First(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("first", {}, 0, arguments).status());
  if (input.is(Type::kIterator)) {
    IteratorRep& iterator = input.iterator();
    return iterator.next < iterator.items.size() ? iterator.items[iterator.next++] : Value();
  }
  if (input.is(Type::kString)) return GetItem(context, input, Value::Int(0));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  return items->items.empty() ? Value() : items->items.front();
}

absl::StatusOr<Value> Last(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("last", {}, 0, arguments).status());
  if (input.is(Type::kIterator))
    return absl::InvalidArgumentError(
        "last needs a list: put |list before it, after a filter as map or select");
  if (input.is(Type::kString)) return GetItem(context, input, Value::Int(-1));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  return items->items.empty() ? Value() : items->items.back();
}

absl::StatusOr<Value> CountItems(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("length", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(const int64_t length, Length(context.budget, input));
  return Value::Int(length);
}

absl::StatusOr<Value> ToList(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("list", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(items->items.size() * sizeof(Value)));
  return Value::List(items->items, &context.budget);
}

absl::StatusOr<Value> Join(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("join", {"d", "attribute"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const AttributePath path,
                         AttributePath::Parse(context, args.Or(1, Value::None())));
  INLAY_ASSIGN_OR_RETURN(const Text separator,
                         Str(context.budget, args.Or(0, Value::String(Text()))));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  std::vector<Text> parts;
  size_t bytes = 0;
  for (const Value& item : items->items) {
    INLAY_ASSIGN_OR_RETURN(const Value value, path.Find(context, item));
    INLAY_ASSIGN_OR_RETURN(Text text, Str(context.budget, value));
    bytes += text.size() + sizeof(Text);
    INLAY_RETURN_IF_ERROR(context.budget.CheckBytes(bytes));
    parts.push_back(std::move(text));
  }
  INLAY_ASSIGN_OR_RETURN(Text joined, jinja::Join(context.budget, separator, parts));
  return Value::String(std::move(joined), &context.budget);
}

absl::StatusOr<Value> DictItems(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("items", {}, 0, arguments).status());
  Values items;
  if (input.is(Type::kUndefined)) return Value::Iterator({}, &context.budget);
  if (!input.is(Type::kDict))
    return absl::InvalidArgumentError(
        absl::StrCat("items needs a mapping, not a value of the type ", TypeName(input)));
  INLAY_RETURN_IF_ERROR(
      context.budget.Reserve(input.dict().entries().size() * sizeof(DictRep::Entry)));
  for (const auto& [key, value] : input.dict().entries())
    items.push_back(Value::Sequence(SequenceKind::kTuple, {key, value}, &context.budget));
  return Value::Iterator(std::move(items), &context.budget);
}

// The items in the order of their keys.
absl::StatusOr<Values> InOrder(Context& context, const Values& items, const Values& keys,
                               bool reverse) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<size_t> order,
                         SortedOrder(context.budget, keys, reverse));
  Values sorted;
  for (const size_t index : order) sorted.push_back(items[index]);
  return sorted;
}

absl::StatusOr<Value> DictSort(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("dictsort", {"case_sensitive", "by", "reverse"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value by, args.StringOr(1, "key"));
  if (by.bytes() != "key" && by.bytes() != "value")
    return absl::InvalidArgumentError("dictsort sorts by key or value");
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (!input.is(Type::kDict))
    return absl::InvalidArgumentError(
        absl::StrCat("dictsort needs a mapping, not a value of the type ", TypeName(input)));
  Values items, keys;
  for (const auto& [key, value] : input.dict().entries()) {
    items.push_back(Value::Sequence(SequenceKind::kTuple, {key, value}, &context.budget));
    const Value& compared = by.bytes() == "key" ? key : value;
    if (args.IsTrue(0)) {
      keys.push_back(compared);
    } else {
      INLAY_ASSIGN_OR_RETURN(Value folded, IgnoreCase(context, compared));
      keys.push_back(std::move(folded));
    }
  }
  INLAY_ASSIGN_OR_RETURN(Values sorted, InOrder(context, items, keys, args.IsTrue(2)));
  return Value::List(std::move(sorted), &context.budget);
}

absl::StatusOr<Value> Sort(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("sort", {"reverse", "case_sensitive", "attribute"}, 0, arguments));
  // Several attributes may be given: "age,name".
  std::vector<ItemKey> parts;
  const Value attribute = args.Or(2, Value::None());
  Values names = {attribute};
  if (attribute.is(Type::kString)) {
    names.clear();
    INLAY_ASSIGN_OR_RETURN(const auto split, SplitAttribute(context, attribute.bytes(), ','));
    for (const absl::string_view name : split)
      names.push_back(Value::String(name, Origin::kTemplate, &context.budget));
  }
  for (const Value& name : names) {
    INLAY_ASSIGN_OR_RETURN(ItemKey part, ItemKey::Parse(context, name, args.IsTrue(1)));
    parts.push_back(std::move(part));
  }
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values keys;
  for (const Value& item : items->items) {
    Values key;
    for (const ItemKey& part : parts) {
      INLAY_ASSIGN_OR_RETURN(Value value, part.Of(context, item));
      key.push_back(std::move(value));
    }
    keys.push_back(Value::List(std::move(key), &context.budget));
  }
  INLAY_ASSIGN_OR_RETURN(Values sorted, InOrder(context, items->items, keys, args.IsTrue(0)));
  return Value::List(std::move(sorted), &context.budget);
}

absl::StatusOr<Value> Unique(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("unique", {"case_sensitive", "attribute"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const ItemKey key,
                         ItemKey::Parse(context, args.Or(1, Value::None()), args.IsTrue(0)));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values unique;
  std::set<std::string> seen;
  size_t bytes = 0;
  for (const Value& item : items->items) {
    INLAY_ASSIGN_OR_RETURN(const Value value, key.Of(context, item));
    if (!IsHashable(value))
      return absl::InvalidArgumentError(
          absl::StrCat("unique cannot compare values of the type ", TypeName(value)));
    INLAY_RETURN_IF_ERROR(CountKey(context.budget, value));
    std::string text = KeyOf(value);
    const size_t size = text.size();
    if (!seen.insert(std::move(text)).second) continue;
    unique.push_back(item);
    bytes += size;
    INLAY_RETURN_IF_ERROR(context.budget.CheckBytes(bytes));
  }
  return Value::Iterator(std::move(unique), &context.budget);
}

absl::StatusOr<Value> GroupBy(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("groupby", {"attribute", "default", "case_sensitive"}, 1, arguments));
  const Value otherwise = args.Or(1, Value::None());
  INLAY_ASSIGN_OR_RETURN(const ItemKey key,
                         ItemKey::Parse(context, args[0], args.IsTrue(2), otherwise));
  INLAY_ASSIGN_OR_RETURN(const ItemKey exact, ItemKey::Parse(context, args[0], true, otherwise));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values keys;
  for (const Value& item : items->items) {
    INLAY_ASSIGN_OR_RETURN(Value value, key.Of(context, item));
    keys.push_back(std::move(value));
  }
  INLAY_ASSIGN_OR_RETURN(const std::vector<size_t> order, SortedOrder(context.budget, keys, false));
  Values groups;
  for (size_t begin = 0; begin < order.size();) {
    const Value& first = items->items[order[begin]];
    INLAY_ASSIGN_OR_RETURN(const Value grouper, exact.Of(context, first));
    Values members;
    size_t end = begin;
    for (; end < order.size(); ++end) {
      INLAY_ASSIGN_OR_RETURN(const bool same,
                             Equal(context.budget, keys[order[begin]], keys[order[end]]));
      if (!same && end > begin) break;  // what does not equal itself is a group too
      members.push_back(items->items[order[end]]);
    }
    begin = end;
    groups.push_back(Value::Sequence(SequenceKind::kGroup,
                                     {grouper, Value::List(std::move(members), &context.budget)},
                                     &context.budget));
  }
  return Value::List(std::move(groups), &context.budget);
}

// The least item (kSign -1) or the greatest (kSign 1).
template <int kSign>
absl::StatusOr<Value> Extreme(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("min or max", {"case_sensitive", "attribute"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const ItemKey key,
                         ItemKey::Parse(context, args.Or(1, Value::None()), args.IsTrue(0)));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Value best, best_key;
  for (size_t i = 0; i < items->items.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const Value item_key, key.Of(context, items->items[i]));
    if (i > 0) {
      INLAY_ASSIGN_OR_RETURN(const int order, Order(context.budget, item_key, best_key));
      if (order * kSign <= 0) continue;
    }
    best = items->items[i];
    best_key = item_key;
  }
  return best;
}

absl::StatusOr<Value> Sum(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("sum", {"attribute", "start"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const AttributePath path,
                         AttributePath::Parse(context, args.Or(0, Value::None())));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Value sum = args.Or(1, Value::Int(0));
  if (sum.is(Type::kString)) return absl::InvalidArgumentError("sum does not add strings");
  for (const Value& item : items->items) {
    INLAY_ASSIGN_OR_RETURN(const Value value, path.Find(context, item));
    INLAY_ASSIGN_OR_RETURN(sum, Calculate(context.budget, BinaryOperator::kAdd, sum, value));
  }
  return sum;
}

absl::StatusOr<Value> Reverse(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("reverse", {}, 0, arguments).status());
  if (input.is(Type::kString))
    return Slice(context.budget, input, Value::None(), Value::None(), Value::Int(-1));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(items->items.size() * sizeof(Value)));
  Values reversed(items->items.rbegin(), items->items.rend());
  return input.is(Type::kIterator) ? Value::List(std::move(reversed), &context.budget)
                                   : Value::Iterator(std::move(reversed), &context.budget);
}

// Lists of so many items each.
absl::StatusOr<Value> Batch(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("batch", {"linecount", "fill_with"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t count, args.IntegerOr(0, 0));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  if (count < 1) return absl::UnimplementedError("batch needs a number of at least 1");
  const auto size = static_cast<size_t>(count);
  const Value fill = args.Or(1, Value::None());
  Values batches;
  for (size_t begin = 0; begin < items->items.size();
       begin += std::min(size, items->items.size())) {
    const size_t end = std::min(size, items->items.size() - begin) + begin;
    Values batch(items->items.begin() + static_cast<ptrdiff_t>(begin),
                 items->items.begin() + static_cast<ptrdiff_t>(end));
    INLAY_RETURN_IF_ERROR(context.budget.Step(batch.size()));
    if (!fill.is(Type::kNone) && batch.size() < size) {
      if (size > SIZE_MAX / sizeof(Value)) return context.budget.CheckBytes(SIZE_MAX);
      INLAY_RETURN_IF_ERROR(context.budget.Reserve(size * sizeof(Value)));
      batch.resize(size, fill);
    }
    batches.push_back(Value::List(std::move(batch), &context.budget));
  }
  return Value::Iterator(std::move(batches), &context.budget);
}

// So many lists of about equal size.
absl::StatusOr<Value> SliceItems(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("slice", {"slices", "fill_with"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t count, args.IntegerOr(0, 0));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  if (count < 1) return absl::UnimplementedError("slice needs a number of at least 1");
  const auto slices = static_cast<size_t>(count);
  if (slices > SIZE_MAX / sizeof(SequenceRep)) return context.budget.CheckBytes(SIZE_MAX);
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(slices * sizeof(SequenceRep)));
  const Values& all = items->items;
  const Value fill = args.Or(1, Value::None());
  Values lists;
  size_t begin = 0;
  for (size_t i = 0; i < slices; ++i) {
    const bool longer = i < all.size() % slices;
    const size_t end = begin + all.size() / slices + (longer ? 1 : 0);
    Values list(all.begin() + static_cast<ptrdiff_t>(begin),
                all.begin() + static_cast<ptrdiff_t>(end));
    if (!longer && !fill.is(Type::kNone)) list.push_back(fill);
    lists.push_back(Value::List(std::move(list), &context.budget));
    begin = end;
  }
  return Value::Iterator(std::move(lists), &context.budget);
}

absl::StatusOr<Value> MapAttribute(Context& context, const Value& input,
                                   const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("map", {"attribute", "default"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(context, args[0]));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values mapped;
  for (const Value& item : items->items) {
    INLAY_ASSIGN_OR_RETURN(Value value, path.Find(context, item, args.Or(1, Value::None())));
    mapped.push_back(std::move(value));
  }
  return Value::Iterator(std::move(mapped), &context.budget);
}

// The arguments after the first `count`, and the text of the last of these.
absl::StatusOr<Arguments> ArgumentsAfter(const Arguments& arguments, size_t count) {
  if (!arguments.positional[count - 1].is(Type::kString))
    return absl::InvalidArgumentError(
        absl::StrCat("a filter or test is named by a string, not by a value of the type ",
                     TypeName(arguments.positional[count - 1])));
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

absl::StatusOr<Value> Map(Context& context, const Value& input, const Arguments& arguments) {
  if (!IsTrue(input)) return Value::Iterator({}, &context.budget);
  if (arguments.positional.empty()) return MapAttribute(context, input, arguments);
  const DepthGuard guard(context.budget);  // the filter may be map again
  INLAY_RETURN_IF_ERROR(guard.status);
  INLAY_ASSIGN_OR_RETURN(const Arguments rest, ArgumentsAfter(arguments, 1));
  INLAY_ASSIGN_OR_RETURN(const Function* filter, FindFilter(arguments.positional[0].bytes()));
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values mapped;
  for (const Value& item : items->items) {
    INLAY_RETURN_IF_ERROR(context.budget.Step());
    INLAY_ASSIGN_OR_RETURN(Value value, filter->call(context, item, rest));
    mapped.push_back(std::move(value));
  }
  return Value::Iterator(std::move(mapped), &context.budget);
}

// The items that pass a test, or of which an attribute does, or (kAccepts false) those that do not.
template <bool kAccepts, bool kOfAttribute>
absl::StatusOr<Value> Select(Context& context, const Value& input, const Arguments& arguments) {
  if (!IsTrue(input)) return Value::Iterator({}, &context.budget);
  const size_t named = kOfAttribute ? 1 : 0;  // the arguments before the name of the test
  if (arguments.positional.size() < named)
    return absl::InvalidArgumentError("selectattr and rejectattr need an attribute");
  AttributePath path;
  if (kOfAttribute) {
    INLAY_ASSIGN_OR_RETURN(path, AttributePath::Parse(context, arguments.positional[0]));
  }
  const Function* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > named) {
    INLAY_ASSIGN_OR_RETURN(rest, ArgumentsAfter(arguments, named + 1));
    INLAY_ASSIGN_OR_RETURN(test, FindTest(arguments.positional[named].bytes()));
  }
  INLAY_ASSIGN_OR_RETURN(const Items items, Iterate(context.budget, input));
  Values selected;
  for (const Value& item : items->items) {
    INLAY_RETURN_IF_ERROR(context.budget.Step());
    INLAY_ASSIGN_OR_RETURN(Value value, path.Find(context, item));
    if (test != nullptr) {
      INLAY_ASSIGN_OR_RETURN(value, test->call(context, value, rest));
    }
    if (IsTrue(value) == kAccepts) selected.push_back(item);
  }
  return Value::Iterator(std::move(selected), &context.budget);
}

constexpr Function kItemFilters[] = {
    {"batch", Batch},
    {"count", CountItems},
    {"dictsort", DictSort},
    {"first", First},
    {"groupby", GroupBy},
    {"items", DictItems},
    {"join", Join},
    {"last", Last},
    {"length", CountItems},
    {"list", ToList},
    {"map", Map},
    {"max", Extreme<1>},
    {"min", Extreme<-1>},
    {"reject", Select<false, false>},
    {"rejectattr", Select<false, true>},
    {"reverse", Reverse},
    {"select", Select<true, false>},
    {"selectattr", Select<true, true>},
    {"slice", SliceItems},
    {"sort", Sort},
    {"sum", Sum},
    {"unique", Unique},
};

}  // namespace

absl::Span<const Function> ItemFilters() { return kItemFilters; }

}  // namespace inlay::jinja

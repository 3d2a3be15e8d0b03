// Jinja's tests: what is after `is`.
#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/functions.h"
#include "io/template/operators.h"
#include "io/template/print.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {
namespace {

// A test without arguments that looks at a value only.
template <bool (*kTest)(const Value&)>
absl::StatusOr<Value> Simple(Context&, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the test", {}, 0, arguments).status());
  return Value::Bool(kTest(input));
}

template <CompareOperator kOperator>
absl::StatusOr<Value> Comparison(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("the test", {"other"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const bool result, Compare(context.budget, kOperator, input, args[0]));
  return Value::Bool(result);
}

// Whether input % divisor == remainder.
absl::StatusOr<Value> HasRemainder(Context& context, const Value& input, const Value& divisor,
                                   int64_t remainder) {
  INLAY_ASSIGN_OR_RETURN(const Value rest,
                         Calculate(context.budget, BinaryOperator::kMod, input, divisor));
  INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(context.budget, rest, Value::Int(remainder)));
  return Value::Bool(equal);
}

template <int64_t kRemainder>
absl::StatusOr<Value> Parity(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the test", {}, 0, arguments).status());
  return HasRemainder(context, input, Value::Int(2), kRemainder);
}

absl::StatusOr<Value> DivisibleBy(Context& context, const Value& input,
                                  const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("divisibleby", {"num"}, 1, arguments));
  return HasRemainder(context, input, args[0], 0);
}

template <bool (*kHasCase)(char32_t), bool (*kHasOther)(char32_t)>
absl::StatusOr<Value> InOneCase(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the test", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  bool any = false, other = false;
  for (absl::string_view rest = text.bytes(); !rest.empty();) {
    const CodePoint c = DecodeUtf8(rest);
    any = any || (c.valid && kHasCase(c.value));
    other = other || (c.valid && kHasOther(c.value));
    rest.remove_prefix(c.valid ? c.length : 1);
  }
  return Value::Bool(any && !other);
}

absl::StatusOr<Value> SameAs(Context&, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("sameas", {"other"}, 1, arguments));
  return Value::Bool(input.SameObject(args[0]));
}

absl::StatusOr<Value> IsFilter(Context&, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("filter", {}, 0, arguments).status());
  if (!input.is(Type::kString)) return Value::Bool(false);
  return Value::Bool(!absl::IsInvalidArgument(FindFilter(input.bytes()).status()));
}

absl::StatusOr<Value> IsTest(Context&, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("test", {}, 0, arguments).status());
  return Value::Bool(input.is(Type::kString) && FindTest(input.bytes()).ok());
}

template <Type kType>
bool HasType(const Value& value) {
  return value.is(kType);
}
template <bool kValue>
bool IsBool(const Value& value) {
  return value.is(Type::kBool) && value.bool_value() == kValue;
}
bool IsInteger(const Value& value) { return value.is(Type::kInt) || value.is(Type::kBigInt); }
bool IsDefined(const Value& value) { return !value.is(Type::kUndefined); }
bool IsEscaped(const Value& value) { return value.is(Type::kString) && value.string().markup; }
bool IsCallable(const Value& value) {
  return value.is(Type::kMacro) || value.is(Type::kFunction) || value.is(Type::kMethod) ||
         value.is(Type::kLoop) || value.is(Type::kUndefined);
}
// What has a length and can be indexed, mappings included.
bool IsSequence(const Value& value) {
  return value.is(Type::kUndefined) || value.is(Type::kString) || value.is(Type::kDict) ||
         (value.is(Type::kSequence) && value.sequence()->kind <= SequenceKind::kRange);
}

constexpr Function kTests[] = {
    {"odd", Parity<1>},
    {"even", Parity<0>},
    {"divisibleby", DivisibleBy},
    {"defined", Simple<IsDefined>},
    {"undefined", Simple<HasType<Type::kUndefined>>},
    {"filter", IsFilter},
    {"test", IsTest},
    {"none", Simple<HasType<Type::kNone>>},
    {"boolean", Simple<HasType<Type::kBool>>},
    {"false", Simple<IsBool<false>>},
    {"true", Simple<IsBool<true>>},
    {"integer", Simple<IsInteger>},
    {"float", Simple<HasType<Type::kFloat>>},
    {"lower", InOneCase<IsLower, IsUpper>},
    {"upper", InOneCase<IsUpper, IsLower>},
    {"string", Simple<HasType<Type::kString>>},
    {"mapping", Simple<HasType<Type::kDict>>},
    {"number", Simple<IsAnyNumber>},
    {"sequence", Simple<IsSequence>},
    {"iterable", Simple<IsIterable>},
    {"callable", Simple<IsCallable>},
    {"sameas", SameAs},
    {"escaped", Simple<IsEscaped>},
    {"in", Comparison<CompareOperator::kIn>},
    {"==", Comparison<CompareOperator::kEq>},
    {"eq", Comparison<CompareOperator::kEq>},
    {"equalto", Comparison<CompareOperator::kEq>},
    {"!=", Comparison<CompareOperator::kNe>},
    {"ne", Comparison<CompareOperator::kNe>},
    {">", Comparison<CompareOperator::kGt>},
    {"gt", Comparison<CompareOperator::kGt>},
    {"greaterthan", Comparison<CompareOperator::kGt>},
    {">=", Comparison<CompareOperator::kGe>},
    {"ge", Comparison<CompareOperator::kGe>},
    {"<", Comparison<CompareOperator::kLt>},
    {"lt", Comparison<CompareOperator::kLt>},
    {"lessthan", Comparison<CompareOperator::kLt>},
    {"<=", Comparison<CompareOperator::kLe>},
    {"le", Comparison<CompareOperator::kLe>},
};

}  // namespace

absl::StatusOr<const Function*> FindTest(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const Function& f) { return f.name == name; });
  if (found != std::end(kTests)) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no test of the name ", QuoteForMessage(name)));
}

}  // namespace inlay::jinja

// Python's + - * / // % ** on values.
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/template/format.h"
#include "io/template/operators.h"
#include "io/template/text_operations.h"

namespace inlay::jinja {
namespace {

absl::Status TooLarge() {
  return absl::UnimplementedError("integers of more than 64 bits are not supported");
}

absl::Status DivisionByZero() { return absl::InvalidArgumentError("division by zero"); }

absl::string_view OperatorText(BinaryOperator op) {
  constexpr absl::string_view kTexts[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kTexts[static_cast<size_t>(op)];
}

// Rounded down, as Python's // and % need it.
absl::StatusOr<Value> DivideIntegers(BinaryOperator op, int64_t left, int64_t right) {
  if (right == 0) return DivisionByZero();
  if (right == -1) {  // INT64_MIN / -1 is too large, and so is its remainder for the CPU
    if (op == BinaryOperator::kMod) return Value::Int(0);
    return left == INT64_MIN ? absl::StatusOr<Value>(TooLarge()) : Value::Int(-left);
  }
  const bool rounds = left % right != 0 && (left < 0) != (right < 0);
  if (op == BinaryOperator::kMod) return Value::Int(left % right + (rounds ? right : 0));
  return Value::Int(left / right - (rounds ? 1 : 0));
}

absl::StatusOr<Value> PowerOfIntegers(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return DivisionByZero();
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::Int(exponent == 0 ? 1 : base);
  if (base == -1) return Value::Int(exponent % 2 == 0 ? 1 : -1);
  int64_t power = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(power, base, &power)) return TooLarge();
  }
  return Value::Int(power);
}

absl::StatusOr<Value> CalculateIntegers(BinaryOperator op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case BinaryOperator::kSub:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case BinaryOperator::kMul:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case BinaryOperator::kDiv:
      if (right == 0) return DivisionByZero();
      return Value::Float(static_cast<double>(left) / static_cast<double>(right));
    case BinaryOperator::kPow:
      return PowerOfIntegers(left, right);
    default:
      return DivideIntegers(op, left, right);
  }
  return overflow ? absl::StatusOr<Value>(TooLarge()) : Value::Int(result);
}

absl::StatusOr<Value> PowerOfDoubles(double left, double right) {
  if (left == 0 && right < 0) return DivisionByZero();
  if (left < 0 && std::isfinite(right) && right != std::floor(right))
    return absl::UnimplementedError("complex numbers are not supported");
  const double power = std::pow(left, right);
  if (std::isinf(power) && std::isfinite(left) && std::isfinite(right))
    return absl::InvalidArgumentError("the power is too large");
  return Value::Float(power);
}

absl::StatusOr<Value> CalculateDoubles(BinaryOperator op, double left, double right) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::Float(left + right);
    case BinaryOperator::kSub:
      return Value::Float(left - right);
    case BinaryOperator::kMul:
      return Value::Float(left * right);
    case BinaryOperator::kPow:
      return PowerOfDoubles(left, right);
    default:
      break;
  }
  if (right == 0) return DivisionByZero();
  if (op == BinaryOperator::kDiv) return Value::Float(left / right);
  double remainder = std::fmod(left, right);
  if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  if (remainder == 0) remainder = std::copysign(0.0, right);
  if (op == BinaryOperator::kMod) return Value::Float(remainder);
  const double quotient = (left - remainder) / right;
  // The difference is exact but for rounding: the quotient is the nearest integer.
  return Value::Float(quotient == 0 ? std::copysign(0.0, left / right) : std::round(quotient));
}

// Strings that |safe or |escape made stay so, and what is added to them is escaped.
absl::StatusOr<Value> AddStrings(Budget& budget, const Value& left, const Value& right) {
  INLAY_RETURN_IF_ERROR(budget.Reserve(left.bytes().size() + right.bytes().size()));
  const bool markup = left.string().markup || right.string().markup;
  Text sum;
  for (const Value* part : {&left, &right}) {
    if (markup && !part->string().markup) {
      INLAY_ASSIGN_OR_RETURN(const Text escaped, EscapeHtml(budget, part->text()));
      sum.Append(escaped);
    } else {
      sum.Append(part->text());
    }
  }
  return Value::String(std::move(sum), &budget, markup);
}

bool IsList(const Value& value) { return value.is_sequence(SequenceKind::kList); }
bool IsTuple(const Value& value) {
  return value.is_sequence(SequenceKind::kTuple) || value.is_sequence(SequenceKind::kGroup);
}

absl::StatusOr<Value> AddSequences(Budget& budget, const Value& left, const Value& right) {
  const Values &first = left.sequence()->items, &second = right.sequence()->items;
  INLAY_RETURN_IF_ERROR(budget.Reserve((first.size() + second.size()) * sizeof(Value)));
  Values items = first;
  items.insert(items.end(), second.begin(), second.end());
  return Value::Sequence(IsList(left) ? SequenceKind::kList : SequenceKind::kTuple,
                         std::move(items), &budget);
}

absl::StatusOr<Value> RepeatValue(Budget& budget, const Value& value, int64_t times) {
  if (value.is(Type::kString)) {
    INLAY_ASSIGN_OR_RETURN(Text text, Repeat(budget, value.text(), times));
    return Value::String(std::move(text), &budget, value.string().markup);
  }
  const Values& items = value.sequence()->items;
  Values repeated;
  if (times > 0 && !items.empty()) {
    const size_t count = static_cast<size_t>(times);
    if (count > SIZE_MAX / sizeof(Value) / items.size()) return budget.CheckBytes(SIZE_MAX);
    INLAY_RETURN_IF_ERROR(budget.Reserve(count * items.size() * sizeof(Value)));
    for (size_t i = 0; i < count; ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return Value::Sequence(IsList(value) ? SequenceKind::kList : SequenceKind::kTuple,
                         std::move(repeated), &budget);
}

bool IsRepeatable(const Value& value) {
  return value.is(Type::kString) || IsList(value) || IsTuple(value);
}

absl::StatusOr<Value> CalculateOthers(Budget& budget, BinaryOperator op, const Value& left,
                                      const Value& right) {
  if (op == BinaryOperator::kAdd) {
    if (left.is(Type::kString) && right.is(Type::kString)) return AddStrings(budget, left, right);
    if ((IsList(left) && IsList(right)) || (IsTuple(left) && IsTuple(right)))
      return AddSequences(budget, left, right);
  }
  if (op == BinaryOperator::kMul) {
    if (IsRepeatable(left) && AsInteger(right).has_value())
      return RepeatValue(budget, left, *AsInteger(right));
    if (IsRepeatable(right) && AsInteger(left).has_value())
      return RepeatValue(budget, right, *AsInteger(left));
  }
  if (op == BinaryOperator::kMod && left.is(Type::kString)) {
    if (left.string().markup)
      return absl::UnimplementedError("the operator % after |safe is not supported");
    INLAY_ASSIGN_OR_RETURN(Text text, FormatPercent(budget, left.text(), right));
    return Value::String(std::move(text), &budget);
  }
  return absl::InvalidArgumentError(absl::StrCat("the operator ", OperatorText(op),
                                                 " does not work on values of the types ",
                                                 TypeName(left), " and ", TypeName(right)));
}

}  // namespace

absl::StatusOr<Value> Negate(const Value& value) {
  if (value.is(Type::kUndefined)) return UndefinedError(value);
  if (value.is(Type::kFloat)) return Value::Float(-value.float_value());
  if (!IsNumber(value))
    return absl::InvalidArgumentError(
        absl::StrCat("a value of the type ", TypeName(value), " has no negative"));
  return CalculateIntegers(BinaryOperator::kSub, 0, *AsInteger(value));
}

absl::StatusOr<Value> Calculate(Budget& budget, BinaryOperator op, const Value& left,
                                const Value& right) {
  if (IsNumber(left) && IsNumber(right)) {
    if (left.is(Type::kFloat) || right.is(Type::kFloat))
      return CalculateDoubles(op, NumberAsDouble(left), NumberAsDouble(right));
    return CalculateIntegers(op, *AsInteger(left), *AsInteger(right));
  }
  if (left.is(Type::kUndefined)) return UndefinedError(left);
  const bool formats = op == BinaryOperator::kMod && left.is(Type::kString);
  if (right.is(Type::kUndefined) && !formats) return UndefinedError(right);
  return CalculateOthers(budget, op, left, right);
}

}  // namespace inlay::jinja

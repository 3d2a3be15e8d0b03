// Python's operators on values: arithmetic, comparison, membership, truth, subscripts and slices.
#ifndef INLAY_IO_TEMPLATE_OPERATORS_H_
#define INLAY_IO_TEMPLATE_OPERATORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/template/value.h"

namespace inlay::jinja {

enum class UnaryOperator : uint8_t { kNot, kMinus, kPlus };
enum class BinaryOperator : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOperator : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// The name of the value's type in Python, for messages, which also tell what is too large an int.
std::string TypeName(const Value& value);

// What an operation on an undefined value fails with.
absl::Status UndefinedError(const Value& undefined);

bool IsTrue(const Value& value);
bool IsNumber(const Value& value);     // bool, int, float; it can be computed with
bool IsAnyNumber(const Value& value);  // and an int of more than 64 bits
// Requires any number; a bool is 0 or 1.
double NumberAsDouble(const Value& value);
// Of a bool or an int of at most 64 bits; nothing for other values.
std::optional<int64_t> AsInteger(const Value& value);

absl::StatusOr<Value> Negate(const Value& value);
absl::StatusOr<Value> Calculate(Budget& budget, BinaryOperator op, const Value& left,
                                const Value& right);
absl::StatusOr<bool> Compare(Budget& budget, CompareOperator op, const Value& left,
                             const Value& right);
absl::StatusOr<bool> Equal(Budget& budget, const Value& left, const Value& right);
// -1, 0 or 1; an error for values that have no order.
absl::StatusOr<int> Order(Budget& budget, const Value& left, const Value& right);
absl::StatusOr<bool> Contains(Budget& budget, const Value& container, const Value& item);
// Where `needle` is in `text` from byte `from` on; npos when it is not.
absl::StatusOr<size_t> Find(Budget& budget, absl::string_view text, absl::string_view needle,
                            size_t from = 0);
// Where `needle` is in `text` for the last time; npos when it is not.
absl::StatusOr<size_t> FindLast(Budget& budget, absl::string_view text, absl::string_view needle);

// Python's len().
absl::StatusOr<int64_t> Length(Budget& budget, const Value& value);
// The items that a loop over the value goes through; what an iterator yields is read with that.
absl::StatusOr<std::shared_ptr<const SequenceRep>> Iterate(Budget& budget, const Value& value);
bool IsIterable(const Value& value);

// object[start:stop:step], where each of the three may be none.
absl::StatusOr<Value> Slice(Budget& budget, const Value& object, const Value& start,
                            const Value& stop, const Value& step);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_OPERATORS_H_

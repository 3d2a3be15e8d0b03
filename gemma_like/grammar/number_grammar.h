// JSON numbers within bounds as grammars.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_NUMBER_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_NUMBER_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

struct NumberConstraints {
  // Both included; no infinities.
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool whole = false;
  // The number must be a multiple of divisor / 2^halvings; 0: of nothing.
  uint32_t divisor = 0;
  uint32_t halvings = 0;
  // Both included: bounds of the number as it is written, for readers to whom integers are exact.
  // Their doubles are within `least` and `most`, or beyond them where another bound is stricter.
  std::optional<absl::int128> least_integer = std::nullopt, most_integer = std::nullopt;
};

// The largest divisor * 5^halvings, and the most halvings, that AddNumber takes.
inline constexpr uint32_t kMostDivisor = 1000;
inline constexpr uint32_t kMostHalvings = 3;

// The most digits that a number has before the point, and after it. Doubles have no more than 17
// that count, and serializers write fewer than 7 zeros after the point.
inline constexpr size_t kMostWholeDigits = 40;
inline constexpr size_t kMostFractionDigits = 25;
inline constexpr size_t kMostMultipleDigits = 15;

// The digits that may be any, which are most of what a bound needs, as rules that all numbers of
// one grammar share: a bound of 17 digits has as many places from which they go on.
struct AnyDigitRules {
  // From the first number of digits to the second.
  std::map<std::pair<size_t, size_t>, GrammarBuilder::Rule> digits;
  std::optional<GrammarBuilder::Rule> zeros;  // after the point
};

// Numbers whose double is within the constraints, in every spelling that JavaScript and Python
// write and some more. A whole one has neither point nor exponent, and is not -0. An exponent comes
// after one digit other than 0 and perhaps a fraction. Multiples have at most kMostMultipleDigits
// and no exponent: divisions of such doubles by the divisor are exact.
// `shared` is of the same builder, and empty before its first number.
GrammarBuilder::Expr AddNumber(GrammarBuilder& builder, const NumberConstraints& constraints,
                               AnyDigitRules& shared);

// Whether a double satisfies them, but for the bounds of integers; whether an integer is within
// these.
bool Satisfies(const NumberConstraints& constraints, double number);
bool IsWithin(const NumberConstraints& constraints, absl::int128 integer);

// The shortest text that reads as this finite double, as JavaScript writes it.
std::string JsonNumber(double number);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_NUMBER_GRAMMAR_H_

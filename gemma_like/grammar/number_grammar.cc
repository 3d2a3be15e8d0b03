#include "gemma_like/grammar/number_grammar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;
using DigitText = absl::string_view;

// A number that is not negative: digits before the point, without needless zeros, and after it,
// without zeros at the end.
struct Decimal {
  std::string whole = "0", fraction;
};

// The shortest digits that read as `number`, which is positive: d.ddd times 10^exponent.
struct Scientific {
  std::string digits;
  int exponent = 0;
};

Scientific ToScientific(double number) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), number, std::chars_format::scientific);
  const absl::string_view written(text, static_cast<size_t>(end.ptr - text));
  const size_t e = written.find('e');
  Scientific result;
  for (const char c : written.substr(0, e))
    if (c != '.') result.digits.push_back(c);
  const absl::string_view exponent = written.substr(e + 2);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), result.exponent);
  if (written[e + 1] == '-') result.exponent = -result.exponent;
  return result;
}

Decimal ToDecimal(const Scientific& number) {
  Decimal decimal;
  const int before = number.exponent + 1;
  if (before <= 0) {
    decimal.fraction = std::string(static_cast<size_t>(-before), '0') + number.digits;
  } else {
    const size_t size = static_cast<size_t>(before);
    decimal.whole = number.digits.substr(0, size);
    decimal.whole.resize(size, '0');
    if (number.digits.size() > size) decimal.fraction = number.digits.substr(size);
  }
  return decimal;
}
Decimal ToDecimal(double number) {
  return number == 0 ? Decimal() : ToDecimal(ToScientific(number));
}

std::string PlusOne(std::string digits) {
  for (size_t i = digits.size(); i-- > 0; digits[i] = '0')
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
  return "1" + digits;
}
std::string MinusOne(std::string digits) {  // of at least 1
  size_t i = digits.size() - 1;
  for (; digits[i] == '0'; --i) digits[i] = '9';
  --digits[i];
  return digits.size() > 1 && digits[0] == '0' ? digits.substr(1) : digits;
}

std::string WithoutEndZeros(std::string digits) {
  digits.resize(digits.find_last_not_of('0') + 1);
  return digits;
}

// With at most `places` digits after the point: the next number that is at least `decimal`, or at
// most.
Decimal RoundedDecimal(const Decimal& decimal, size_t places, bool up) {
  if (decimal.fraction.size() <= places) return decimal;
  std::string digits = decimal.whole + decimal.fraction.substr(0, places);
  if (up) digits = PlusOne(std::move(digits));
  const size_t whole = digits.size() - places;
  return {digits.substr(0, whole), WithoutEndZeros(digits.substr(whole))};
}

std::string DigitsOf(absl::int128 number) {  // of at least 0
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

// Orders whole numbers without needless zeros.
bool Less(DigitText a, DigitText b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

bool Less(const Decimal& a, const Decimal& b) {
  return a.whole == b.whole ? a.fraction < b.fraction : Less(a.whole, b.whole);
}

// Makes the expressions of digits.
class DigitWriter {
 public:
  DigitWriter(GrammarBuilder& builder, AnyDigitRules& shared)
      : builder_(builder), shared_(shared) {}

  Expr Digit(char first, char last) {
    ByteSet digits;
    for (char c = first; c <= last; ++c) digits.set(static_cast<uint8_t>(c));
    return builder_.Byte(digits);
  }
  Expr AnyDigits(size_t least, size_t most) {
    if (most == 0) return builder_.Empty();
    const auto [place, is_new] = shared_.digits.try_emplace({least, most}, 0);
    if (is_new) place->second = RuleOf("digits", builder_.Repeat(Digit('0', '9'), least, most));
    return builder_.Call(place->second);
  }
  Expr Text(absl::string_view text) { return builder_.Text(text); }
  Expr Optional(Expr expr) { return builder_.Repeat(expr, 0, 1); }
  Expr Then(Expr first, Expr second) { return builder_.Sequence({first, second}); }
  Expr Choice(std::vector<Expr> options) {
    return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
  }

  // Numbers from `first` to `last`, without needless zeros.
  Expr WholeBetween(DigitText first, DigitText last) {
    if (Less(last, first)) return builder_.Nothing();
    if (first.size() == last.size()) return SameSizeBetween(first, last);
    std::vector<Expr> options = {SameSizeAtLeast(first)};
    if (last.size() - first.size() > 1)
      options.push_back(Then(Digit('1', '9'), AnyDigits(first.size(), last.size() - 2)));
    options.push_back(SameSizeBetween(absl::StrCat("1", std::string(last.size() - 1, '0')), last));
    return Choice(std::move(options));
  }

  // What may follow the digits before the point, for a fraction of at least, or at most, this one.
  Expr AnyFraction() { return Optional(Then(Text("."), AnyDigits(1, kMostFractionDigits))); }
  Expr FractionAtLeast(DigitText least) {
    return least.empty() ? AnyFraction() : Then(Text("."), AtLeast(least));
  }
  Expr FractionAtMost(DigitText most) { return Optional(Then(Text("."), AtMost(most))); }
  Expr FractionBetween(DigitText least, DigitText most) {
    return least.empty() ? FractionAtMost(most) : Then(Text("."), Between(least, most));
  }

  Expr DecimalBetween(const Decimal& least, const Decimal& most) {
    if (Less(most, least)) return builder_.Nothing();
    if (least.whole == most.whole)
      return Then(Text(least.whole), FractionBetween(least.fraction, most.fraction));
    std::vector<Expr> options = {Then(Text(least.whole), FractionAtLeast(least.fraction)),
                                 Then(Text(most.whole), FractionAtMost(most.fraction))};
    const std::string first = PlusOne(least.whole), last = MinusOne(most.whole);
    if (!Less(last, first)) options.push_back(Then(WholeBetween(first, last), AnyFraction()));
    return Choice(std::move(options));
  }

 private:
  static std::string One(char digit) { return std::string(1, digit); }

  // Numbers of as many digits.
  Expr SameSizeAtLeast(DigitText least) {
    if (least.find_first_not_of('0') == DigitText::npos)
      return AnyDigits(least.size(), least.size());
    std::vector<Expr> options = {Then(Text(least.substr(0, 1)), SameSizeAtLeast(least.substr(1)))};
    AddFree(static_cast<char>(least[0] + 1), '9', least.size() - 1, &options);
    return Choice(std::move(options));
  }
  Expr SameSizeAtMost(DigitText most) {
    if (most.find_first_not_of('9') == DigitText::npos) return AnyDigits(most.size(), most.size());
    std::vector<Expr> options = {Then(Text(most.substr(0, 1)), SameSizeAtMost(most.substr(1)))};
    AddFree('0', static_cast<char>(most[0] - 1), most.size() - 1, &options);
    return Choice(std::move(options));
  }
  Expr SameSizeBetween(DigitText least, DigitText most) {
    size_t same = 0;
    while (same < least.size() && least[same] == most[same]) ++same;
    const Expr prefix = Text(least.substr(0, same));
    least.remove_prefix(same);
    most.remove_prefix(same);
    if (least.empty()) return prefix;
    std::vector<Expr> options = {Then(Text(least.substr(0, 1)), SameSizeAtLeast(least.substr(1))),
                                 Then(Text(most.substr(0, 1)), SameSizeAtMost(most.substr(1)))};
    AddFree(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1), least.size() - 1,
            &options);
    return Then(prefix, Choice(std::move(options)));
  }
  // One digit from `first` to `last`, then any.
  void AddFree(char first, char last, size_t rest, std::vector<Expr>* options) {
    if (first <= last) options->push_back(Then(Digit(first, last), AnyDigits(rest, rest)));
  }

  // DigitText after the point, at least one; missing ones are zeros. `least` and `most` have no
  // zeros at their ends, and `least` is not empty.
  Expr Tail() { return AnyDigits(0, kMostFractionDigits); }
  Expr Zeros() {
    if (!shared_.zeros.has_value())
      shared_.zeros = RuleOf("zeros", builder_.Repeat(Text("0"), 1, kMostFractionDigits));
    return builder_.Call(*shared_.zeros);
  }
  Expr AtLeast(DigitText least) {
    const DigitText rest = least.substr(1);
    std::vector<Expr> options = {
        Then(Text(least.substr(0, 1)), rest.empty() ? Tail() : AtLeast(rest))};
    if (least[0] < '9')
      options.push_back(Then(Digit(static_cast<char>(least[0] + 1), '9'), Tail()));
    return Choice(std::move(options));
  }
  Expr AtMost(DigitText most) {
    if (most.empty()) return Zeros();
    std::vector<Expr> options = {Then(Text(most.substr(0, 1)), Optional(AtMost(most.substr(1))))};
    if (most[0] > '0') options.push_back(Then(Digit('0', static_cast<char>(most[0] - 1)), Tail()));
    return Choice(std::move(options));
  }
  Expr Between(DigitText least, DigitText most) {
    const DigitText rest = least.substr(1), rest_of_most = most.substr(1);
    if (least[0] == most[0])
      return Then(Text(least.substr(0, 1)),
                  rest.empty() ? Optional(AtMost(rest_of_most)) : Between(rest, rest_of_most));
    std::vector<Expr> options = {
        Then(Text(least.substr(0, 1)), rest.empty() ? Tail() : AtLeast(rest)),
        Then(Text(most.substr(0, 1)), Optional(AtMost(rest_of_most)))};
    if (least[0] + 1 < most[0])
      options.push_back(
          Then(Digit(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1)), Tail()));
    return Choice(std::move(options));
  }

  GrammarBuilder::Rule RuleOf(std::string name, Expr expr) {
    const GrammarBuilder::Rule rule = builder_.Declare(std::move(name));
    builder_.Define(rule, expr);
    return rule;
  }

  GrammarBuilder& builder_;
  AnyDigitRules& shared_;
};

// Of what comes after the sign: as in NumberConstraints, the doubles at least 0.
struct MagnitudeBounds {
  double least, most;
  std::optional<absl::int128> least_integer, most_integer;
};

// Integers beyond 2^53 may be written with digits that a double does not keep. These hold for the
// bounds of integers, too.
std::string LeastWhole(const MagnitudeBounds& bounds) {
  const double least = std::ceil(bounds.least);
  const bool exact = bounds.least_integer && static_cast<double>(*bounds.least_integer) >= least;
  return exact ? DigitsOf(*bounds.least_integer) : ToDecimal(least).whole;
}
std::string MostWhole(const MagnitudeBounds& bounds) {
  const double most = std::floor(bounds.most);
  const bool exact = bounds.most_integer && static_cast<double>(*bounds.most_integer) <= most;
  return exact ? DigitsOf(*bounds.most_integer) : ToDecimal(most).whole;
}

// With doubles whose shortest digits are within the bounds of integers. Only beyond 2^53, where all
// doubles are integers, they may not be.
MagnitudeBounds RoundedInward(MagnitudeBounds bounds) {
  constexpr double kAllAreIntegers = 9007199254740992;
  const auto digits = [](double number) { return ToDecimal(number).whole; };
  if (bounds.least_integer && bounds.least >= kAllAreIntegers &&
      Less(digits(bounds.least), DigitsOf(*bounds.least_integer)))
    bounds.least = std::nextafter(bounds.least, std::numeric_limits<double>::max());
  if (bounds.most_integer && bounds.most >= kAllAreIntegers &&
      *bounds.most_integer >= absl::int128(kAllAreIntegers) &&
      Less(DigitsOf(*bounds.most_integer), digits(bounds.most)))
    bounds.most = std::nextafter(bounds.most, 0);
  return bounds;
}

// Numbers between bounds that are not negative.
class MagnitudeWriter : public DigitWriter {
 public:
  using DigitWriter::DigitWriter;

  Expr Whole(const MagnitudeBounds& bounds) {
    std::string last = MostWhole(bounds);
    if (last.size() > kMostWholeDigits) last = std::string(kMostWholeDigits, '9');
    return WholeBetween(LeastWhole(bounds), last);
  }

  Expr Any(double least, double most) {
    std::vector<Expr> options = {Plain(least, most)};
    if (most > 0) AddExponents(least, most, &options);
    return Choice(std::move(options));
  }

 private:
  static constexpr int kLeastExponent = -324;

  Expr Plain(double least, double most) {
    const Decimal first = RoundedDecimal(ToDecimal(least), kMostFractionDigits, /*up=*/true);
    Decimal last = RoundedDecimal(ToDecimal(most), kMostFractionDigits, /*up=*/false);
    if (last.whole.size() > kMostWholeDigits) last = {std::string(kMostWholeDigits, '9'), ""};
    return DecimalBetween(first, last);
  }

  void AddExponents(double least, double most, std::vector<Expr>* options) {
    const Decimal smallest = {"1", ""}, largest = {"9", std::string(kMostFractionDigits, '9')};
    Scientific first = least > 0 ? ToScientific(least) : Scientific{"1", kLeastExponent};
    Scientific last = ToScientific(most);
    const int low = std::exchange(first.exponent, 0), high = std::exchange(last.exponent, 0);
    if (low == high) {
      options->push_back(Then(DecimalBetween(Trimmed(first), Trimmed(last)), Exponent(low, low)));
      return;
    }
    options->push_back(Then(DecimalBetween(Trimmed(first), largest), Exponent(low, low)));
    options->push_back(Then(DecimalBetween(smallest, Trimmed(last)), Exponent(high, high)));
    if (low + 1 < high)
      options->push_back(Then(Then(Digit('1', '9'), AnyFraction()), Exponent(low + 1, high - 1)));
  }
  static Decimal Trimmed(const Scientific& mantissa) {
    Decimal decimal = ToDecimal(mantissa);
    decimal.fraction = WithoutEndZeros(std::move(decimal.fraction));
    return decimal;
  }

  // e or E with an exponent from `least` to `most`, which may have zeros in front.
  Expr Exponent(int least, int most) {
    const auto digits = [&](int first, int last) {
      return Then(Optional(Text("0")), WholeBetween(absl::StrCat(first), absl::StrCat(last)));
    };
    std::vector<Expr> options;
    if (most >= 0) options.push_back(Then(Optional(Text("+")), digits(std::max(least, 0), most)));
    if (least < 0) options.push_back(Then(Text("-"), digits(std::max(-most, 1), -least)));
    return Then(Choice({Text("e"), Text("E")}), Choice(std::move(options)));
  }
};

// Multiples of a whole number, as digits with a point before the last `places` of them. One rule
// for each remainder and number of digits that follow.
class MultipleWriter {
 public:
  // Multiples of divisor / 10^places.
  MultipleWriter(GrammarBuilder& builder, uint32_t divisor, size_t places)
      : builder_(builder), divisor_(divisor), places_(places) {}

  // From `first` to `last`, both times 10^places.
  Expr Between(const std::string& first, std::string last) {
    if (last.size() > kMostMultipleDigits) last = std::string(kMostMultipleDigits, '9');
    std::vector<Expr> options;
    for (size_t size = places_ + 1; size <= std::max(last.size(), places_ + 1); ++size) {
      const bool is_shortest = size == places_ + 1;  // may begin with 0
      std::string low = std::string(size, '0'), high = std::string(size, '9');
      if (!is_shortest) low[0] = '1';
      low = std::max(low, Padded(first, size));
      high = std::min(high, Padded(last, size));
      if (low <= high) options.push_back(Within(low, high, 0, size, true, true));
    }
    return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
  }

 private:
  // Longer numbers come after all of this size.
  static std::string Padded(const std::string& digits, size_t size) {
    if (digits.size() > size) return std::string(size, static_cast<char>('9' + 1));
    return std::string(size - digits.size(), '0') + digits;
  }

  // The last `left` digits after ones that leave `remainder`. With `at_low`, those before are the
  // ones of `low`, and with `at_high`, those of `high`.
  Expr Within(const std::string& low, const std::string& high, uint32_t remainder, size_t left,
              bool at_low, bool at_high) {
    if (left == 0) return remainder == 0 ? builder_.Empty() : builder_.Nothing();
    if (!at_low && !at_high) return builder_.Call(Free(remainder, left));
    const size_t at = low.size() - left;
    const char first = at_low ? low[at] : '0', last = at_high ? high[at] : '9';
    std::vector<Expr> options;
    for (char digit = first; digit <= last; ++digit)
      options.push_back(Digit(digit, left,
                              Within(low, high, Next(remainder, digit), left - 1,
                                     at_low && digit == first, at_high && digit == last)));
    return builder_.Choice(std::move(options));
  }

  GrammarBuilder::Rule Free(uint32_t remainder, size_t left) {
    const auto [place, is_new] = free_.try_emplace({remainder, left}, 0);
    if (!is_new) return place->second;
    const GrammarBuilder::Rule rule = place->second = builder_.Declare("a multiple");
    std::vector<Expr> options;
    for (char digit = '0'; digit <= '9'; ++digit) {
      const uint32_t next = Next(remainder, digit);
      if (left > 1)
        options.push_back(Digit(digit, left, builder_.Call(Free(next, left - 1))));
      else if (next == 0)
        options.push_back(Digit(digit, left, builder_.Empty()));
    }
    builder_.Define(rule,
                    options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options)));
    return rule;
  }

  Expr Digit(char digit, size_t left, Expr rest) {
    const char with_point[] = {'.', digit};
    const bool after_point = left == places_;
    return builder_.Sequence(
        {builder_.Text({after_point ? with_point : with_point + 1, after_point ? 2u : 1u}), rest});
  }

  uint32_t Next(uint32_t remainder, char digit) const {
    return (remainder * 10 + static_cast<uint32_t>(digit - '0')) % divisor_;
  }

  GrammarBuilder& builder_;
  const uint32_t divisor_;
  const size_t places_;
  std::map<std::pair<uint32_t, size_t>, GrammarBuilder::Rule> free_;
};

// `decimal` times 10^places, rounded.
std::string TimesPowerOfTen(const Decimal& decimal, size_t places, bool up) {
  const Decimal rounded = RoundedDecimal(decimal, places, up);
  std::string digits = rounded.whole + rounded.fraction;
  digits.append(places - rounded.fraction.size(), '0');
  const size_t start = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  return digits.substr(start);
}

Expr MultiplesBetween(GrammarBuilder& builder, const NumberConstraints& constraints, double least,
                      double most) {
  const size_t most_places = constraints.whole ? 0 : constraints.halvings;
  std::vector<Expr> options;
  uint32_t divisor = constraints.divisor;
  for (size_t places = 0; places <= most_places; ++places, divisor *= 10) {
    const uint32_t reduced = divisor / std::gcd(divisor, 1u << constraints.halvings);
    Expr multiples = MultipleWriter(builder, reduced, places)
                         .Between(TimesPowerOfTen(ToDecimal(least), places, /*up=*/true),
                                  TimesPowerOfTen(ToDecimal(most), places, /*up=*/false));
    if (places == 0 && !constraints.whole)  // as Python writes them
      multiples = builder.Sequence({multiples, builder.Repeat(builder.Text(".0"), 0, 1)});
    options.push_back(multiples);
  }
  return builder.Choice(std::move(options));
}

Expr AddMagnitude(GrammarBuilder& builder, const NumberConstraints& constraints,
                  MagnitudeBounds bounds, AnyDigitRules& shared) {
  if (constraints.divisor != 0)
    return MultiplesBetween(builder, constraints, bounds.least, bounds.most);
  MagnitudeWriter writer(builder, shared);
  if (constraints.whole) return writer.Whole(bounds);
  bounds = RoundedInward(bounds);
  return writer.Any(bounds.least, bounds.most);
}

}  // namespace

Expr AddNumber(GrammarBuilder& builder, const NumberConstraints& constraints,
               AnyDigitRules& shared) {
  const double least = constraints.least, most = constraints.most;
  std::vector<Expr> options;
  if (most >= 0 && most >= least) {
    const MagnitudeBounds bounds = {std::max(least, 0.0), most, constraints.least_integer,
                                    constraints.most_integer};
    options.push_back(AddMagnitude(builder, constraints, bounds, shared));
  }
  const double smallest = constraints.whole ? 1 : 0;  // after a '-'
  if (least <= -smallest && most >= least) {
    const auto negated = [](std::optional<absl::int128> bound) {
      return bound ? std::optional<absl::int128>(-*bound) : std::nullopt;
    };
    const MagnitudeBounds bounds = {std::max(-most, smallest), -least,
                                    negated(constraints.most_integer),
                                    negated(constraints.least_integer)};
    options.push_back(
        builder.Sequence({builder.Text("-"), AddMagnitude(builder, constraints, bounds, shared)}));
  }
  return options.empty() ? builder.Nothing() : builder.Choice(std::move(options));
}

bool Satisfies(const NumberConstraints& constraints, double number) {
  if (!(number >= constraints.least && number <= constraints.most)) return false;
  if (constraints.whole && number != std::floor(number)) return false;
  return constraints.divisor == 0 ||
         std::fmod(std::ldexp(number, static_cast<int>(constraints.halvings)),
                   constraints.divisor) == 0;
}

bool IsWithin(const NumberConstraints& constraints, absl::int128 integer) {
  return !(constraints.least_integer && integer < *constraints.least_integer) &&
         !(constraints.most_integer && integer > *constraints.most_integer);
}

std::string JsonNumber(double number) {
  if (number == 0) return "0";
  if (number < 0) return absl::StrCat("-", JsonNumber(-number));
  const Scientific parts = ToScientific(number);
  if (parts.exponent >= 21 || parts.exponent < -6)
    return absl::StrCat(parts.digits.substr(0, 1), parts.digits.size() > 1 ? "." : "",
                        parts.digits.substr(1), "e", parts.exponent < 0 ? "-" : "+",
                        std::abs(parts.exponent));
  const Decimal decimal = ToDecimal(parts);
  return absl::StrCat(decimal.whole, decimal.fraction.empty() ? "" : ".", decimal.fraction);
}

}  // namespace inlay

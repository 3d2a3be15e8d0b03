#include "gemma_like/grammar/number_grammar.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

std::shared_ptr<CompiledGrammar> NumberGrammar(const NumberConstraints& constraints) {
  return Compiled([&](GrammarBuilder& builder) {
    AnyDigitRules shared;
    const auto number = AddNumber(builder, constraints, shared);
    // A grammar without texts is refused; this one always has one.
    return builder.Choice({number, builder.Text("none")});
  });
}

bool Accepts(const std::shared_ptr<CompiledGrammar>& grammar, const std::string& text) {
  return Read(grammar, text) == Reads::kWhole;
}

class RandomNumbers {
 public:
  double Next() {
    switch (random_() % 8) {
      case 0:
        return Integer(-20, 20);
      case 1:
        return Integer(-100000, 100000);
      case 2:
        return Integer(-100000, 100000) / 100;
      case 3:
        return std::ldexp(Integer(-1 << 30, 1 << 30), Integer(-60, 60));
      case 4:
        return Integer(-9, 9) * std::pow(10, Integer(-30, 40));
      case 5:
        return std::nextafter(Integer(-50, 50), Integer(-1, 1) * 1000);
      case 6: {
        const double special[] = {0, -0.0, 5e-324, -5e-324, 1e-7, 0.000001, 1e21, 1e22, 0.1, 9.5};
        return special[random_() % 10];
      }
      default:
        return (random_() % 2 ? 1 : -1) * std::numeric_limits<double>::max() *
               std::pow(0.5, Integer(0, 2000));
    }
  }
  double Around(double number) {
    if (random_() % 2) return Next();
    if (random_() % 2) return number;
    return std::nextafter(number, random_() % 2 ? 1e300 : -1e300);
  }
  int Integer(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

 private:
  std::mt19937_64 random_{7};
};

// As Python writes it: with an exponent of at least two digits for other sizes than JavaScript.
std::string PythonNumber(double number) {
  const double size = std::abs(number);
  if (size != 0 && (size < 1e-4 || size >= 1e16)) {
    char text[40];
    const auto end = std::to_chars(text, text + 40, number, std::chars_format::scientific);
    return std::string(text, end.ptr);
  }
  const std::string text = JsonNumber(number);
  return absl::StrCat(std::signbit(number) && size == 0 ? "-" : "", text,
                      number == std::round(number) ? ".0" : "");
}

TEST(NumberGrammar, AcceptsWhatIsWithinBounds) {
  RandomNumbers numbers;
  for (int i = 0; i < 1500; ++i) {
    NumberConstraints constraints;
    constraints.least = numbers.Next();
    constraints.most = numbers.Around(constraints.least);
    if (constraints.least > constraints.most) std::swap(constraints.least, constraints.most);
    if (numbers.Integer(0, 3) == 0) constraints.least = std::numeric_limits<double>::lowest();
    const auto grammar = NumberGrammar(constraints);
    for (int j = 0; j < 25; ++j) {
      const double number = numbers.Around(j % 2 ? constraints.least : constraints.most);
      if (!std::isfinite(number)) continue;
      for (const std::string& text : {JsonNumber(number), PythonNumber(number)}) {
        ASSERT_EQ(std::strtod(text.c_str(), nullptr), number);
        EXPECT_EQ(Accepts(grammar, text), number >= constraints.least && number <= constraints.most)
            << text << " in " << constraints.least << " to " << constraints.most;
      }
    }
  }
}

TEST(NumberGrammar, AcceptsNoTextWhoseNumberIsOutside) {
  RandomNumbers numbers;
  for (int i = 0; i < 500; ++i) {
    NumberConstraints constraints;
    constraints.least = numbers.Next();
    constraints.most = numbers.Around(constraints.least);
    if (constraints.least > constraints.most) std::swap(constraints.least, constraints.most);
    const auto grammar = NumberGrammar(constraints);
    for (int j = 0; j < 40; ++j) {
      std::string text = JsonNumber(numbers.Around(constraints.least));
      text.insert(static_cast<size_t>(numbers.Integer(0, static_cast<int>(text.size()))), 1,
                  "0123456789.e-+"[numbers.Integer(0, 13)]);
      const double number = std::strtod(text.c_str(), nullptr);
      if (Accepts(grammar, text)) {
        EXPECT_GE(number, constraints.least) << text;
        EXPECT_LE(number, constraints.most) << text;
      }
    }
  }
}

TEST(NumberGrammar, WholeNumbersHaveNeitherPointNorExponent) {
  RandomNumbers numbers;
  for (int i = 0; i < 700; ++i) {
    NumberConstraints constraints = {numbers.Next(), 0, /*whole=*/true};
    constraints.most = numbers.Around(constraints.least);
    if (constraints.least > constraints.most) std::swap(constraints.least, constraints.most);
    const auto grammar = NumberGrammar(constraints);
    for (int j = 0; j < 25; ++j) {
      const double number = std::round(numbers.Around(constraints.least));
      if (std::abs(number) >= 1e21) continue;
      EXPECT_EQ(Accepts(grammar, JsonNumber(number)),
                number >= constraints.least && number <= constraints.most)
          << number << " in " << constraints.least << " to " << constraints.most;
    }
  }
  const auto any = NumberGrammar({-10, 10, /*whole=*/true});
  for (const char* text : {"1.0", "1e0", "01", "+1", "", "-", "-0"})
    EXPECT_FALSE(Accepts(any, text)) << text;
  EXPECT_TRUE(Accepts(any, "-10"));
}

TEST(NumberGrammar, Multiples) {
  RandomNumbers numbers;
  const std::pair<uint32_t, uint32_t> divisors[] = {{1, 0},  {2, 0},   {3, 0},   {7, 0}, {10, 0},
                                                    {25, 0}, {60, 0},  {1, 1},   {1, 2}, {3, 1},
                                                    {5, 3},  {999, 0}, {1000, 0}};
  for (int i = 0; i < 150; ++i) {
    const auto [divisor, halvings] = divisors[static_cast<size_t>(i) % std::size(divisors)];
    NumberConstraints constraints;
    constraints.divisor = divisor;
    constraints.halvings = halvings;
    constraints.whole = numbers.Integer(0, 3) == 0;
    constraints.least = numbers.Integer(-3000, 100) / 8.0;
    constraints.most = numbers.Integer(100, 30000) / 8.0;
    const auto grammar = NumberGrammar(constraints);
    for (int j = 0; j < 60; ++j) {
      const double number =
          numbers.Integer(0, 1) == 0
              ? numbers.Integer(-100, 800) * std::ldexp(divisor, -static_cast<int>(halvings))
              : numbers.Integer(-4000, 32000) / 8.0;
      const bool is_valid = Satisfies(constraints, number);
      EXPECT_EQ(Accepts(grammar, JsonNumber(number)), is_valid)
          << number << " by " << divisor << " / 2^" << halvings;
      if (number == std::round(number)) {
        EXPECT_EQ(Accepts(grammar, JsonNumber(number) + ".0"), is_valid && !constraints.whole);
      }
    }
  }
}

TEST(NumberGrammar, AnyNumberIsFinite) {
  const auto grammar = NumberGrammar({});
  for (const char* text : {"0", "-0", "-0.0", "1", "-12.50", "1e5", "1E-7", "1.5e+300", "1e-05",
                           "1e16", "1.7976931348623157e+308", "5e-324"})
    EXPECT_TRUE(Accepts(grammar, text)) << text;
  for (const char* text : {"", "-", "+1", "01", ".5", "1.", "1e", "1e+", "1.7976931348623159e+308",
                           "1e309", "0x1", "NaN", "1 "})
    EXPECT_FALSE(Accepts(grammar, text)) << text;
}

// A bound takes some states for each of its digits; those that may be any are there once.
TEST(NumberGrammar, ManyBoundsFitInOneGrammar) {
  RandomNumbers numbers;
  std::vector<NumberConstraints> all;
  const auto grammar = Compiled([&](GrammarBuilder& builder) {
    AnyDigitRules shared;
    std::vector<GrammarBuilder::Expr> options;
    for (int i = 0; i < 1000; ++i) {
      NumberConstraints constraints;
      constraints.least = numbers.Integer(-1000, 1000) + numbers.Integer(1, 1 << 30) / 1e9;
      constraints.most = constraints.least + numbers.Integer(1, 1 << 30) / 1e8;
      all.push_back(constraints);
      options.push_back(builder.Sequence(
          {builder.Text(absl::StrCat(i, ":")), AddNumber(builder, constraints, shared)}));
    }
    return builder.Choice(std::move(options));
  });
  for (size_t i = 0; i < all.size(); i += 101) {
    for (const double number : {all[i].least, all[i].most, std::nextafter(all[i].least, -1e9),
                                std::nextafter(all[i].most, 1e9)}) {
      EXPECT_EQ(Accepts(grammar, absl::StrCat(i, ":", JsonNumber(number))),
                Satisfies(all[i], number));
    }
  }
}

TEST(NumberGrammar, WritesNumbersAsJavaScriptDoes) {
  const std::pair<double, const char*> table[] = {
      {0, "0"},          {-0.0, "0"},           {1, "1"},
      {-1.5, "-1.5"},    {100, "100"},          {1e20, "100000000000000000000"},
      {1e21, "1e+21"},   {1.25e22, "1.25e+22"}, {0.000001, "0.000001"},
      {1e-7, "1e-7"},    {0.1, "0.1"},          {123456.789, "123456.789"},
      {5e-324, "5e-324"}};
  for (const auto& [number, text] : table) EXPECT_EQ(JsonNumber(number), text);
}

}  // namespace
}  // namespace inlay

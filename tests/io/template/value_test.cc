#include "io/template/value.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "io/template/limits.h"

namespace inlay::jinja {
namespace {

Value Of(const std::string& text) { return Value::String(text, Origin::kTemplate); }

TEST(DictRepTest, KeepsOrderAndFindsAmongFewAndMany) {
  for (const int count : {3, 8, 9, 10, 100}) {
    DictRep dict;
    for (int i = 0; i < count; ++i) dict.Set(Of("k" + std::to_string(i)), Value::Int(i));
    dict.Set(Of("k1"), Value::Int(-1));
    dict.Finish(nullptr);
    ASSERT_EQ(dict.entries().size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i);
      EXPECT_EQ(dict.entries()[static_cast<size_t>(i)].first.bytes(), key);
      ASSERT_NE(dict.Find(key), nullptr);
      EXPECT_EQ(dict.Find(key)->int_value(), i == 1 ? -1 : i);
      EXPECT_EQ(dict.Find(Of(key)), dict.Find(key));
    }
    EXPECT_EQ(dict.Find("k"), nullptr);
    EXPECT_EQ(dict.Find(Value::Int(1)), nullptr);
  }
}

TEST(DictRepTest, EqualNumbersAreOneKey) {
  DictRep dict;
  dict.Set(Value::Int(1), Of("int"));
  dict.Set(Value::Float(1.0), Of("float"));
  dict.Set(Value::Bool(true), Of("bool"));
  dict.Set(Value::Float(1.5), Of("other"));
  dict.Set(Of("1"), Of("text"));
  dict.Set(Value::None(), Of("none"));
  EXPECT_EQ(dict.entries().size(), 4u);
  EXPECT_EQ(dict.Find(Value::Int(1))->bytes(), "bool");
  EXPECT_TRUE(dict.entries()[0].first.is(Type::kInt));
}

TEST(KeyTest, TellsTuplesApart) {
  const auto tuple = [](Values items) {
    return Value::Sequence(SequenceKind::kTuple, std::move(items));
  };
  EXPECT_NE(KeyOf(tuple({Of("a"), Of("b")})), KeyOf(tuple({Of("a1:sb")})));
  EXPECT_NE(KeyOf(tuple({Of("ab"), Of("")})), KeyOf(tuple({Of("a"), Of("b")})));
  EXPECT_EQ(KeyOf(tuple({Value::Int(1)})), KeyOf(tuple({Value::Bool(true)})));
  EXPECT_TRUE(IsHashable(tuple({Of("a")})));
  EXPECT_FALSE(IsHashable(tuple({Value::List({})})));
  EXPECT_FALSE(IsHashable(Value::List({})));
}

// A list of them takes memory as a list of anything does.
TEST(MethodTest, CountsWhileItExists) {
  Budget budget{Limits()};
  {
    const Value method = Value::Method(Of("text"), /*function=*/nullptr, &budget);
    EXPECT_GE(budget.bytes(), sizeof(MethodRep));
  }
  EXPECT_EQ(budget.bytes(), 0u);
}

// Few keys are compared without an index, and as it would compare them.
TEST(DictRepTest, FindsTuplesAmongFewAndMany) {
  const auto tuple = [](Values items) {
    return Value::Sequence(SequenceKind::kTuple, std::move(items));
  };
  for (const int others : {0, 20}) {
    DictRep dict;
    for (int i = 0; i < others; ++i) dict.Set(Of("k" + std::to_string(i)), Value::Int(i));
    dict.Set(tuple({Of("a"), Value::Int(1)}), Value::Int(-1));
    dict.Set(tuple({}), Value::Int(-2));
    dict.Finish(nullptr);
    EXPECT_EQ(dict.Find(tuple({Of("a"), Value::Float(1)}))->int_value(), -1);
    EXPECT_EQ(dict.Find(tuple({}))->int_value(), -2);
    EXPECT_EQ(dict.Find(tuple({Of("a")})), nullptr);
    EXPECT_EQ(dict.Find(tuple({Value::Int(1), Of("a")})), nullptr);
    EXPECT_EQ(dict.Find(Value::None()), nullptr);
    EXPECT_EQ(dict.Find("a"), nullptr);
  }
}

TEST(ValueTest, CountsTheOriginsOfItsBytes) {
  Text text;
  for (int i = 0; i < 500; ++i) {
    text.Append("t", Origin::kTemplate);
    text.Append("m", Origin::kMessage);
  }
  Budget budget(Limits{});
  const Value value = Value::String(text, &budget);
  EXPECT_GE(budget.bytes(), 1000 * (1 + sizeof(OriginRun)));
}

TEST(ValueTest, CountsInItsBudgetWhileItExists) {
  Budget budget(Limits{});
  {
    const Value text = Value::String(std::string(1000, 'x'), Origin::kMessage, &budget);
    EXPECT_GE(budget.bytes(), 1000u);
    const Value copy = text;
    const size_t one = budget.bytes();
    const Value list = Value::List({text, copy}, &budget);
    EXPECT_GT(budget.bytes(), one);
    EXPECT_LT(budget.bytes(), 2000u);
  }
  EXPECT_EQ(budget.bytes(), 0u);
}

TEST(ValueTest, IsNotNestedTooDeep) {
  Budget budget(Limits{});
  Value value = Value::List({}, &budget);
  for (int depth = 1; depth < kMaxValueDepth; ++depth) value = Value::List({value}, &budget);
  EXPECT_EQ(value.depth(), kMaxValueDepth);
  EXPECT_TRUE(budget.Step().ok());
  value = Value::List({value}, &budget);
  EXPECT_EQ(budget.Step().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BudgetTest, RefusesWhatIsTooMuch) {
  Budget budget({.max_steps = 10, .max_bytes = 100, .max_depth = 2});
  EXPECT_TRUE(budget.Step(10).ok());
  EXPECT_FALSE(budget.Step().ok());
  EXPECT_TRUE(budget.CheckBytes(100).ok());
  EXPECT_FALSE(budget.CheckBytes(101).ok());
  budget.Take(60);
  EXPECT_FALSE(budget.CheckBytes(41).ok());
  EXPECT_FALSE(budget.CheckBytes(SIZE_MAX).ok());
  budget.Return(60);
  {
    const DepthGuard one(budget), two(budget);
    EXPECT_TRUE(two.status.ok());
    EXPECT_FALSE(DepthGuard(budget).status.ok());
  }
  EXPECT_TRUE(DepthGuard(budget).status.ok());
}

}  // namespace
}  // namespace inlay::jinja

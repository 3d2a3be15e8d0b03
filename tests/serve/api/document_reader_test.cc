// What a server has written, read again: exactly what was written, or an error that names it.
#include "serve/api/document_reader.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace inlay::serve {
namespace {

TEST(DocumentReader, IntegersAreExact) {
  EXPECT_EQ(IntegerOf<int32_t>(Json::parse("-2147483648")), -2147483647 - 1);
  EXPECT_EQ(IntegerOf<int32_t>(Json::parse("2147483647")), 2147483647);
  EXPECT_EQ(IntegerOf<uint64_t>(Json::parse("18446744073709551615")),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(IntegerOf<size_t>(Json(7)), 7u) << "a signed number that is not negative";
  for (const char* other :
       {"-2147483649", "2147483648", "18446744073709551615", "2.0", "true", "null", "\"1\"", "[1]"})
    EXPECT_EQ(IntegerOf<int32_t>(Json::parse(other)), std::nullopt) << other;
  for (const char* other : {"-1", "-9223372036854775808", "18446744073709551616"})
    EXPECT_EQ(IntegerOf<uint64_t>(Json::parse(other)), std::nullopt) << other;
}

TEST(DocumentReader, ReadsMembers) {
  const Json json = Json::parse(
      R"({"n": 3, "f": 1e-3, "t": "x", "b": true, "l": [1, 2], "s": ["a"], "o": {"k": "two"},
          "null": null, "unknown": 1})");
  absl::Status error;
  const DocumentReader reader(json, "", &error);
  EXPECT_EQ(reader.Integer<int>("n"), 3);
  EXPECT_EQ(reader.Float("f"), 1e-3f);
  EXPECT_EQ(reader.Text("t"), "x");
  EXPECT_TRUE(reader.Bool("b"));
  EXPECT_EQ(reader.Integers<int32_t>("l"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(reader.Texts("s"), std::vector<std::string>{"a"});
  EXPECT_EQ(reader.Part("o").Choice("k", {"one", "two"}), 1u);
  EXPECT_TRUE(reader.Any("null").is_null());
  EXPECT_EQ(error, absl::OkStatus());
}

TEST(DocumentReader, TheFirstErrorNamesItsMember) {
  const Json json = Json::parse(R"({"o": {"l": [1, 2.5], "k": "three"}, "n": null, "i": 7})");
  const auto error_of = [&](const auto& read) {
    absl::Status error;
    const DocumentReader reader(json, "", &error);
    read(reader);
    reader.Text("none");  // an error that comes later
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    return std::string(error.message());
  };
  EXPECT_EQ(error_of([](const auto& r) { r.Part("o").template Integers<uint32_t>("l"); }),
            "o.l[1] must be a whole number from 0 to 4294967295, not 2.5");
  EXPECT_EQ(error_of([](const auto& r) {
              r.Part("o").Choice("k", {"one", "two"});
            }),
            "o.k must be one or two, not 'three'");
  EXPECT_EQ(error_of([](const auto& r) { r.Part("n").Text("k"); }),
            "n must be an object, not null");
  EXPECT_EQ(error_of([](const auto& r) { r.Texts("o"); }), "o must be a list, not an object");
  EXPECT_EQ(error_of([](const auto& r) { r.Bool("i"); }), "i must be true or false, not 7");
  EXPECT_EQ(error_of([](const auto&) {}), "none is missing");
  absl::Status error;
  const Json list = Json::array();
  DocumentReader(list, "", &error).Text("a");
  EXPECT_EQ(error.message(), "the document must be an object, not a list");
}

}  // namespace
}  // namespace inlay::serve

// Bounds of numbers, lengths and counts in JSON schemas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/gemma_like/grammar/schema_rows.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// Bounds that a double does not hold are those of readers to whom integers are exact.
TEST(SchemaBounds, BoundsOfIntegersAreExact) {
  ExpectRows({
      {"{'type':'integer','minimum':9223372036854775807,'maximum':9223372036854775807}",
       {"9223372036854775807"},
       {"9223372036854775806", "9223372036854775808", "9223372036854776000"}},
      {"{'type':'integer','minimum':-9223372036854775808,'maximum':18446744073709551615}",
       {"-9223372036854775808", "0", "18446744073709551615"},
       {"-9223372036854775809", "18446744073709551616", "18446744073709552000"}},
      // To readers of doubles the next integer is equal to the bound.
      {"{'type':'integer','exclusiveMinimum':9007199254740992,'maximum':9007199254740995}",
       {"9007199254740994", "9007199254740995"},
       {"9007199254740992", "9007199254740993", "9007199254740996"}},
      {"{'type':'integer','exclusiveMaximum':-9007199254740992,'minimum':-9007199254740995}",
       {"-9007199254740994", "-9007199254740995"},
       {"-9007199254740992", "-9007199254740993", "-9007199254740996"}},
      {"{'type':'integer','minimum':9007199254740993,'allOf':[{'maximum':1e19}]}",
       {"9007199254740993", "10000000000000000000"},
       {"9007199254740992", "10000000000000000001"}},
      {"{'type':'number','minimum':-9223372036854775807,'maximum':9223372036854775807}",
       {"9223372036854775000", "-9223372036854775000", "9.223372036854775e18", "0.5"},
       {"9223372036854775808", "9223372036854776000", "-9223372036854776000",
        "9.223372036854776e18"}},
      {"{'type':'number','exclusiveMinimum':4,'exclusiveMaximum':5}",
       {"4.000000000000001", "4.999999999999999"},
       {"4", "5"}},
      {"{'enum':[9223372036854775806,9223372036854775807],'maximum':9223372036854775806}",
       {"9223372036854775806"},
       {"9223372036854775807"}},
      {"{'type':'integer','format':'int8'}", {"127", "-128"}, {"128", "-129"}},
      {"{'type':'integer','format':'int16'}", {"32767", "-32768"}, {"32768"}},
      {"{'type':'integer','format':'int32'}", {"2147483647"}, {"2147483648"}},
      {"{'type':'integer','format':'int64'}",
       {"9223372036854775807", "-9223372036854775808"},
       {"9223372036854775808", "-9223372036854775809"}},
      {"{'type':'integer','format':'int'}", {"9223372036854775807"}, {"9223372036854775808"}},
      {"{'type':'integer','format':'uint8','minimum':0}", {"0", "255"}, {"-1", "256"}},
      {"{'type':'integer','format':'uint16'}", {"65535"}, {"-1", "65536"}},
      {"{'type':'integer','format':'uint32'}", {"4294967295"}, {"-1", "4294967296"}},
      {"{'type':'integer','format':'uint64'}",
       {"18446744073709551615"},
       {"-1", "18446744073709551616"}},
      {"{'type':'integer','format':'uint'}", {"18446744073709551615"}, {"-1"}},
      {"{'type':'number','format':'double'}", {"1.5"}, {}},
      {"{'type':'number','format':'float'}", {"1.5"}, {}},
  });
}

// Large numbers of characters and items are counted; no grammar has states for each.
TEST(SchemaBounds, CountsHaveNoBound) {
  const std::string many(5000, 'x'), four = many.substr(0, 4000);
  const auto text = [](const std::string& characters) { return "'" + characters + "'"; };
  const auto list = [](int items) {
    std::string list = "[0";
    for (int i = 1; i < items; ++i) list += i % 2 ? ", 0" : ",0";
    return list + "]";
  };
  const std::string whole = text(many), more = text(many + "y"), less = text(four);
  const std::string escaped = text(many.substr(1) + "\\u00e9"), items = list(3000);
  const std::string fewer = list(2999), further = list(3001);
  ExpectRows({
      {"{'type':'string','maxLength':2147483647}", {"''", whole.c_str()}, {}},
      {"{'type':'string','minLength':4001,'maxLength':5000}",
       {whole.c_str(), escaped.c_str()},
       {"''", less.c_str(), more.c_str()}},
      {"{'type':'string','minLength':5001}", {more.c_str()}, {whole.c_str()}},
      {"{'type':'string','pattern':'^x+y?$','maxLength':5000,'minLength':4001}",
       {whole.c_str()},
       {less.c_str(), more.c_str(), escaped.c_str()}},
      {"{'type':'array','items':{'const':0},'maxItems':2147483647}",
       {"[]", "[0]", items.c_str()},
       {"[1]"}},
      {"{'type':'array','items':{'const':0},'minItems':3000,'maxItems':3000}",
       {items.c_str()},
       {"[]", fewer.c_str(), further.c_str()}},
      {"{'type':'array','items':false,'maxItems':5000}", {"[]"}, {"[0]"}},
  });
  std::string strings = "{'properties':{'z':{'type':'array','maxItems':2147483647}";
  for (int i = 0; i < 100; ++i)
    absl::StrAppend(&strings, ",'", i, "':{'type':'string','maxLength':", 65535 - i % 2, "},'s", i,
                    "':{'type':'string','maxLength':", 900, "}");
  EXPECT_EQ(SchemaError(strings + "}}"), "");
}

// The length is counted apart from the pattern of the format.
TEST(SchemaBounds, FormatsWithBoundsOfTheirLength) {
  // As Pydantic writes HttpUrl.
  const std::string path(2000, 'p'), url = "'https://a.b/" + path + "'", longer = url;
  const std::string too_long = "'https://a.b/" + path + std::string(80, 'q') + "'";
  const std::clock_t start = std::clock();  // of this program: others may run beside it
  ExpectRows({
      {"{'type':'string','format':'uri','minLength':1,'maxLength':2083}",
       {"'http://[::1]/a?b#c'", url.c_str()},
       {"''", "'a b'", too_long.c_str()}},
      {"{'type':'string','format':'uri','maxLength':255}", {"'mailto:a'"}, {url.c_str()}},
      {"{'type':'string','format':'hostname','maxLength':100}", {"'a.b'"}, {"'-'"}},
      {"{'type':'string','format':'duration','maxLength':2083}", {"'P1D'"}, {"'P'"}},
      {"{'type':'string','format':'email','maxLength':320}", {"'a@b.c'"}, {"'a'"}},
      {"{'type':'string','format':'ipv4','minLength':15}", {"'255.255.255.255'"}, {"'1.2.3.4'"}},
      {"{'type':'string','pattern':'^(ab)+$','minLength':3,'maxLength':5}",
       {"'abab'"},
       {"'ab'", "'ababab'"}},
  });
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
  EXPECT_THAT(SchemaError("{'type':'string','pattern':'^(ab)+$','minLength':3,'maxLength':3}"),
              HasSubstr("at #: no text matches its pattern"));
}

}  // namespace
}  // namespace inlay

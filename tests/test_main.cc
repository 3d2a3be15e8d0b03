// main() of the programs that hold the tests of many sources. --source=tests/base/utf8_test.cc runs
// those that this source defines, as far as --gtest_filter selects them.
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace {

// "Suite.Test" of every test that is defined in `source`, a path from the repository's root.
std::vector<std::string> TestsOf(absl::string_view source) {
  const std::string end = absl::StrCat("/", source);
  std::vector<std::string> names;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      if (absl::EndsWith(test.file(), end)) {
        names.push_back(absl::StrCat(suite.name(), ".", test.name()));
      }
    }
  }
  return names;
}

// GoogleTest's filter "wanted:...-unwanted:..." with what it wants narrowed to `names`.
std::string Narrowed(absl::string_view filter, std::vector<std::string> names) {
  const std::vector<std::string> parts = absl::StrSplit(filter, absl::MaxSplits('-', 1));
  const std::vector<std::string> wanted = absl::StrSplit(parts[0], ':', absl::SkipEmpty());
  if (!wanted.empty()) {
    std::erase_if(names, [&](const std::string& name) {
      return std::ranges::none_of(wanted, [&](const std::string& pattern) {
        return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
      });
    });
  }
  if (names.empty()) return "-*";
  return absl::StrCat(absl::StrJoin(names, ":"), parts.size() > 1 ? "-" : "",
                      parts.size() > 1 ? parts[1] : "");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view source = argv[i];
    if (!absl::ConsumePrefix(&source, "--source=") || argc > 2) {
      std::fprintf(stderr, "usage: %s [--source=FILE] [--gtest_...]\n", argv[0]);
      return 2;
    }
    const std::vector<std::string> names = TestsOf(source);
    if (names.empty()) {
      std::fprintf(stderr, "%s: no test is defined in %s\n", argv[0], argv[i]);
      return 2;
    }
    GTEST_FLAG_SET(filter, Narrowed(GTEST_FLAG_GET(filter), names));
  }
  return RUN_ALL_TESTS();
}

// That kName and Numbers() tell parts apart: the fingerprints of caches know no more of a part.
#include <gtest/gtest.h>

#include <string_view>
#include <tuple>
#include <vector>

#include "tests/configs/part_list.h"

namespace inlay {
namespace {

struct ToldPart {
  std::string_view name;
  std::vector<int> numbers;

  bool operator==(const ToldPart&) const = default;
};

template <class P>
ToldPart TellPart() {
  const auto numbers = P::Numbers();
  return {P::kName, {numbers.begin(), numbers.end()}};
}

// Those of each kind.
std::vector<std::vector<ToldPart>> AllParts() {
  const auto of_kind = []<class... P>(part_list::Parts<P...>) {
    return std::vector<ToldPart>{TellPart<P>()...};
  };
  return std::apply([&](auto... kind) { return std::vector{of_kind(kind)...}; },
                    part_list::Kinds());
}

TEST(PartNumbersTest, PartsOfAKindThatDifferHaveDifferentNumbers) {
  for (const std::vector<ToldPart>& parts : AllParts()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(parts[i] == parts[j])
            << parts[i].name << ": the parts " << j << " and " << i << " of part_list.h";
      }
    }
  }
}

TEST(PartNumbersTest, KindsHaveDifferentNames) {
  const std::vector<std::vector<ToldPart>> kinds = AllParts();
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (const ToldPart& a : kinds[i]) {
        for (const ToldPart& b : kinds[j]) EXPECT_NE(a.name, b.name);
      }
    }
  }
}

}  // namespace
}  // namespace inlay

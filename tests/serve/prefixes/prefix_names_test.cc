#include "serve/prefixes/prefix_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/store/state_store.h"

namespace inlay::serve {
namespace {

std::vector<int32_t> Tokens(int count) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(i * 7);
  return tokens;
}

TEST(PrefixNamesTest, TellOwnersKindsAndTokensApart) {
  const std::vector<int32_t> tokens = Tokens(20);
  std::vector<int32_t> changed = tokens;
  changed[3] += 1;
  std::set<std::string> states, roots;
  for (const char* fingerprint : {"one", "two"}) {
    for (const char* owner : {"", "alice", "bob"}) {
      const PrefixNames names(fingerprint, owner, 8);
      for (const auto& text : {tokens, changed}) {
        roots.insert(names.Root(text));
        for (const std::string& state : names.States(text, {8, 9, 20})) states.insert(state);
      }
    }
  }
  EXPECT_EQ(roots.size(), 2u * 3 * 2);
  EXPECT_EQ(states.size(), 2u * 3 * 2 * 3);
  for (const std::string& name : states) EXPECT_TRUE(CheckStateKey(name).ok()) << name;
  for (const std::string& name : roots) EXPECT_TRUE(CheckStateKey(name).ok()) << name;
}

// A name depends on the tokens that it stands for, not on what follows or was asked for with it.
TEST(PrefixNamesTest, AreTheSameForTheSameBeginning) {
  const PrefixNames names("fingerprint", "owner", 8);
  const std::vector<int32_t> tokens = Tokens(20), shorter = Tokens(12);
  EXPECT_EQ(names.Root(tokens), names.Root(shorter));
  EXPECT_EQ(names.States(tokens, {9, 10, 12})[2], names.States(shorter, {12})[0]);
  EXPECT_TRUE(names.States(tokens, {}).empty());
}

}  // namespace
}  // namespace inlay::serve

#include "gemma_like/grammar/utf8_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace inlay {
namespace {

bool Accepts(const Utf8Machine& machine, absl::string_view bytes) {
  uint32_t state = machine.start;
  for (const char c : bytes) {
    const auto& edges = machine.edges[state];
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Utf8Machine::Edge& e) {
      return e.bytes.test(static_cast<uint8_t>(c));
    });
    if (edge == edges.end()) return false;
    state = edge->target;
  }
  return !bytes.empty() && state == Utf8Machine::kEnd;
}

TEST(Utf8MachineTest, AcceptsTheCodePointsOfItsRanges) {
  const std::vector<std::vector<CodePointRange>> lists = {
      {{0, 0x10FFFF}},
      {},
      {{'a', 'z'}, {0x7F, 0x80}, {0x7FF, 0x800}, {0xD7FE, 0xE001}, {0xFFFF, 0x10000}},
      {{0xD800, 0xDFFF}},
      {{0x10FFFF, 0x200000}},
      {{0x800, 0xFFF}, {0x1234, 0x1234}, {0x40000, 0x7FFFF}}};
  for (const auto& list : lists) {
    const Utf8Machine machine = MakeUtf8Machine(list);
    for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string bytes;
      AppendUtf8(c, &bytes);
      const bool in = std::any_of(list.begin(), list.end(), [&](const CodePointRange& range) {
        return c >= range.first && c <= range.last;
      });
      ASSERT_EQ(Accepts(machine, bytes), in) << c;
    }
    for (const char* bad : {"\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                            "\xF4\x90\x80\x80", "\x80", "\xFF"}) {
      EXPECT_FALSE(Accepts(machine, bad));
    }
  }
}

TEST(Utf8MachineTest, IsSmallForAllCodePoints) {
  EXPECT_EQ(MakeUtf8Machine({{0, 0x10FFFF}}).edges.size(), 9u);
}

}  // namespace
}  // namespace inlay

#include "tests/io/tokenizer/vocab_data.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

constexpr char kFolder[] = "tests/golden/vocab/";

}  // namespace

std::string ReadFileOrFail(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<TextWithIds> ReadTexts(const std::string& name) {
  const std::string texts = ReadFileOrFail(std::string(kFolder) + "texts.bin");
  const std::string packed = ReadFileOrFail(std::string(kFolder) + "texts-" + name + ".u16");
  size_t at = 0;
  const auto next = [&]() -> int32_t {
    if (at + 2 > packed.size()) return -1;
    const int32_t low = static_cast<uint8_t>(packed[at]);
    const int32_t high = static_cast<uint8_t>(packed[at + 1]);
    at += 2;
    return low | (high << 8);
  };
  std::vector<TextWithIds> out;
  for (const absl::string_view text : absl::StrSplit(texts, '\0')) {
    TextWithIds item;
    item.text = std::string(text);
    const int32_t count = next();
    for (int32_t i = 0; i < count; ++i) item.ids.push_back(next());
    out.push_back(item);
  }
  EXPECT_EQ(at, packed.size());
  return out;
}

std::vector<TextWithIds> ReadInpOut(const std::string& name) {
  const std::string texts = ReadFileOrFail(std::string(kFolder) + name + ".inp");
  const std::string lines = ReadFileOrFail(std::string(kFolder) + name + ".out");
  std::vector<TextWithIds> out;
  for (const absl::string_view text : absl::StrSplit(texts, "\n__ggml_vocab_test__\n")) {
    out.push_back({std::string(text), {}});
  }
  size_t i = 0;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    if (i == out.size()) break;
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      int32_t id = -1;
      EXPECT_TRUE(absl::SimpleAtoi(word, &id)) << word;
      out[i].ids.push_back(id);
    }
    ++i;
  }
  EXPECT_EQ(i, out.size());
  return out;
}

}  // namespace inlay

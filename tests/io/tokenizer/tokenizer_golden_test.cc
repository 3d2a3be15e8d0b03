// Real vocabularies: every text gives the expected ids, and every id sequence its text.
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/io/tokenizer/vocab_data.h"

namespace inlay {
namespace {

using ::testing::ElementsAreArray;

std::unique_ptr<Tokenizer> LoadOrFail(const std::string& path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  // The file is closed on return: a tokenizer must not point into it.
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(*file);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::vector<int32_t> EncodePlain(const Tokenizer& tokenizer, const std::string& text) {
  EncodeOptions options;
  options.add_bos = false;
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(std::vector<int32_t>());
}

class VocabularyTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer_ = LoadOrFail("tests/golden/vocab/" + GetParam() + ".gguf");
    ASSERT_NE(tokenizer_, nullptr);
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      if (tokenizer_->Decode(EncodePlain(*tokenizer_, text)) != text) missing_.insert(byte);
    }
  }

  void ExpectNoMismatch(const std::vector<TextWithIds>& items) {
    int mismatches = 0;
    for (const TextWithIds& item : items) {
      const std::vector<int32_t> ids = EncodePlain(*tokenizer_, item.text);
      if (ids == item.ids) continue;
      if (++mismatches <= 3) {
        EXPECT_THAT(ids, ElementsAreArray(item.ids)) << absl::CHexEscape(item.text);
      }
    }
    EXPECT_EQ(mismatches, 0) << "of " << items.size() << " texts";
  }

  // Where every byte of the text has a token; and never a control token.
  void ExpectRoundTrip(const std::string& text) {
    const std::vector<int32_t> ids = EncodePlain(*tokenizer_, text);
    for (const int32_t id : ids) ASSERT_FALSE(tokenizer_->IsControl(id)) << absl::CHexEscape(text);
    for (const char c : text) {
      if (missing_.contains(static_cast<uint8_t>(c))) return;
    }
    ASSERT_EQ(tokenizer_->Decode(ids), text) << absl::CHexEscape(text);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::set<int> missing_;  // bytes that the vocabulary cannot express
};

TEST_P(VocabularyTest, LacksOnlyBytesThatItsFileLacks) {
  const std::set<int> not_in_utf8 = {0xC0, 0xC1, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9,
                                     0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};
  std::set<int> expected;
  if (GetParam() == "gpt-neox" || GetParam() == "refact") expected = not_in_utf8;
  if (GetParam() == "refact") expected.insert(0xF1);  // starts planes 4 to 7, all unassigned
  EXPECT_EQ(missing_, expected);
  for (const int byte : missing_) {
    const std::string text = std::string("a") + static_cast<char>(byte) + "b";
    EXPECT_EQ(tokenizer_->Decode(EncodePlain(*tokenizer_, text)),
              "a\xEF\xBF\xBD"
              "b");
  }
}

TEST_P(VocabularyTest, TextsGiveTheExpectedIds) {
  const std::vector<TextWithIds> items = ReadTexts(GetParam());
  ASSERT_EQ(items.size(), 3000u);
  ExpectNoMismatch(items);
}

TEST_P(VocabularyTest, InpGivesOut) {
  if (GetParam() == "gpt-neox") GTEST_SKIP() << "has no such files";
  const std::vector<TextWithIds> items = ReadInpOut(GetParam());
  ASSERT_EQ(items.size(), 47u);
  ExpectNoMismatch(items);
}

TEST_P(VocabularyTest, DecodingGivesTheTextBack) {
  for (const TextWithIds& item : ReadTexts(GetParam())) ExpectRoundTrip(item.text);
  // Every code point, alone among others of its neighbourhood.
  for (char32_t block = 0; block < 0x110000; block += 64) {
    std::string text;
    for (char32_t c = block; c < block + 64; ++c) {
      if (c < 0xD800 || c > 0xDFFF) AppendUtf8(c, &text);
    }
    ExpectRoundTrip(text);
  }
}

TEST_P(VocabularyTest, RandomTextAndRandomBytesComeBack) {
  const std::vector<TextWithIds> items = ReadTexts(GetParam());
  std::mt19937 random(20240607);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const size_t size = random() % 40;
    for (size_t i = 0; i < size; ++i) {
      switch (random() % 5) {
        case 0:
          text.push_back(static_cast<char>(random()));
          break;
        case 1:
          text.push_back(static_cast<char>(random() % 128));
          break;
        case 2:
          text += random() % 2 ? " " : "\n";
          break;
        case 3:
          AppendUtf8(0xA0 + random() % 0x3000, &text);
          break;
        default: {
          const std::string& other = items[random() % items.size()].text;
          if (!other.empty()) text += other.substr(random() % other.size(), random() % 12);
        }
      }
    }
    ExpectRoundTrip(text);
  }
}

TEST_P(VocabularyTest, LongRunsTakeNoQuadraticTime) {
  // Quadratic work on 2^18 symbols, at a nanosecond a pair, would take a minute for each of these.
  ExpectRoundTrip(std::string(1 << 18, 'a'));
  ExpectRoundTrip(std::string(1 << 18, ' '));
  ExpectRoundTrip(std::string(1 << 18, '\n'));
  ExpectRoundTrip(std::string(1 << 18, '7'));
  ExpectRoundTrip(std::string(1 << 18, '\xFF'));
  ExpectRoundTrip(std::string(1 << 18, '\0'));
  std::string letters;
  for (int i = 0; i < 1 << 18; ++i) letters.push_back(static_cast<char>('a' + i % 26));
  ExpectRoundTrip(letters);
}

TEST_P(VocabularyTest, ManyThreadsMayUseOneTokenizer) {
  const std::vector<TextWithIds> items = ReadTexts(GetParam());
  std::vector<int> mismatches(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < mismatches.size(); ++t) {
    threads.emplace_back([&, t] {
      for (const TextWithIds& item : items) {
        mismatches[t] += EncodePlain(*tokenizer_, item.text) != item.ids;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mismatches, std::vector<int>(4, 0));
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyTest,
                         ::testing::Values("llama-spm", "gpt-2", "gpt-neox", "refact"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(BardTokenizerTest, GivesTheReferenceIds) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadOrFail("models/bard.gguf");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->size(), 1024u);
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_EQ(tokenizer->eos(), 1);
  EXPECT_EQ(tokenizer->unk(), 3);
  EXPECT_TRUE(tokenizer->adds_bos());
  const auto cases = nlohmann::json::parse(ReadFileOrFail("tests/golden/tokenizer/bard_ids.json"),
                                           nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(cases.is_array());
  ASSERT_GT(cases.size(), 100u);
  for (const auto& item : cases) {
    const std::string text = item[0];
    const std::vector<int32_t> expected = item[1];
    const std::vector<int32_t> ids = EncodePlain(*tokenizer, text);
    EXPECT_THAT(ids, ElementsAreArray(expected)) << text;
    EXPECT_EQ(tokenizer->Decode(ids), text);
    const auto with_bos = tokenizer->Encode(text);
    ASSERT_TRUE(with_bos.ok());
    ASSERT_EQ(with_bos->size(), ids.size() + 1);
    EXPECT_EQ(with_bos->front(), 2);
    EXPECT_EQ(tokenizer->Decode(*with_bos), text);
    std::string streamed;
    for (const int32_t id : ids) streamed += std::string(tokenizer->Piece(id));
    EXPECT_EQ(streamed, text);
  }
}

}  // namespace
}  // namespace inlay

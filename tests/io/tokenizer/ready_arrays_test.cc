// Tokenizers whose arrays lie ready in a packed file: the same ids, and no harm from damage.
#include "io/tokenizer/ready_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf/gguf_writer.h"
#include "io/gguf/tensor_form.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/vocabulary.h"
#include "ops/matmul/packed_matrix.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// Text of these pieces and of random bytes.
std::string RandomText(const std::vector<std::string>& pieces, std::mt19937& random) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    if (random() % 8 == 0) {
      text.push_back(static_cast<char>(random()));
    } else {
      text += pieces[random() % pieces.size()];
    }
  }
  return text;
}

TestVocabulary ByScores() {
  TestVocabulary made = SpmBase();
  made.Add("<turn>", 3);
  made.Add("<tool>", 4);
  float score = -1;
  for (const char* text : {"a", "b", "ab", "abab", "\xE2\x96\x81",
                           "\xE2\x96\x81"
                           "ab",
                           "\xC3\xA4", "a\xC3\xA4", "ba", "aba"}) {
    made.Add(text, 1, score -= 1);
  }
  return made;
}

TestVocabulary ByMerges() {
  TestVocabulary made = ByScores();
  made.model = "gemma4";
  made.scores.reset();
  made.merges = {"a b", "ab ab", "\xE2\x96\x81 ab", "a \xC3\xA4", "b a"};
  return made;
}

TestVocabulary ByBytes() {
  TestVocabulary made = BpeBase("gpt-2");
  made.Add("<tool>", 4);
  for (const char* text : {"ab", "abab", " ab", "ba"}) made.Add(ByteLevel(text), 1);
  made.merges = {"a b", "ab ab", ByteLevel(" ") + " ab", "b a", "x y"};
  return made;
}

class ReadyArraysTest : public ::testing::TestWithParam<TestVocabulary (*)()> {
 protected:
  // A packed file of the case with these arrays; without a tensor for them where there are none.
  std::string PackedBytes(const std::optional<std::string>& arrays) const {
    const std::string bytes = vocabulary_.Bytes();
    const std::vector<uint64_t> aligned = Aligned(bytes);
    const GgufFile file = Must(GgufFile::Parse(
        {reinterpret_cast<const uint8_t*>(aligned.data()), bytes.size()}, "vocabulary"));
    GgufWriter writer(kPackedAlignment);
    for (const GgufEntry& key : file.metadata()) {
      if (key.key() != "general.alignment") writer.SetValue(key.key(), key.value);
    }
    writer.SetUint32(kPackedVersionKey, kPackedFileVersion);
    writer.SetUint32(kPackedLayoutKey, kPackedLayoutVersion);
    if (arrays.has_value()) {
      EXPECT_TRUE(
          writer.AddTensor(kPackedTokenizerTensor, {arrays->size() / 4}, WeightType::kF32).ok());
    }
    EXPECT_TRUE(writer.Open(folder_.Path("packed")).ok());
    if (arrays.has_value()) {
      EXPECT_TRUE(
          writer.AppendData({reinterpret_cast<const uint8_t*>(arrays->data()), arrays->size()})
              .ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
    std::ifstream stream(folder_.Path("packed"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  // The tokenizer of such a file, which is no longer in memory.
  absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& packed) {
    const std::vector<uint64_t> aligned = Aligned(packed);
    const GgufFile file = Must(GgufFile::Parse(
        {reinterpret_cast<const uint8_t*>(aligned.data()), packed.size()}, "packed"));
    EXPECT_TRUE(file.packed());
    EXPECT_TRUE(file.tensors().empty()) << "the tokenizer is no weight";
    EXPECT_EQ(file.FindTensor(kPackedTokenizerTensor), nullptr);
    return LoadTokenizer(file);
  }

  static std::vector<uint64_t> Aligned(const std::string& bytes) {
    std::vector<uint64_t> words((bytes.size() + 7) / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }

  const TestVocabulary vocabulary_ = GetParam()();
  const std::unique_ptr<Tokenizer> tokenizer_ = Must(vocabulary_.Load());
  const std::vector<std::string> pieces_ = {"a",        "b",      "ab",     " ",    "\n", "x",
                                            "\xC3\xA4", "<turn>", "<tool>", "abab", " ab"};
  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ReadyArraysTest, ::testing::Values(&ByScores, &ByMerges, &ByBytes));

TEST_P(ReadyArraysTest, GiveTheSameIdsAndTexts) {
  const std::string arrays = tokenizer_->ReadyArrays();
  const absl::StatusOr<std::unique_ptr<Tokenizer>> loaded = Load(PackedBytes(arrays));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Tokenizer& ready = **loaded;
  EXPECT_EQ(ready.ReadyArrays(), arrays);
  EXPECT_EQ(ready.size(), tokenizer_->size());
  EXPECT_EQ(ready.bos(), tokenizer_->bos());
  EXPECT_EQ(ready.adds_bos(), tokenizer_->adds_bos());
  EXPECT_EQ(ready.ends(), tokenizer_->ends());
  EXPECT_EQ(ready.FindSpecial("<tool>"), tokenizer_->FindSpecial("<tool>"));
  for (int32_t id = 0; id < static_cast<int32_t>(ready.size()); ++id) {
    EXPECT_EQ(ready.Piece(id), tokenizer_->Piece(id));
    EXPECT_EQ(ready.TokenText(id), tokenizer_->TokenText(id));
    EXPECT_EQ(ready.IsControl(id), tokenizer_->IsControl(id));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomText(pieces_, random);
    const EncodeOptions options = {.add_bos = std::nullopt, .parse_special = i % 2 == 0};
    EXPECT_EQ(Must(ready.Encode(text, options)), Must(tokenizer_->Encode(text, options))) << text;
  }
}

TEST_P(ReadyArraysTest, AreMissed) {
  const absl::Status status = Load(PackedBytes(std::nullopt)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("packed: the packed file has no tensor 'inlay.tokenizer'; pack "));
}

// They are searched as if they were ascending.
TEST_P(ReadyArraysTest, EndsThatDoNotAscendAreRefused) {
  const std::string arrays = tokenizer_->ReadyArrays();
  const std::vector<uint64_t> aligned = Aligned(arrays);
  ArrayReader reader({reinterpret_cast<const uint8_t*>(aligned.data()), arrays.size()});
  Vocabulary vocabulary;
  Vocabulary::VisitArrays(vocabulary, reader);
  const auto written = [&] {
    ArrayWriter writer;
    Vocabulary::VisitArrays(vocabulary, writer);
    return writer.Take();
  };
  const std::string rest = arrays.substr(written().size());
  const auto load = [&](std::vector<int32_t> ends) {
    vocabulary.ends = std::move(ends);
    return Load(PackedBytes(written() + rest)).status();
  };
  EXPECT_EQ(load({2, 5}), absl::OkStatus());
  for (const std::vector<int32_t>& ends : {std::vector<int32_t>{5, 2}, {5, 5}})
    EXPECT_THAT(std::string(load(ends).message()), HasSubstr("is damaged; pack "));
}

class ByteArraysTest : public ReadyArraysTest {};

INSTANTIATE_TEST_SUITE_P(Kinds, ByteArraysTest, ::testing::Values(&ByBytes));

// A text with it would lose it.
TEST_P(ByteArraysTest, AByteWithoutATokenOrAReplacementIsRefused) {
  std::string arrays = tokenizer_->ReadyArrays();
  std::vector<int32_t> symbols(256);
  std::iota(symbols.begin(), symbols.end(), 1);  // as BpeBase says
  ArrayWriter writer;
  writer(symbols);
  const std::string written = writer.Take();
  const size_t at = arrays.find(written);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(arrays.find(written, at + 1), std::string::npos);
  symbols['a'] = static_cast<int32_t>(tokenizer_->size());  // no token
  ArrayWriter other;
  other(symbols);
  arrays.replace(at, written.size(), other.Take());
  EXPECT_THAT(std::string(Load(PackedBytes(arrays)).status().message()),
              HasSubstr("is damaged; pack "));
}

// Whatever they hold, nothing outside them is touched: sanitizers look.
TEST_P(ReadyArraysTest, DamageDoesNoHarm) {
  const std::string arrays = tokenizer_->ReadyArrays();
  const std::string packed = PackedBytes(arrays);
  const size_t begin = packed.find(arrays.substr(0, 256), kPackedAlignment / 2);
  ASSERT_NE(begin, std::string::npos);
  std::mt19937 random(2);
  int refused = 0;
  constexpr int kRounds = 1500;
  for (int i = 0; i < kRounds; ++i) {
    std::string damaged = packed;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = begin + random() % arrays.size() / 4 * 4;
      const uint32_t values[] = {0,
                                 1,
                                 0xFFFFFFFF,
                                 0x7FFFFFFF,
                                 static_cast<uint32_t>(random()),
                                 static_cast<uint32_t>(random() % 512)};
      const uint32_t value = values[random() % 6];
      std::memcpy(damaged.data() + at, &value, sizeof(value));
    }
    const absl::StatusOr<std::unique_ptr<Tokenizer>> loaded = Load(damaged);
    if (!loaded.ok()) {
      ++refused;
      EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("is damaged; pack "));
      continue;
    }
    for (int text = 0; text < 3; ++text) {
      const std::vector<int32_t> ids = Must((*loaded)->Encode(
          RandomText(pieces_, random), {.add_bos = false, .parse_special = true}));
      for (const int32_t id : ids) EXPECT_LT(static_cast<size_t>(id), (*loaded)->size());
      (*loaded)->Decode(ids);
    }
  }
  EXPECT_GT(refused, kRounds / 50);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace inlay

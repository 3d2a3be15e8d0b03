// Files against configs: any single key that disagrees is refused by name, a missing one too unless
// its absence means the same, and no file fits two configs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "configs/bard.h"
#include "configs/test_falcon_h1.h"
#include "configs/test_gemma4.h"
#include "configs/test_lfm2.h"
#include "configs/test_nemotron_h.h"
#include "configs/test_qwen35.h"
#include "configs/test_twins.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/load_model.h"
#include "gemma_like/model/metadata_check.h"
#include "gemma_like/registry.h"
#include "gemma_like/strings.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model/metadata_file.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// The visitor that, for each key of a config, keeps a way to write another value.
class WrongValues {
 public:
  struct Key {
    std::function<void(GgufWriter&, absl::string_view)> write_wrong;
    bool may_be_absent = false;
  };

  explicit WrongValues(absl::string_view architecture) : architecture_(architecture) {}

  void Int(std::string_view key, int64_t value, std::optional<int64_t> absent = std::nullopt) {
    Add(key, absent == value, [value](GgufWriter& writer, absl::string_view full) {
      writer.SetUint32(full, static_cast<uint32_t>(value + 1));
    });
  }
  void Float(std::string_view key, double value, std::optional<double> absent = std::nullopt,
             std::optional<double> = std::nullopt) {
    // The next float: the smallest disagreement that a file can hold.
    const float wrong = std::nextafter(static_cast<float>(value), 1e30f);
    Add(key, absent == value,
        [wrong](GgufWriter& writer, absl::string_view full) { writer.SetFloat32(full, wrong); });
  }
  void Flag(std::string_view key, bool value, std::optional<bool> absent = std::nullopt) {
    Add(key, absent == value,
        [value](GgufWriter& writer, absl::string_view full) { writer.SetBool(full, !value); });
  }
  void Text(std::string_view key, std::string_view value,
            std::optional<std::string_view> absent = std::nullopt,
            std::optional<std::string_view> = std::nullopt) {
    Add(key, absent == value,
        [wrong = std::string(value) + "x"](GgufWriter& writer, absl::string_view full) {
          writer.SetString(full, wrong);
        });
  }
  template <size_t n>
  void Ints(std::string_view key, const std::array<int64_t, n>& values) {
    std::vector<int32_t> wrong(values.begin(), values.end());
    // The last one that is not free.
    ++*std::find_if(wrong.rbegin(), wrong.rend(), [](int32_t v) { return v != kAnyValue; });
    Add(key, false,
        [wrong](GgufWriter& writer, absl::string_view full) { writer.SetInt32s(full, wrong); });
  }
  template <size_t n>
  void Flags(std::string_view key, std::array<bool, n> values) {
    values.back() = !values.back();
    Add(key, false,
        [values](GgufWriter& writer, absl::string_view full) { writer.SetBools(full, values); });
  }
  template <size_t n>
  void Sections(std::string_view key, const std::array<int64_t, n>& values) {
    Ints(key, values);
  }
  template <size_t n>
  void Texts(std::string_view key, const std::array<std::string_view, n>& values) {
    std::vector<std::string> wrong(values.begin(), values.end());
    wrong.back() += "x";
    Add(key, false,
        [wrong](GgufWriter& writer, absl::string_view full) { writer.SetStrings(full, wrong); });
  }
  void Period(std::string_view key, int, int period, std::optional<int> absent = std::nullopt) {
    Int(key, period, absent);
  }
  void VocabSize(int least) {
    Add("vocab_size", true, [least](GgufWriter& writer, absl::string_view full) {
      writer.SetUint32(full, static_cast<uint32_t>(least - 1));
    });
  }

  const std::map<std::string, Key>& keys() const { return keys_; }

 private:
  void Add(std::string_view key, bool may_be_absent,
           std::function<void(GgufWriter&, absl::string_view)> write_wrong) {
    const bool is_new = keys_
                            .emplace(absl::StrCat(architecture_, ".", ToAbsl(key)),
                                     Key{std::move(write_wrong), may_be_absent})
                            .second;
    EXPECT_TRUE(is_new) << ToAbsl(key) << " is listed twice";
  }

  std::string architecture_;
  std::map<std::string, Key> keys_;
};

// A copy of a file's metadata without its tensors, with one key left out.
GgufWriter CopyWithout(const GgufFile& file, absl::string_view left_out) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) {
    if (entry.key() != left_out) writer.SetValue(entry.key(), entry.value);
  }
  return writer;
}

// A file that `inlay synth` writes for the config of this name.
const char* SynthFile(const char* config) {
  static auto& paths = *new std::map<std::string, std::string>;
  const auto [path, is_new] =
      paths.try_emplace(config, TempPath(absl::StrCat("metadata_test_", config, ".gguf")));
  if (is_new) {
    const auto entry = FindConfig(absl::string_view(config));
    EXPECT_TRUE(entry.ok()) << entry.status();
    EXPECT_TRUE(WriteSynth((*entry)->synth(), {.type = WeightType::kF32}, 1, path->second).ok());
  }
  return path->second.c_str();
}

// A file of the family, as its converter wrote it; where there is none, a synthetic one.
template <class Config>
const char* FileOf();
template <>
const char* FileOf<Bard>() {
  return "models/bard.gguf";
}
template <>
const char* FileOf<TestGemma2>() {
  return "tests/golden/models/gemma2-tiny-f16.gguf";
}
template <>
const char* FileOf<TestGemma3>() {
  return "tests/golden/models/gemma3-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestGemma4>() {
  return "tests/golden/models/gemma4-dense-tiny-q4_k_m.gguf";
}
template <>
const char* FileOf<TestGemma4E>() {
  return "tests/golden/models/gemma4-e-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestGemma4Moe>() {
  return "tests/golden/models/gemma4-moe-tiny-iq4_xs.gguf";
}
template <>
const char* FileOf<TestGemmaEmbedding>() {
  return SynthFile("test-gemma-embedding");
}
template <>
const char* FileOf<TestGranite>() {
  return SynthFile("test-granite");
}
template <>
const char* FileOf<TestGranite4h>() {
  return "tests/golden/models/granite4h-tiny-q4_k_m.gguf";
}
template <>
const char* FileOf<TestGranite4hMoe>() {
  return "tests/golden/models/granite4h-moe-tiny-q8_0.gguf";
}
template <>
const char* FileOf<TestLfm2>() {
  return "tests/golden/models/lfm2-tiny-q6_k.gguf";
}
template <>
const char* FileOf<TestLfm2Moe>() {
  return "tests/golden/models/lfm2moe-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestQwen35>() {
  return "tests/golden/models/qwen35-tiny-f16.gguf";
}
template <>
const char* FileOf<TestQwen35Moe>() {
  return "tests/golden/models/qwen35moe-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestFalconH1>() {
  return "tests/golden/models/falcon-h1-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestNemotronH>() {
  return "tests/golden/models/nemotron-h-tiny-iq3_s.gguf";
}
template <>
const char* FileOf<TestNemotronHMoe>() {
  return "tests/golden/models/nemotron-h-moe-tiny-f16.gguf";
}
template <>
const char* FileOf<TestNemotronHMoeNoLatent>() {
  return "tests/golden/models/nemotron-h-moe-nolatent-tiny-q4_0.gguf";
}
template <>
const char* FileOf<TestMamba2>() {
  return "tests/golden/models/mamba2-tiny-f16.gguf";
}

template <class Config>
class MetadataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<GgufFile> file = GgufFile::Open(FileOf<Config>());
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
    Config::template Metadata<Config>(wrong_);
  }

  std::optional<GgufFile> file_;
  WrongValues wrong_{ToAbsl(Config::kArchitecture)};
};
using Families =
    ::testing::Types<Bard, TestGemma2, TestGemma3, TestGemma4, TestGemma4E, TestGemma4Moe,
                     TestGemmaEmbedding, TestGranite, TestGranite4h, TestGranite4hMoe, TestLfm2,
                     TestLfm2Moe, TestQwen35, TestQwen35Moe, TestFalconH1, TestNemotronH,
                     TestNemotronHMoe, TestNemotronHMoeNoLatent, TestMamba2>;
TYPED_TEST_SUITE(MetadataTest, Families);

TYPED_TEST(MetadataTest, TheFileAsItIsFits) {
  GgufWriter writer = CopyWithout(*this->file_, "");
  const auto entry = FindFor(writer);
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ((*entry)->name, ToAbsl(TypeParam::kName));
}

TYPED_TEST(MetadataTest, AnyKeyThatDiffersIsRefusedByName) {
  EXPECT_GE(this->wrong_.keys().size(), 8u);
  for (const auto& [key, how] : this->wrong_.keys()) {
    SCOPED_TRACE(key);
    GgufWriter writer = CopyWithout(*this->file_, key);
    how.write_wrong(writer, key);
    const absl::StatusOr<LoadedModel> model = LoadModel(WriteFile(writer));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    // The key, and that nothing else differs from the nearest config.
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(absl::StrCat(": ", key, " is ")));
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr(absl::StrCat("config ", ToAbsl(TypeParam::kName), " has ")));
    EXPECT_THAT(std::string(model.status().message()), Not(HasSubstr("more differ")));
  }
}

TYPED_TEST(MetadataTest, AValueOfAnotherTypeIsRefusedByName) {
  for (const auto& [key, how] : this->wrong_.keys()) {
    SCOPED_TRACE(key);
    GgufWriter writer = CopyWithout(*this->file_, key);
    writer.SetInt32s(key, {});
    const auto entry = FindFor(writer);
    ASSERT_FALSE(entry.ok());
    EXPECT_THAT(std::string(entry.status().message()), HasSubstr(absl::StrCat(key, " is ")));
  }
}

TYPED_TEST(MetadataTest, AMissingKeyIsRefusedByNameUnlessItMeansTheSame) {
  int refused = 0;
  for (const auto& [key, how] : this->wrong_.keys()) {
    SCOPED_TRACE(key);
    GgufWriter writer = CopyWithout(*this->file_, key);
    const auto entry = FindFor(writer);
    EXPECT_EQ(entry.ok(), how.may_be_absent);
    if (how.may_be_absent) continue;
    ++refused;
    EXPECT_THAT(std::string(entry.status().message()),
                HasSubstr(absl::StrCat(key, " is missing but config ")));
  }
  EXPECT_GE(refused, 5);
}

// Fine-tunes add tokens and converters pad: there may be more rows than the config has, not fewer.
TEST(MetadataVocabTest, MoreRowsAreFine) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(FileOf<TestGemma3>());
  ASSERT_TRUE(file.ok()) << file.status();
  for (uint64_t rows : {511, 512, 513}) {
    GgufWriter writer = CopyWithout(*file, "gemma3.vocab_size");
    ASSERT_TRUE(writer.AddTensor("token_embd.weight", {1, rows}, WeightType::kF32).ok());
    const std::string path = TempPath("metadata_test.gguf");
    ASSERT_TRUE(writer.Open(path).ok());
    ASSERT_TRUE(writer.AppendData(std::vector<uint8_t>(4 * rows)).ok());
    ASSERT_TRUE(writer.Finish().ok());
    const absl::StatusOr<GgufFile> changed = GgufFile::Open(path);
    ASSERT_TRUE(changed.ok()) << changed.status();
    const auto entry = FindConfig(*changed);
    EXPECT_EQ(entry.ok(), rows >= 512) << entry.status();
    if (entry.ok()) continue;
    EXPECT_THAT(std::string(entry.status().message()),
                HasSubstr("gemma3.vocab_size is 511 (the rows of token_embd.weight) but config "
                          "test-gemma3 has at least 512"));
  }
}

// What a config says of itself fits that config and no other.
TEST(MetadataOfAllConfigsTest, FitsThatConfigOnly) {
  ASSERT_FALSE(ConfigEntries().empty());
  for (const ConfigEntry& config : ConfigEntries()) {
    const SynthModel model = config.synth();
    const absl::StatusOr<GgufFile> file = GgufFile::Open(WriteFile(*model.metadata));
    ASSERT_TRUE(file.ok()) << file.status();
    std::vector<std::string> fitting;
    for (const ConfigEntry& entry : ConfigEntries()) {
      if (entry.architecture == config.architecture && entry.compare(*file).differences.empty()) {
        fitting.push_back(std::string(entry.name));
      }
    }
    EXPECT_THAT(fitting, ::testing::ElementsAre(std::string(config.name)));
  }
}

}  // namespace
}  // namespace inlay

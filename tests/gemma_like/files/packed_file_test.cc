// Packed files: the same bits as from the files they were made from, and wrong ones refused.
#include "gemma_like/files/packed_file.h"
#include "cache/model_identity.h"
#include "gemma_like/files/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/files/weights_hash.h"
#include "gemma_like/registry.h"
#include "gemma_like/sessions/session.h"
#include "io/gguf/gguf_writer.h"
#include "io/gguf/tensor_form.h"
#include "io/store/state_store_memory.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Where the test's files are; they go at the end.
class PackedFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  std::string Pack(const std::string& path) {
    const absl::StatusOr<GgufFile> file = GgufFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    Team team(2);
    const std::string packed = Path("packed");
    uint64_t last = 0, of = 0;
    const absl::Status status =
        WritePacked(*file, team, packed, Replace::kSameKind, [&](uint64_t done, uint64_t total) {
          EXPECT_GE(done, last);
          last = done;
          of = total;
        });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(last, of) << "its progress ends with the work";
    EXPECT_GT(of, 0u);
    return packed;
  }

  // A copy of a packed file in which `change` may set the keys; those it sets are left out.
  std::string Rewrite(const std::string& path, const std::function<void(GgufWriter&)>& change,
                      const std::vector<std::string>& left_out) {
    const GgufFile file = *GgufFile::Open(path);
    GgufWriter writer(file.alignment());
    for (const GgufEntry& entry : file.metadata()) {
      const std::string key(entry.key());
      if (key != "general.alignment" &&
          std::find(left_out.begin(), left_out.end(), key) == left_out.end()) {
        writer.SetValue(key, entry.value);
      }
    }
    change(writer);
    for (const GgufTensor& tensor : file.tensors()) {
      EXPECT_TRUE(writer
                      .AddTensor(tensor.name, absl::MakeConstSpan(tensor.dims).first(tensor.n_dims),
                                 tensor.type, tensor.packed)
                      .ok());
    }
    const absl::Span<const uint8_t> tables = file.tokenizer_tables();
    EXPECT_TRUE(
        writer.AddTensor(kPackedTokenizerTensor, {tables.size() / 4}, WeightType::kF32).ok());
    const std::string to = Path("rewritten");
    EXPECT_TRUE(writer.Open(to).ok());
    for (const GgufTensor& tensor : file.tensors())
      EXPECT_TRUE(writer.AppendData(tensor.data).ok());
    EXPECT_TRUE(writer.AppendData(tables).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return to;
  }

  const TempFolder folder_;
};

void ExpectTheSame(const std::string& path, const std::string& packed_path) {
  const absl::StatusOr<LoadedModel> model = LoadModel(path);
  const absl::StatusOr<LoadedModel> packed = LoadModel(packed_path);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_TRUE(packed->file->packed());
  EXPECT_EQ(Must(packed->engine->Identity()).weights_hash,
            Must(model->engine->Identity()).weights_hash);
  EXPECT_EQ(packed->engine->info().work.layers.bytes, model->engine->info().work.layers.bytes);
  EXPECT_EQ(packed->tokenizer->size(), model->tokenizer->size());
  const std::vector<float> expected = LogitsOf(*model);
  const std::vector<float> got = LogitsOf(*packed);
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

// All families, and all formats between them.
class PackedFamiliesTest : public PackedFileTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(PackedFamiliesTest, HaveTheSameBits) {
  const auto entry = FindConfig(absl::string_view(GetParam()));
  ASSERT_TRUE(entry.ok()) << entry.status();
  for (const char* type :
       {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "Q4_K_M", "Q6_K", "Q2_K", "IQ4_NL"}) {
    SCOPED_TRACE(type);
    const std::string path = Path("model.gguf");
    ASSERT_TRUE(WriteSynth((*entry)->synth(), *Quantization::Parse(type), 3, path).ok());
    ExpectTheSame(path, Pack(path));
  }
}

INSTANTIATE_TEST_SUITE_P(Twins, PackedFamiliesTest,
                         ::testing::Values("test-gemma2", "test-gemma3", "test-gemma4-e",
                                           "test-gemma4-moe", "test-granite4h",
                                           "test-granite4h-moe", "test-mamba2",
                                           "test-nemotron-h-moe"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class PackedBardTest : public PackedFileTest {
 protected:
  void SetUp() override { packed_ = Pack(kBardPath); }

  // The file at `path` is refused, with a sentence that has these parts.
  static void ExpectRefused(const std::string& path, const std::string& part) {
    const absl::Status status = LoadModel(path).status();
    ASSERT_FALSE(status.ok()) << part;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr(part)));
  }

  std::string packed_;
};

TEST_F(PackedBardTest, HasTheSameBits) { ExpectTheSame(kBardPath, packed_); }

TEST_F(PackedBardTest, IsMappedAndNotCopied) {
  const GgufFile file = *GgufFile::Open(packed_);
  EXPECT_EQ(file.alignment(), 4096u);
  for (const GgufTensor& tensor : file.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) % 4096, 0u) << tensor.name;
  const GgufTensor* output = file.FindTensor("output.weight");
  ASSERT_NE(output, nullptr);
  EXPECT_TRUE(output->packed);
  Team team(1);
  const PackedMatrix view =
      PackedMatrix::View(output->data.data(), output->type, output->dims[1], output->dims[0]);
  EXPECT_EQ(view.tile(0), output->data.data());
  EXPECT_EQ(view.bytes(), output->data.size());
}

TEST_F(PackedBardTest, PackedAgainIsTheSameFile) {
  const auto bytes = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string first = bytes(packed_);
  // A file that is read is never written over.
  std::filesystem::rename(packed_, Path("from"));
  EXPECT_TRUE(bytes(Pack(Path("from"))) == first);
}

TEST_F(PackedBardTest, GoesOnWithTheConversationsOfItsOrigin) {
  const LoadedModel model = LoadBard();
  const absl::StatusOr<LoadedModel> packed = LoadModel(packed_);
  ASSERT_TRUE(packed.ok()) << packed.status();
  const std::vector<int32_t> tokens = *model.tokenizer->Encode("To be, or not to be, that is");
  const auto all = absl::MakeConstSpan(tokens);
  auto cache = Must(model.engine->CreateCache({}));
  Append(*model.engine, *cache, all.first(5));
  MemoryStore store;
  {
    auto writer = store.Put("talk");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(SaveSession(*model.engine, *cache, **writer).ok());
  }
  auto loaded = Must(packed->engine->CreateCache({}));
  auto reader = store.Get("talk");
  ASSERT_TRUE(reader.ok());
  const absl::Status status = LoadSession(*packed->engine, **reader, *loaded);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Append(*packed->engine, *loaded, all.subspan(5)) ==
              Append(*model.engine, *cache, all.subspan(5)));
}

TEST_F(PackedBardTest, CannotBeQuantized) {
  const absl::Status status =
      Requantize(*GgufFile::Open(packed_), *Quantization::Parse("Q8_0"), Path("q8"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a packed file"));
}

TEST_F(PackedBardTest, OtherFingerprintsAreRefused) {
  const std::string version(kPackedVersionKey), layout(kPackedLayoutKey);
  const std::string config(kPackedConfigKey), weights(kPackedWeightsKey);
  const std::string fingerprint(kPackedFingerprintKey);
  // What Rewrite changes is all that is wrong.
  EXPECT_TRUE(LoadModel(Rewrite(packed_, [](GgufWriter&) {}, {})).ok());
  ExpectRefused(
      Rewrite(packed_, [&](GgufWriter& w) { w.SetUint32(version, kPackedFileVersion + 1); },
              {version}),
      absl::StrCat("another version of inlay (", kPackedFileVersion + 1, ".",
                   kPackedLayoutVersion));
  ExpectRefused(Rewrite(packed_, [&](GgufWriter& w) { w.SetUint32(layout, 77); }, {layout}),
                absl::StrCat("another version of inlay (", kPackedFileVersion, ".77"));
  ExpectRefused(Rewrite(packed_, [](GgufWriter&) {}, {layout}),
                "key 'inlay.packed.layout' is missing");
  ExpectRefused(Rewrite(packed_, [&](GgufWriter& w) { w.SetString(config, "brad"); }, {config}),
                "packed for config 'brad', not for 'bard'");
  ExpectRefused(Rewrite(packed_, [&](GgufWriter& w) { w.SetUint64(weights, 1); }, {weights}),
                "the fingerprint of the packed file is ");
  ExpectRefused(
      Rewrite(packed_, [&](GgufWriter& w) { w.SetUint64(fingerprint, 0x1234); }, {fingerprint}),
      "but it says 1234");
  ExpectRefused(Rewrite(packed_, [](GgufWriter&) {}, {fingerprint}),
                "key 'inlay.packed.fingerprint' is missing");
}

// Whatever is wrong in what comes before the weights, nothing is read beyond the file.
TEST_F(PackedBardTest, DamageDoesNoHarm) {
  const GgufFile file = *GgufFile::Open(packed_);
  const uint8_t* const begin = file.tensors()[0].data.data();
  size_t header = 0;
  std::string bytes;
  {
    std::ifstream stream(packed_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
    header = bytes.size();
    for (const GgufTensor& tensor : file.tensors())
      header -= (tensor.data.size() + 4095) / 4096 * 4096;
    header -= (file.tokenizer_tables().size() + 4095) / 4096 * 4096;
  }
  ASSERT_EQ(std::memcmp(begin, bytes.data() + header, 4096), 0);
  std::mt19937 random(1);
  size_t refused = 0;
  const std::string path = Path("damaged");
  const auto load = [&](const std::string& damaged) {
    // In memory of their size, for sanitizers; then the way a program does it.
    void* copy = std::aligned_alloc(64, (damaged.size() + 63) / 64 * 64);
    std::memcpy(copy, damaged.data(), damaged.size());
    const auto parsed =
        GgufFile::Parse({static_cast<const uint8_t*>(copy), damaged.size()}, "damaged");
    refused += parsed.ok() ? 0 : 1;
    if (parsed.ok()) FindConfig(*parsed).IgnoreError();
    std::free(copy);
  };
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    damaged[random() % header] ^= static_cast<char>(1 << random() % 8);
    load(damaged);
  }
  for (int i = 0; i < 20; ++i) load(bytes.substr(0, random() % bytes.size()));
  EXPECT_GE(refused, 20u);
  // Every tensor description is covered by the fingerprint.
  std::string damaged = bytes;
  const size_t name = damaged.find("blk.0.ssm_in.weight");
  ASSERT_NE(name, std::string::npos);
  damaged[name + 4] = '9';
  std::ofstream(path, std::ios::binary) << damaged;
  EXPECT_FALSE(LoadModel(path).ok());
}

}  // namespace
}  // namespace inlay

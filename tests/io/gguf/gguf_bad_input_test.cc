// Files that are wrong in one way each: all are refused with a sentence, none does harm.
#include <cctype>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/gguf/gguf.h"
#include "io/gguf/tensor_form.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "ops/matmul/packed_matrix.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8_0 = 8;

struct BadFile {
  std::string name;
  std::string bytes;
  std::string message;  // part of what must be said
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

GgufBytes Start(uint64_t tensors, uint64_t keys) { return GgufBytes().Header(tensors, keys); }

// A file with these tensors and 64 bytes of data.
template <typename Fill>
std::string WithTensors(uint64_t count, const Fill& fill) {
  GgufBytes bytes = Start(count, 0);
  fill(bytes);
  return bytes.PadTo(32).Zeros(64).bytes();
}

std::string WithAlignment(uint32_t alignment) {
  return Start(1, 1)
      .Key("general.alignment", GgufType::kUint32)
      .U32(alignment)
      .Tensor("a", {4}, kF32, 0)
      .PadTo(32)
      .Zeros(64)
      .bytes();
}

std::vector<BadFile> BadHeaders() {
  const uint64_t huge = uint64_t{1} << 60;
  return {
      {"no magic", "", "ends after 0 bytes"},
      {"half a magic", "GG", "ends after 2 bytes"},
      {"another magic", "GGML\3\0\0\0", "instead of 'GGUF'"},
      {"reversed magic", "FUGG", "reversed byte order"},
      {"version 0", GgufBytes().Header(0, 0, 0).bytes(), "version 0 is unknown"},
      {"version 1", GgufBytes().Header(0, 0, 1).bytes(), "version 1 is outdated"},
      {"version 4", GgufBytes().Header(0, 0, 4).bytes(), "version 4 is unknown"},
      {"version 2^32 - 1", GgufBytes().Header(0, 0, UINT32_MAX).bytes(), "is unknown"},
      {"big-endian", GgufBytes().Header(0, 0, 0x03000000).bytes(), "big-endian"},
      {"no counts", GgufBytes().Raw("GGUF").U32(3).bytes(), "the number of tensors"},
      {"huge tensor count", Start(huge, 0).Zeros(64).bytes(), "claims 1152921504606846976 tensors"},
      {"largest tensor count", Start(UINT64_MAX, 0).bytes(), "can describe at most 0"},
      {"huge key count", Start(0, huge).Zeros(64).bytes(), "metadata keys"},
      {"largest key count", Start(0, UINT64_MAX).bytes(), "can hold at most 0"},
      {"one key too many", Start(0, 2).Key("a", GgufType::kUint32).U32(1).Zeros(20).bytes(),
       "metadata key 1 is empty"},
      {"one tensor too many", WithTensors(2, [](GgufBytes& b) { b.Tensor("a", {4}, kF32, 0); }),
       "the name of tensor 1 is empty"},
  };
}

std::vector<BadFile> BadMetadata() {
  const auto with = [](absl::string_view key, GgufType type) { return Start(0, 1).Key(key, type); };
  const auto array = [](GgufType type, uint64_t count) {
    return Start(0, 1).Array("a", type, count);
  };
  return {
      {"empty key", with("", GgufType::kUint32).U32(1).Zeros(8).bytes(), "key 0 is empty"},
      {"key with NUL", with(absl::string_view("a\0b", 3), GgufType::kUint32).U32(1).bytes(),
       "contains a NUL"},
      {"key not UTF-8", with("a\xFF", GgufType::kUint32).U32(1).bytes(), "is not UTF-8"},
      {"key with a surrogate", with("a\xED\xA0\x80", GgufType::kUint32).U32(1).bytes(),
       "is not UTF-8"},
      {"key overlong", with("a\xC0\x80", GgufType::kUint32).U32(1).bytes(), "is not UTF-8"},
      {"key of 65536 bytes", with(std::string(65536, 'k'), GgufType::kUint32).U32(1).bytes(),
       "65536 bytes long, more than 65535"},
      {"key of 2^60 bytes", Start(0, 1).U64(uint64_t{1} << 60).Zeros(32).bytes(), "inside"},
      {"key of 2^64 - 1 bytes", Start(0, 1).U64(UINT64_MAX).Zeros(32).bytes(), "inside"},
      {"the same key twice",
       Start(0, 2)
           .Key("a", GgufType::kUint8)
           .Put<uint8_t>(1)
           .Key("a", GgufType::kUint8)
           .U32(1)
           .bytes(),
       "key 'a' is there twice"},
      {"unknown type 13", with("a", static_cast<GgufType>(13)).U64(0).bytes(), "unknown type 13"},
      {"unknown type 2^32 - 1", with("a", static_cast<GgufType>(UINT32_MAX)).U64(0).bytes(),
       "unknown type 4294967295"},
      {"value cut off", with("aa", GgufType::kUint64).U32(0).bytes(), "the value of key 'aa'"},
      {"bool 2", with("a", GgufType::kBool).Put<uint8_t>(2).bytes(), "byte 2 for a bool"},
      {"bool 255 in an array", array(GgufType::kBool, 2).Raw("\1\xFF").bytes(), "byte 255"},
      {"string of 2^60", with("a", GgufType::kString).U64(uint64_t{1} << 60).Zeros(16).bytes(),
       "needs 1152921504606846976 bytes"},
      {"string of 2^64 - 1", with("a", GgufType::kString).U64(UINT64_MAX).Zeros(16).bytes(),
       "the value of key 'a'"},
      {"array of arrays", array(GgufType::kArray, 1).U32(4).U64(1).U32(7).bytes(), "holds arrays"},
      {"array of an unknown type", array(static_cast<GgufType>(77), 1).Zeros(8).bytes(),
       "elements of the unknown type 77"},
      {"array of 2^61 uint64, 2^64 bytes",
       array(GgufType::kUint64, uint64_t{1} << 61).Zeros(64).bytes(), "can hold at most 8"},
      {"array of 2^64 - 1 bytes", array(GgufType::kUint8, UINT64_MAX).Zeros(64).bytes(),
       "can hold at most 64"},
      {"array one element too long", array(GgufType::kUint32, 3).Zeros(8).bytes(),
       "claims 3 elements of uint32"},
      {"array of 2^60 strings", array(GgufType::kString, uint64_t{1} << 60).Zeros(64).bytes(),
       "claims 1152921504606846976 strings"},
      {"string in an array past the end", array(GgufType::kString, 1).U64(9).Zeros(8).bytes(),
       "the array of key 'a'"},
      {"alignment 0", WithAlignment(0), "power of two from 8 to 65536"},
      {"alignment 3", WithAlignment(3), "'general.alignment' is 3"},
      {"alignment 4", WithAlignment(4), "power of two from 8 to 65536"},
      {"alignment 2^31", WithAlignment(uint32_t{1} << 31), "power of two from 8 to 65536"},
      {"alignment as uint64",
       Start(0, 1).Key("general.alignment", GgufType::kUint64).U64(32).bytes(),
       "'general.alignment' has type uint64"},
      {"alignment as string",
       Start(0, 1).Key("general.alignment", GgufType::kString).Text("32").bytes(),
       "'general.alignment' has type string"},
  };
}

std::vector<BadFile> BadTensors() {
  const auto one = [](absl::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                      uint64_t offset) {
    return WithTensors(1, [&](GgufBytes& b) { b.Tensor(name, dims, type, offset); });
  };
  const uint64_t two32 = uint64_t{1} << 32;
  return {
      {"empty name", one("", {4}, kF32, 0), "name of tensor 0 is empty"},
      {"name of 65 bytes", one(std::string(65, 'n'), {4}, kF32, 0), "more than 64"},
      {"name with NUL", one(absl::string_view("a\0", 2), {4}, kF32, 0), "contains a NUL"},
      {"name not UTF-8", one("\xC3(", {4}, kF32, 0), "is not UTF-8"},
      {"name of 2^60", WithTensors(1, [](GgufBytes& b) { b.U64(uint64_t{1} << 60); }), "inside"},
      {"the same name twice",
       WithTensors(2, [](GgufBytes& b) { b.Tensor("a", {4}, kF32, 0).Tensor("a", {4}, kF32, 32); }),
       "tensor 'a' is there twice"},
      {"0 dimensions", one("a", {}, kF32, 0), "has 0 dimensions, outside 1 to 4"},
      {"5 dimensions", one("a", {1, 1, 1, 1, 1}, kF32, 0), "has 5 dimensions"},
      {"2^32 - 1 dimensions",
       WithTensors(1, [](GgufBytes& b) { b.Text("a").U32(UINT32_MAX).U64(1); }),
       "has 4294967295 dimensions"},
      {"dimension 0", one("a", {4, 0}, kF32, 0), "has length 0 in dimension 1"},
      {"first dimension 0", one("a", {0}, kF32, 0), "has length 0 in dimension 0"},
      {"product 2^64", one("a", {two32, two32}, kF32, 0), "beyond 2^64"},
      {"product 2^66 of four", one("a", {two32, two32, 2, 2}, kF32, 0), "beyond 2^64"},
      {"largest dimensions", one("a", {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, kF32, 0),
       "beyond 2^64"},
      {"2^62 floats, 2^64 bytes", one("a", {uint64_t{1} << 62}, kF32, 0), "beyond 2^64"},
      {"2^61 floats, 2^63 bytes", one("a", {uint64_t{1} << 61}, kF32, 0),
       "need at least 9223372036854775872"},
      {"elements beyond 2^64 in fewer bytes", one("a", {two32 * 32, two32 / 32, 1, 1}, kQ8_0, 0),
       "beyond 2^64"},
      {"type 29, of others", one("a", {256}, 29, 0),
       "tensor 'a' has type 29 (IQ1_M), which is not a weight type that can be read; download "
       "another quantization of the model, such as Q4_K_M"},
      {"type 31, withdrawn", one("a", {32}, 31, 0), "tensor 'a' has type 31 (Q4_0_4_4), which is"},
      {"type 2^32 - 1", one("a", {32}, UINT32_MAX, 0), "has type 4294967295, which is"},
      {"row of half a block", one("a", {16}, kQ8_0, 0), "not a multiple of 32"},
      {"row of one and a half blocks", one("a", {48}, kQ8_0, 0), "rows of 48 elements"},
      {"row of half a superblock", one("a", {128}, 12, 0), "not a multiple of 256"},
      {"offset not aligned", one("a", {4}, kF32, 4), "not a multiple of the alignment 32"},
      {"offset past the end", one("a", {4}, kF32, 96),
       "it has 128 bytes, but its tensors need at least 176"},
      {"offset at the end", one("a", {4}, kF32, 64), "need at least 144"},
      {"offset 2^63", one("a", {4}, kF32, uint64_t{1} << 63), "need at least 9223372036854775888"},
      {"offset plus size wraps around", one("a", {4}, kF32, UINT64_MAX - 31), "beyond 2^64 bytes"},
      {"data past the end", one("a", {32}, kF32, 0), "need at least 192"},
      {"no data at all", Start(1, 0).Tensor("a", {4}, kF32, 0).bytes(),
       "is truncated: it has 57 bytes"},
      {"file ends in the padding", Start(1, 0).Tensor("aa", {4}, kF32, 0).Zeros(1).bytes(),
       "is truncated: it has 59 bytes"},
      {"the same data twice",
       WithTensors(2,
                   [](GgufBytes& b) { b.Tensor("a", {4}, kF32, 32).Tensor("b", {4}, kF32, 32); }),
       "inside that of tensor"},
      {"overlapping data",
       WithTensors(2,
                   [](GgufBytes& b) { b.Tensor("a", {4}, kF32, 32).Tensor("b", {12}, kF32, 0); }),
       "tensor 'b' ends at offset 48, inside that of tensor 'a' at 32"},
  };
}

// A packed file of this tensor, whose data start at a multiple of 64, and 64 bytes.
std::string WithPacked(uint32_t version, uint32_t layout, std::initializer_list<uint64_t> dims,
                       uint32_t type, uint64_t offset = 0) {
  return Start(1, 3)
      .Key("general.alignment", GgufType::kUint32)
      .U32(64)
      .Key(kPackedVersionKey, GgufType::kUint32)
      .U32(version)
      .Key(kPackedLayoutKey, GgufType::kUint32)
      .U32(layout)
      .Tensor("a", dims, type, offset)
      .PadTo(64)
      .Zeros(64)
      .bytes();
}

std::vector<BadFile> BadPacked() {
  const uint32_t q8 = TensorFormId({WeightType::kQ8_0, true});
  const uint32_t f32 = TensorFormId({WeightType::kF32, true});
  const auto packed = [](std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset = 0) {
    return WithPacked(kPackedFileVersion, kPackedLayoutVersion, dims, type, offset);
  };
  const uint64_t two40 = uint64_t{1} << 40;
  return {
      {"packed in a file that is not",
       WithTensors(1,
                   [&](GgufBytes& b) {
                     b.Tensor("a", {32, 16}, q8, 0);
                   }),
       "which is not a weight type that can be read"},
      {"another version", WithPacked(kPackedFileVersion + 1, kPackedLayoutVersion, {1, 16}, f32),
       "packed by another version of inlay"},
      {"another layout", WithPacked(kPackedFileVersion, kPackedLayoutVersion + 1, {1, 16}, f32),
       "pack its GGUF file again"},
      {"no layout",
       Start(0, 1).Key(kPackedVersionKey, GgufType::kUint32).U32(kPackedFileVersion).bytes(),
       "'inlay.packed.layout' is missing"},
      {"a format of another type", packed({32, 16}, (f32 & ~0xFFFFu) | kQ8_0),
       "which is not a weight type that can be read"},
      {"an unknown format", packed({32, 16}, 0xFFFF0000u | kQ8_0),
       "which is not a weight type that can be read"},
      {"an unknown type", packed({32, 16}, (q8 & ~0xFFFFu) | 0xFFFFu),
       "which is not a weight type that can be read"},
      {"a tile beyond the end", packed({32, 1}, q8), "is truncated"},
      {"two tiles beyond the end", packed({1, 17}, f32), "is truncated"},
      {"a tile for each expert", packed({1, 1, 3}, f32), "is truncated"},
      {"rows of half a block", packed({16, 16}, q8), "not a multiple of 32"},
      {"rows that a tile cannot have", packed({2 * two40}, f32), "beyond 2^64"},
      {"the most rows", packed({4, UINT64_MAX}, f32), "beyond 2^64"},
      {"elements beyond 2^64", packed({two40, two40 * 16}, f32), "beyond 2^64"},
      {"not aligned", packed({1, 16}, f32, 32), "not a multiple of the alignment 64"},
  };
}

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsRefusedWithASentence) {
  const ParsedBytes parsed = ParseCopy(GetParam().bytes);
  ASSERT_FALSE(parsed.file.ok()) << GetParam().name;
  const std::string message(parsed.file.status().message());
  EXPECT_THAT(message, HasSubstr(GetParam().message)) << GetParam().name;
  EXPECT_EQ(message.rfind("test.gguf: ", 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 400u) << message;
}

std::string NameOf(const ::testing::TestParamInfo<BadFile>& info) {
  std::string name;
  for (const char c : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      name.push_back(c);
    } else if (!name.empty() && name.back() != '_') {
      name.push_back('_');
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Header, BadFileTest, ::testing::ValuesIn(BadHeaders()), NameOf);
INSTANTIATE_TEST_SUITE_P(Metadata, BadFileTest, ::testing::ValuesIn(BadMetadata()), NameOf);
INSTANTIATE_TEST_SUITE_P(Packed, BadFileTest, ::testing::ValuesIn(BadPacked()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tensor, BadFileTest, ::testing::ValuesIn(BadTensors()), NameOf);

// Reads whatever there is to read.
void UseEverything(const GgufFile& file) {
  size_t sum = 0;
  for (const GgufEntry& entry : file.metadata()) {
    sum += entry.value.ToString(1000).size();
    if (file.GetUint(entry.key()).ok()) ++sum;
    if (file.GetInts(entry.key()).ok()) ++sum;
    if (file.GetFloats(entry.key()).ok()) ++sum;
    if (file.GetStrings(entry.key()).ok()) ++sum;
  }
  for (const GgufTensor& tensor : file.tensors()) {
    for (const uint8_t byte : tensor.data) sum += byte;
    sum += tensor.ShapeString().size() + tensor.num_elements();
  }
  if (LoadTokenizer(file).ok()) ++sum;
  EXPECT_GT(sum + 1, 0u);
}

TEST(TruncatedFileTest, IsRefusedAtEveryByte) {
  const std::string whole = SmallFile();
  ASSERT_TRUE(ParseCopy(whole).file.ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const ParsedBytes parsed = ParseCopy(absl::string_view(whole).substr(0, size));
    ASSERT_FALSE(parsed.file.ok()) << size;
  }
}

TEST(DamagedFileTest, DoesNoHarm) {
  const std::string whole = SmallFile();
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string damaged = whole;
    for (uint32_t i = 0; i <= random() % 4; ++i) {
      char& byte = damaged[random() % damaged.size()];
      byte = random() % 2 ? static_cast<char>(random())
                          : static_cast<char>(byte ^ (1 << random() % 8));
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    const ParsedBytes parsed = ParseCopy(damaged);
    if (!parsed.file.ok()) continue;
    ++accepted;
    UseEverything(*parsed.file);
  }
  EXPECT_GT(accepted, 1000);  // else this tests nothing beyond the parser
}

// A copy starts where the heap says; 8 bytes are enough for a file, but not for tiles.
TEST(MisalignedBytesTest, AreRefusedForTiles) {
  const std::string file = WithPacked(kPackedFileVersion, kPackedLayoutVersion, {1, 16},
                                      TensorFormId({WeightType::kF32, true}));
  std::vector<uint8_t> memory(file.size() + 128);
  const size_t aligned = 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  for (const size_t offset : {0, 8}) {
    uint8_t* copy = memory.data() + aligned + offset;
    std::memcpy(copy, file.data(), file.size());
    const auto parsed = GgufFile::Parse({copy, file.size()}, "test.gguf");
    EXPECT_EQ(parsed.ok(), offset == 0) << parsed.status();
    if (!parsed.ok()) {
      EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("no multiple of 64 bytes"));
    }
  }
}

TEST(MisalignedBytesTest, AreRefused) {
  const std::string whole = SmallFile();
  std::vector<uint64_t> buffer(whole.size() / 8 + 2);
  uint8_t* at = reinterpret_cast<uint8_t*>(buffer.data()) + 1;
  std::memcpy(at, whole.data(), whole.size());
  EXPECT_THAT(std::string(GgufFile::Parse({at, whole.size()}, "x").status().message()),
              HasSubstr("not a multiple of 8"));
}

}  // namespace
}  // namespace inlay

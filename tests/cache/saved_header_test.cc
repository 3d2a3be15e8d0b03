// Headers of saved conversations: every version, every field, and what keeps a cache from going on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/xxh64.h"
#include "cache/serialize.h"
#include "tests/cache/put_bytes.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr uint64_t kLength = 123456789;

const ModelIdentity& Model() {
  static const auto& model = *new ModelIdentity{0x1122334455667788, 17, "AVX3_SPR"};
  return model;
}

CacheIdentity Mine() {
  return {.config_name = "tiny-bard",
          .kv_type = KvType::kQ8,
          .fingerprint = 0xABCDEF0123456789,
          .model = Model()};
}

// What a header of Mine() and kLength is read as.
SavedHeader Saved() {
  return {.version = kSavedVersion,
          .config_name = "tiny-bard",
          .kv_type = KvType::kQ8,
          .fingerprint = 0xABCDEF0123456789,
          .length = kLength,
          .model = Model()};
}

void PutName(Bytes& bytes, std::string name, size_t size) {
  name.resize(size, '\0');
  bytes.insert(bytes.end(), name.begin(), name.end());
}

// The header of Mine() and kLength as a program of this version writes it; see docs/cache.md.
Bytes HeaderOfVersion(uint32_t version) {
  Bytes bytes;
  PutName(bytes, "inlaykv\n", 8);
  Put<uint32_t>(bytes, version);
  Put<uint32_t>(bytes, 3);  // q8
  Put<uint64_t>(bytes, 0xABCDEF0123456789);
  Put<uint64_t>(bytes, 0x1122334455667788);
  Put<uint64_t>(bytes, kLength);
  PutName(bytes, "tiny-bard", 48);
  if (version >= 3) {
    Put<uint32_t>(bytes, 17);
    PutName(bytes, "AVX3_SPR", 20);
  }
  Put<uint64_t>(bytes, Xxh64Of(bytes.data(), bytes.size()));
  return bytes;
}

absl::StatusOr<SavedHeader> Read(absl::Span<const uint8_t> bytes) {
  MemorySource source(bytes);
  SectionReader reader(source);
  absl::StatusOr<SavedHeader> header = ReadHeader(reader);
  EXPECT_TRUE(!header.ok() || reader.remaining() == 0);
  return header;
}

Bytes Written(const CacheIdentity& identity) {
  Bytes bytes;
  MemorySink sink(bytes);
  SectionWriter writer(sink);
  EXPECT_TRUE(WriteHeader(identity, kLength, writer).ok());
  return bytes;
}

void ExpectError(const absl::StatusOr<SavedHeader>& header, Code code, const std::string& text) {
  EXPECT_EQ(header.status().code(), code) << header.status();
  EXPECT_THAT(std::string(header.status().message()), HasSubstr(text));
}

void ExpectEqual(const SavedHeader& read, const SavedHeader& expected) {
  EXPECT_EQ(read.version, expected.version);
  EXPECT_EQ(read.config_name, expected.config_name);
  EXPECT_EQ(read.kv_type, expected.kv_type);
  EXPECT_EQ(read.fingerprint, expected.fingerprint);
  EXPECT_EQ(read.length, expected.length);
  EXPECT_EQ(read.model.weights_hash, expected.model.weights_hash);
  EXPECT_EQ(read.model.numerics_version, expected.model.numerics_version);
  EXPECT_EQ(read.model.instruction_set, expected.model.instruction_set);
}

TEST(SavedHeaderTest, IsWrittenFieldByFieldAndReadBack) {
  const Bytes bytes = Written(Mine());
  EXPECT_EQ(bytes.size(), kSavedHeaderBytes);
  EXPECT_EQ(bytes, HeaderOfVersion(3));
  const absl::StatusOr<SavedHeader> header = Read(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  ExpectEqual(*header, Saved());
  EXPECT_EQ(Difference(Mine(), *header), "");
}

TEST(SavedHeaderTest, EveryTypeOfRowsHasItsNumber) {
  for (uint32_t number = 0; number < 4; ++number) {
    CacheIdentity mine = Mine();
    mine.kv_type = static_cast<KvType>(number);
    const Bytes bytes = Written(mine);
    EXPECT_EQ(bytes[12], number);  // after the magic and the version
    const absl::StatusOr<SavedHeader> header = Read(bytes);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->kv_type, mine.kv_type);
  }
  EXPECT_EQ(KvTypeName(KvType::kF32), "f32");
  EXPECT_EQ(KvTypeName(KvType::kF16), "f16");
  EXPECT_EQ(KvTypeName(KvType::kBF16), "bf16");
  EXPECT_EQ(KvTypeName(KvType::kQ8), "q8");
}

// These have neither the version of the numerics nor the instruction set.
TEST(SavedHeaderTest, OldVersionsAreReadButTheirRowsAreOfNoUse) {
  for (uint32_t version : {1, 2}) {
    const absl::StatusOr<SavedHeader> header = Read(HeaderOfVersion(version));
    ASSERT_TRUE(header.ok()) << header.status();
    SavedHeader expected = Saved();
    expected.version = version;
    expected.model.numerics_version = 0;
    expected.model.instruction_set = "";
    ExpectEqual(*header, expected);
    EXPECT_EQ(Difference(Mine(), *header),
              absl::StrCat("it has version ", version, " of the format, not ", kSavedVersion));
  }
}

TEST(SavedHeaderTest, UnknownVersionsAreRefused) {
  for (uint32_t version : {0u, kSavedVersion + 1, 0xFFFFFFFFu}) {
    ExpectError(Read(HeaderOfVersion(version)), Code::kInvalidArgument,
                absl::StrCat("the saved conversation has version ", version,
                             " of the format; this program reads those up to ", kSavedVersion));
  }
}

TEST(SavedHeaderTest, SomethingElseIsToldByItsFirstBytes) {
  for (size_t i = 0; i < 8; ++i) {
    Bytes bytes = HeaderOfVersion(3);
    bytes[i] = '?';
    ExpectError(Read(bytes), Code::kInvalidArgument, "this is no saved conversation: it begins");
  }
  const std::string gguf = "GGUF\x03\x01";
  Bytes bytes(gguf.begin(), gguf.end());
  bytes.resize(100);
  ExpectError(Read(bytes), Code::kInvalidArgument,
              "it begins with 'GGUF\\x03\\x01\\x00\\x00', not 'inlaykv\\n'");
}

TEST(SavedHeaderTest, EveryTruncationIsFound) {
  for (uint32_t version : {1, 2, 3}) {
    const Bytes bytes = HeaderOfVersion(version);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ExpectError(Read(absl::MakeConstSpan(bytes).first(size)), Code::kDataLoss,
                  "the saved conversation's header cannot be read: ");
    }
  }
}

TEST(SavedHeaderTest, EveryChangedBitIsFound) {
  const Bytes bytes = HeaderOfVersion(3);
  for (size_t at = 12; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = bytes;
      changed[at] ^= static_cast<uint8_t>(1 << bit);
      ExpectError(Read(changed), Code::kDataLoss,
                  "the saved conversation's header is damaged: the checksum is ");
    }
  }
  // With the number of another version the checksum is looked for elsewhere.
  for (uint8_t version : {1, 2}) {
    Bytes changed = bytes;
    changed[8] = version;
    ExpectError(Read(changed), Code::kDataLoss, "header is damaged");
  }
}

TEST(SavedHeaderTest, NamesThatAreLongerThanTheirFieldAreCutAndStillFit) {
  const std::string name = std::string(kSavedNameBytes - 1, 'n') + "Nxyz";
  const std::string target = std::string(kSavedTargetBytes - 1, 't') + "Txyz";
  for (size_t longer : {0, 1, 4}) {  // at first they just fill their fields, without a zero
    const ModelIdentity model{5, 6, target.substr(0, kSavedTargetBytes + longer)};
    const std::string mine_name = name.substr(0, kSavedNameBytes + longer);
    const CacheIdentity mine{.config_name = mine_name, .fingerprint = 7, .model = model};
    const absl::StatusOr<SavedHeader> header = Read(Written(mine));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->config_name, name.substr(0, kSavedNameBytes));
    EXPECT_EQ(header->model.instruction_set, target.substr(0, kSavedTargetBytes));
    EXPECT_EQ(header->model.numerics_version, 6u) << "which lies after the name";
    EXPECT_EQ(Difference(mine, *header), "");
    // The last byte that is kept tells them apart.
    const ModelIdentity other{5, 6, target.substr(0, kSavedTargetBytes - 1) + "Z"};
    EXPECT_EQ(Difference({.config_name = mine_name, .fingerprint = 7, .model = other}, *header),
              absl::StrCat("it was computed on ", target.substr(0, kSavedTargetBytes), ", not ",
                           other.instruction_set));
    const std::string shorter = name.substr(0, kSavedNameBytes - 1);
    EXPECT_EQ(Difference({.config_name = shorter, .fingerprint = 7, .model = model}, *header),
              absl::StrCat("it is of config ", name.substr(0, kSavedNameBytes), ", not ", shorter));
  }
}

TEST(SavedHeaderTest, ALongNameDoesNotReachIntoTheNextFields) {
  const std::string name(kSavedNameBytes + 15, 'n');
  const ModelIdentity model{5, 6, "S"};
  const absl::StatusOr<SavedHeader> header = Read(Written({.config_name = name, .model = model}));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->model.numerics_version, 6u);
  EXPECT_EQ(header->model.instruction_set, "S");
}

TEST(SavedHeaderTest, ADifferenceNamesTheFieldAndBothValues) {
  // In the order in which they are looked at: where several differ, the first is named.
  const std::vector<std::pair<void (*)(SavedHeader&), std::string>> changes = {
      {[](SavedHeader& h) { h.model.instruction_set = "AVX2\n"; },
       "it was computed on AVX2\\n, not AVX3_SPR"},
      {[](SavedHeader& h) { h.model.numerics_version = 16; },
       "it was computed with version 16 of the numerics, not 17"},
      {[](SavedHeader& h) { h.model.weights_hash = 1; },
       "it is of weights with the hash 0000000000000001, not 1122334455667788"},
      {[](SavedHeader& h) { h.fingerprint = 2; },
       "its layout has the fingerprint 0000000000000002, not abcdef0123456789: it is of another "
       "number "
       "of ranks, or of another program"},
      {[](SavedHeader& h) { h.kv_type = KvType::kBF16; }, "its rows are bf16, not q8"},
      {[](SavedHeader& h) { h.version = 2; }, "it has version 2 of the format, not 3"},
      {[](SavedHeader& h) { h.config_name = "tiny\tbird"; },
       "it is of config tiny\\tbird, not tiny-bard"},
  };
  SavedHeader all = Saved();
  EXPECT_EQ(Difference(Mine(), all), "");
  for (const auto& [change, text] : changes) {
    SavedHeader one = Saved();
    change(one);
    EXPECT_EQ(Difference(Mine(), one), text);
    change(all);
    EXPECT_EQ(Difference(Mine(), all), text);
  }
  // The length keeps nobody from going on.
  SavedHeader longer = Saved();
  longer.length = 1;
  EXPECT_EQ(Difference(Mine(), longer), "");
}

}  // namespace
}  // namespace inlay

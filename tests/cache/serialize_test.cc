// Sections of saved conversations; saved_header_test.cc is about their headers.
#include "cache/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/xxh64.h"
#include "tests/cache/put_bytes.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

void ExpectError(const absl::Status& status, Code code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// A section of a layer: its number, the size of its rows, and the rows.
struct Layer {
  int index;
  Bytes rows;
};

Bytes Written(const std::vector<Layer>& layers) {
  Bytes bytes;
  MemorySink sink(bytes);
  SectionWriter writer(sink);
  for (const Layer& layer : layers) {
    EXPECT_TRUE(writer.AppendUint(static_cast<uint64_t>(layer.index)).ok());
    EXPECT_TRUE(writer.AppendUint(layer.rows.size()).ok());
    EXPECT_TRUE(writer.Append(layer.rows.data(), layer.rows.size()).ok());
    EXPECT_TRUE(writer.EndSection().ok());
  }
  return bytes;
}

absl::Status ReadBack(ByteSource&& source, const std::vector<Layer>& layers) {
  SectionReader reader(source);
  for (const Layer& layer : layers) {
    Bytes rows(layer.rows.size());
    if (absl::Status status = reader.BeginLayer(layer.index); !status.ok()) return status;
    if (absl::Status status = reader.ReadSize(rows.size()); !status.ok()) return status;
    if (absl::Status status = reader.Read(rows.data(), rows.size()); !status.ok()) return status;
    if (absl::Status status = reader.EndSection(); !status.ok()) return status;
    EXPECT_EQ(rows, layer.rows);
  }
  EXPECT_EQ(reader.remaining(), 0u);
  return absl::OkStatus();
}

const std::vector<Layer>& Layers() {
  static const auto& layers =
      *new std::vector<Layer>{{0, {1, 2, 3}}, {1, {}}, {2, Bytes(40, 7)}, {3, {1, 2, 3}}};
  return layers;
}

// The bytes of Layers()[i], with number, size and checksum.
size_t SectionBytes(size_t i) { return Layers()[i].rows.size() + 3 * sizeof(uint64_t); }

TEST(SectionTest, EachChecksumIsSeededWithTheOneBefore) {
  Bytes expected;
  uint64_t checksum = 0;
  for (const Layer& layer : Layers()) {
    Bytes section;
    Put<uint64_t>(section, static_cast<uint64_t>(layer.index));
    Put<uint64_t>(section, layer.rows.size());
    section.insert(section.end(), layer.rows.begin(), layer.rows.end());
    checksum = Xxh64Of(section.data(), section.size(), checksum);
    Put<uint64_t>(section, checksum);
    expected.insert(expected.end(), section.begin(), section.end());
  }
  EXPECT_EQ(Written(Layers()), expected);
  EXPECT_TRUE(ReadBack(MemorySource(expected), Layers()).ok());
}

TEST(SectionTest, RowsOfAnySizeAreReadBack) {
  // A reader goes through long rows in pieces of 128 KiB.
  for (size_t size : {0, 1, 131071, 131072, 131073, 300000}) {
    Layer layer{5, Bytes(size)};
    for (size_t i = 0; i < size; ++i) layer.rows[i] = static_cast<uint8_t>(i * 31 >> 3);
    EXPECT_TRUE(ReadBack(MemorySource(Written({layer})), {layer}).ok()) << size;
  }
}

TEST(SectionTest, EveryChangedBitIsFoundInItsSection) {
  const Bytes bytes = Written(Layers());
  size_t at = 0;
  for (size_t i = 0; i < Layers().size(); ++i) {
    for (const size_t end = at + SectionBytes(i); at < end; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        Bytes changed = bytes;
        changed[at] ^= static_cast<uint8_t>(1 << bit);
        ExpectError(ReadBack(MemorySource(changed), Layers()), Code::kDataLoss,
                    absl::StrCat("the saved conversation's layer ", i, " is damaged: "));
      }
    }
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(SectionTest, EveryTruncationIsFoundInItsSection) {
  const Bytes bytes = Written(Layers());
  size_t at = 0;
  for (size_t i = 0; i < Layers().size(); ++i) {
    for (const size_t end = at + SectionBytes(i); at < end; ++at) {
      ExpectError(ReadBack(MemorySource(absl::MakeConstSpan(bytes).first(at)), Layers()),
                  Code::kDataLoss, absl::StrCat("the saved conversation's layer ", i, " "));
    }
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(SectionTest, TheNumberOfALayerIsChecked) {
  ExpectError(ReadBack(MemorySource(Written({{2, {}}})), {{3, {}}}), Code::kDataLoss,
              "layer 3 is damaged: the number of its section is 2");
}

TEST(SectionTest, TheSizeOfRowsIsCheckedBeforeTheyAreRead) {
  ExpectError(ReadBack(MemorySource(Written({{0, Bytes(9)}})), {{0, Bytes(10)}}), Code::kDataLoss,
              "layer 0 is damaged: it has 9 bytes, not 10");
  Bytes size;
  Put<uint64_t>(size, 10);
  size.resize(size.size() + 9);
  MemorySource source(size);
  SectionReader reader(source);
  reader.BeginSection("state");
  ExpectError(reader.ReadSize(10), Code::kDataLoss,
              "the saved conversation's state has 10 bytes, but only 9 are left");
}

TEST(SectionTest, SectionsOfDifferentSavesDoNotGoTogether) {
  const Layer first{0, {1}}, other{0, {2}}, second{1, {3, 4}};
  const Bytes bytes = Written({first, second});
  const Bytes others = Written({other, second});
  const size_t cut = 1 + 3 * sizeof(uint64_t);
  Bytes mixed(bytes.begin(), bytes.begin() + cut);
  mixed.insert(mixed.end(), others.begin() + cut, others.end());
  ExpectError(ReadBack(MemorySource(mixed), {first, second}), Code::kDataLoss,
              "layer 1 is damaged: the checksum is ");
}

TEST(SectionTest, SectionsInAnotherOrderAreRefused) {
  // They differ in nothing but their place: neither a number nor a size gives them away.
  const Bytes a(32, 1), b(32, 2);
  Bytes bytes;
  MemorySink sink(bytes);
  SectionWriter writer(sink);
  for (const Bytes& section : {a, b}) {
    ASSERT_TRUE(writer.Append(section.data(), section.size()).ok());
    ASSERT_TRUE(writer.EndSection().ok());
  }
  const auto half = bytes.begin() + static_cast<ptrdiff_t>(bytes.size() / 2);
  Bytes swapped(half, bytes.end());
  swapped.insert(swapped.end(), bytes.begin(), half);
  MemorySource source(swapped);
  SectionReader reader(source);
  reader.BeginSection("first part");
  Bytes read(32);
  ASSERT_TRUE(reader.Read(read.data(), read.size()).ok());
  // The message has both checksums: of b alone, and of b after a.
  const uint64_t computed = Xxh64Of(b.data(), b.size());
  const uint64_t stored = Xxh64Of(b.data(), b.size(), Xxh64Of(a.data(), a.size()));
  ExpectError(reader.EndSection(), Code::kDataLoss,
              absl::StrCat("the saved conversation's first part is damaged: the checksum is ",
                           absl::Hex(computed, absl::kZeroPad16), ", not ",
                           absl::Hex(stored, absl::kZeroPad16)));
}

class BrokenSink final : public ByteSink {
 public:
  absl::Status Append(absl::Span<const uint8_t>) override {
    return absl::UnavailableError("the disk is gone");
  }
};

class BrokenSource final : public ByteSource {
 public:
  absl::Status Read(absl::Span<uint8_t>) override { return absl::UnavailableError("it is gone"); }
  uint64_t remaining() const override { return 1000; }
};

TEST(SectionTest, ErrorsOfTheSinkAndTheSourceComeThrough) {
  BrokenSink sink;
  SectionWriter writer(sink);
  const absl::Status gone = absl::UnavailableError("the disk is gone");
  EXPECT_EQ(writer.AppendUint(1), gone);
  EXPECT_EQ(writer.EndSection(), gone);
  ExpectError(ReadBack(BrokenSource(), Layers()), Code::kUnavailable,
              "the saved conversation's layer 0 cannot be read: it is gone");
}

}  // namespace
}  // namespace inlay

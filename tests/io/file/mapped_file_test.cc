// Files: mapping, and writing GGUF.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file/mapped_file.h"
#include "io/file/mapping_guard.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/io/file/folder_test.h"
#include "tests/io/file/resident_bytes.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileTest : public FolderTest<> {};

// Reads every byte.
uint64_t Sum(absl::Span<const uint8_t> bytes) {
  uint64_t sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

std::string Complaint(const MappedFile& file) {
  return std::string(file.CheckWhole("the file").message());
}

timespec TimeOfModification(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mtim;
}

// The file system's clock may stand still between two writes.
void SetTimeOfModification(const std::string& path, const timespec& time) {
  const timespec times[2] = {time, time};
  EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// Whoever looked after such faults before still does for those that are not ours.
// Before the next test, which leaves the guard in this process.
TEST_F(FileTest, GuardsWithoutTakingFaultsFromOthers) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::ofstream(Path("x")) << std::string(page, '\1');
  const int fd = open(Path("x").c_str(), O_RDONLY);
  const void* const foreign = mmap(nullptr, page, PROT_READ, MAP_PRIVATE, fd, 0);
  ASSERT_NE(foreign, MAP_FAILED);
  ASSERT_EQ(truncate(Path("x").c_str(), 0), 0);
  for (const bool with_info : {false, true}) {
    const auto guard_after_another = [&] {
      struct sigaction action = {};
      if (with_info) {
        action.sa_flags = SA_SIGINFO;
        action.sa_sigaction = [](int, siginfo_t* info, void*) { _exit(info->si_addr ? 7 : 8); };
      } else {
        action.sa_handler = [](int) { _exit(6); };
      }
      sigaction(SIGBUS, &action, nullptr);
      GuardMappedFiles();
      _exit(static_cast<int>(Sum({static_cast<const uint8_t*>(foreign), 1})));
    };
    EXPECT_EXIT(guard_after_another(), ::testing::ExitedWithCode(with_info ? 7 : 6), "");
  }
  close(fd);
}

// A child process for what must die: in this one the guard, once installed, stays.
TEST_F(FileTest, ShrinksWhileMapped) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::ofstream(Path("x")) << std::string(5 * page, '\1');
  auto file = MappedFile::Open(Path("x"));
  auto other = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok() && other.ok());
  const timespec before = TimeOfModification(Path("x"));
  EXPECT_EQ(Complaint(*file), "");
  ASSERT_EQ(truncate(Path("x").c_str(), static_cast<off_t>(2 * page)), 0);
  EXPECT_THAT(Complaint(*file), HasSubstr("has become shorter than the "));
  EXPECT_EXIT(_exit(static_cast<int>(Sum(file->bytes()))), ::testing::KilledBySignal(SIGBUS), "");

  GuardMappedFiles();
  EXPECT_EQ(Sum(file->bytes()), 2 * page);
  // Making the file what it was does not make what was read right.
  std::ofstream(Path("x")) << std::string(5 * page, '\1');
  SetTimeOfModification(Path("x"), before);
  EXPECT_EQ(Complaint(*file), "the file could not be read");
  EXPECT_EQ(Sum(file->bytes().subspan(2 * page)), 0u);
  EXPECT_EQ(Complaint(*other), "");
  EXPECT_EQ(Sum(other->bytes()), 5 * page);

  // Faults that are not ours stay what they were, also where a guarded file was before.
  const auto* const address = file->bytes().data();
  MappedFile gone = *std::move(file);
  gone = MappedFile();
  const int fd = open(Path("x").c_str(), O_RDONLY);
  void* const foreign =
      mmap(const_cast<uint8_t*>(address), 5 * page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  ASSERT_NE(foreign, MAP_FAILED);
  ASSERT_EQ(truncate(Path("x").c_str(), 0), 0);
  EXPECT_EXIT(_exit(static_cast<int>(Sum({address, 1}))), ::testing::KilledBySignal(SIGBUS), "");
  munmap(foreign, 5 * page);
  close(fd);

  // A file that takes the place of one that was cut is whole.
  std::ofstream(Path("y")) << "whole";
  const auto next = MappedFile::Open(Path("y"));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(Complaint(*next), "");
}

TEST_F(FileTest, IsModifiedInPlaceWhileMapped) {
  std::ofstream(Path("x")) << "hello";
  timespec time = TimeOfModification(Path("x"));
  absl::StatusOr<MappedFile> file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  std::ofstream(Path("x")) << "jelly";  // of the same size
  ++time.tv_sec;
  SetTimeOfModification(Path("x"), time);
  EXPECT_TRUE(absl::IsDataLoss(file->CheckWhole("x")));
  EXPECT_EQ(Complaint(*file), "the file has changed since it was opened");
  MappedFile moved = *std::move(file);
  EXPECT_EQ(Complaint(moved), "the file has changed since it was opened");
  absl::StatusOr<MappedFile> again = MappedFile::Open(Path("x"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(Complaint(*again), "");
  moved = *std::move(again);
  EXPECT_EQ(Complaint(moved), "");
}

TEST_F(FileTest, TellsWhyItCouldNotBeRead) {
  std::ofstream(Path("x")) << std::string(100, '\1');
  const int descriptor = dup(STDERR_FILENO);
  close(descriptor);  // so that it is the next one
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  const int unreadable = open(Path("x").c_str(), O_WRONLY);
  ASSERT_EQ(dup2(unreadable, descriptor), descriptor);
  close(unreadable);
  std::vector<uint8_t> read(80, 7);
  file->Read(file->bytes().first(80), read.data());
  EXPECT_EQ(Sum(read), 0u);
  EXPECT_EQ(Complaint(*file), "the file could not be read: Bad file descriptor");
}

TEST_F(FileTest, MapsAFile) {
  std::ofstream(Path("x")) << "hello";
  absl::StatusOr<MappedFile> file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok()) << file.status();
  const uint8_t* const address = file->bytes().data();
  MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_THAT(moved.bytes(), ElementsAre('h', 'e', 'l', 'l', 'o'));
  MappedFile other;
  EXPECT_TRUE(other.bytes().empty());
  other = std::move(moved);
  EXPECT_EQ(other.bytes().size(), 5u);
}

TEST_F(FileTest, ReadsBytesWithoutMappingThem) {
  std::string contents(size_t{4} << 20, '\0');
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * i >> 7);
  std::ofstream(Path("x")) << contents;
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  for (const size_t begin : {size_t{0}, size_t{4095}, size_t{1} << 21, contents.size() - 3000}) {
    std::string read(3000, 'x');
    file->Read(file->bytes().subspan(begin, read.size()), reinterpret_cast<uint8_t*>(read.data()));
    EXPECT_EQ(read, contents.substr(begin, read.size())) << begin;
  }
  EXPECT_EQ(ResidentBytes(file->bytes().data()), 0u);
  EXPECT_GT(Sum(file->bytes()), 0u);
  EXPECT_GE(ResidentBytes(file->bytes().data()), contents.size());
}

TEST_F(FileTest, ReadsZerosWhereAFileEndsSooner) {
  std::ofstream(Path("x")) << std::string(100, '\1');
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  const timespec before = TimeOfModification(Path("x"));
  ASSERT_EQ(truncate(Path("x").c_str(), 60), 0);
  std::vector<uint8_t> read(80, 7);
  file->Read(file->bytes().subspan(20), read.data());
  EXPECT_EQ(Sum(read), 40u);
  // Making the file what it was does not make what was read right.
  std::ofstream(Path("x")) << std::string(100, '\1');
  SetTimeOfModification(Path("x"), before);
  EXPECT_EQ(Complaint(*file), "the file could not be read");
}

TEST_F(FileTest, RefusesToMapWhatIsNoFileWithContents) {
  const auto message = [](const std::string& path) {
    return std::string(MappedFile::Open(path).status().message());
  };
  EXPECT_THAT(message(Path("none")), HasSubstr("cannot be opened"));
  EXPECT_EQ(message(folder_), folder_ + " is a directory, not a file");
  std::ofstream(Path("empty")).flush();
  EXPECT_EQ(message(Path("empty")), Path("empty") + " is an empty file");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(Path("pipe")), Path("pipe") + " is not a regular file");
}

TEST_F(FileTest, WhatIsWrittenCanBeRead) {
  GgufWriter writer;
  writer.SetString("general.architecture", "test");
  writer.SetUint32("u32", 7);
  writer.SetInt32("i32", -7);
  writer.SetUint64("u64", uint64_t{1} << 40);
  writer.SetFloat32("f32", 0.5f);
  writer.SetBool("flag", true);
  writer.SetStrings("texts", std::vector<std::string>{"a", "", "c"});
  writer.SetBools("flags", {true, false});
  writer.SetInt32s("ints", {1, -2});
  writer.SetFloat32s("floats", {1.5f});
  writer.SetInt32s("none", {});
  ASSERT_TRUE(writer.AddTensor("a", {3}, WeightType::kF32).ok());
  ASSERT_TRUE(writer.AddTensor("b", {32, 2}, WeightType::kQ8_0).ok());
  ASSERT_TRUE(writer.Open(Path("x.gguf")).ok());
  const float values[3] = {1, 2, 3};
  const std::string blocks(68, 'q');
  const auto floats = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values), 12);
  ASSERT_TRUE(writer.AppendData(floats.first(5)).ok());
  ASSERT_TRUE(writer.AppendData(floats.subspan(5)).ok());
  ASSERT_TRUE(writer.AppendData(AsBytes(blocks)).ok());
  ASSERT_TRUE(writer.Finish().ok());

  const absl::StatusOr<GgufFile> file = GgufFile::Open(Path("x.gguf"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->GetString("general.architecture"), "test");
  EXPECT_EQ(*file->GetUint("u32"), 7u);
  EXPECT_EQ(*file->GetInt("i32"), -7);
  EXPECT_EQ(*file->GetUint("u64"), uint64_t{1} << 40);
  EXPECT_EQ(*file->GetFloat("f32"), 0.5);
  EXPECT_EQ(*file->GetBool("flag"), true);
  EXPECT_THAT(*file->GetStrings("texts"), ElementsAre("a", "", "c"));
  ASSERT_EQ(file->Find("flags")->size(), 2u);
  EXPECT_EQ(file->Find("flags")->BoolAt(0), true);
  EXPECT_EQ(file->Find("flags")->BoolAt(1), false);
  EXPECT_THAT(*file->GetInts("ints"), ElementsAre(1, -2));
  EXPECT_THAT(*file->GetFloats("floats"), ElementsAre(1.5f));
  EXPECT_THAT(*file->GetInts("none"), ElementsAre());
  EXPECT_EQ(std::memcmp(file->FindTensor("a")->data.data(), values, 12), 0);
  EXPECT_EQ(file->FindTensor("b")->data, AsBytes(blocks));
}

TEST_F(FileTest, ValuesOfEveryTypeAreCopied) {
  const ParsedBytes small = ParseCopy(SmallFile());
  ASSERT_TRUE(small.file.ok());
  GgufWriter writer;
  for (const GgufEntry& entry : small.file->metadata()) writer.SetValue(entry.key(), entry.value);
  ASSERT_TRUE(writer.Open(Path("copy.gguf")).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const absl::StatusOr<GgufFile> copy = GgufFile::Open(Path("copy.gguf"));
  ASSERT_TRUE(copy.ok()) << copy.status();
  ASSERT_EQ(copy->metadata().size(), small.file->metadata().size());
  for (size_t i = 0; i < copy->metadata().size(); ++i) {
    const GgufEntry& a = copy->metadata()[i];
    const GgufEntry& b = small.file->metadata()[i];
    EXPECT_EQ(a.key(), b.key());
    EXPECT_EQ(a.value.TypeName(), b.value.TypeName());
    EXPECT_EQ(a.value.ToString(100), b.value.ToString(100));
  }
}

TEST_F(FileTest, TheWriterRefusesWhatTheReaderWould) {
  GgufWriter writer;
  const auto message = [&](absl::string_view name, std::vector<uint64_t> dims, WeightType type) {
    return std::string(writer.AddTensor(name, dims, type).message());
  };
  EXPECT_THAT(message("", {1}, WeightType::kF32), HasSubstr("0 bytes, outside 1 to 64"));
  EXPECT_THAT(message(std::string(65, 'x'), {1}, WeightType::kF32), HasSubstr("65 bytes"));
  EXPECT_THAT(message("a", {}, WeightType::kF32), HasSubstr("0 dimensions"));
  EXPECT_THAT(message("a", {1, 1, 1, 1, 1}, WeightType::kF32), HasSubstr("5 dimensions"));
  EXPECT_THAT(message("a", {4, 0}, WeightType::kF32), HasSubstr("length 0 in dimension 1"));
  EXPECT_THAT(message("a", {33}, WeightType::kQ8_0), HasSubstr("not a multiple of 32"));
  EXPECT_THAT(message("a", {uint64_t{1} << 32, uint64_t{1} << 32}, WeightType::kF32),
              HasSubstr("beyond 2^64"));
  EXPECT_EQ(message("a", {4}, WeightType::kF32), "");
  EXPECT_THAT(message("a", {4}, WeightType::kF32), HasSubstr("added twice"));
  EXPECT_THAT(message("b", {(uint64_t{1} << 62) - 1}, WeightType::kF32), HasSubstr("beyond 2^64"));

  writer.SetUint32("k", 1);
  writer.SetUint32("k", 2);
  EXPECT_THAT(std::string(writer.Open(Path("x")).message()), HasSubstr("'k' is set twice"));
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(FileTest, TheWriterCountsTheData) {
  {
    GgufWriter writer;
    ASSERT_TRUE(writer.AddTensor("a", {4}, WeightType::kF32).ok());
    ASSERT_TRUE(writer.Open(Path("x")).ok());
    EXPECT_THAT(std::string(writer.AppendData(AsBytes(std::string(17, 'x'))).message()),
                HasSubstr("comes to 17 bytes, more than its 16"));
    ASSERT_TRUE(writer.AppendData(AsBytes("12345678")).ok());
    EXPECT_THAT(std::string(writer.Finish().message()),
                HasSubstr("tensor 'a' has only 8 of its 16 bytes"));
    ASSERT_TRUE(writer.AppendData(AsBytes("12345678")).ok());
    EXPECT_THAT(std::string(writer.AppendData(AsBytes("1")).message()),
                HasSubstr("after those of the last tensor"));
  }
  EXPECT_EQ(NumFiles(), 0u);  // without Finish nothing is left
}

}  // namespace
}  // namespace inlay

// Bytes that are read in pieces, refused, or not there.
#include "io/file/read_fully.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/file/folder_test.h"
#include "tests/must.h"

namespace {
// What the next calls of read() and pread() do: the most bytes that one gives, or minus its errno;
// all that it is asked for with those after them.
std::vector<ssize_t> script;

// The most bytes of the next call, of `size`; none where it fails with errno.
std::optional<size_t> NextSize(size_t size) {
  if (script.empty()) return size;
  const ssize_t now = script.front();
  script.erase(script.begin());
  if (now >= 0) return std::min(size, static_cast<size_t>(now));
  errno = static_cast<int>(-now);
  return std::nullopt;
}
}  // namespace

// In the C library's place.
extern "C" ssize_t read(int fd, void* bytes, size_t size) {
  const std::optional<size_t> next = NextSize(size);
  return next.has_value() ? syscall(SYS_read, fd, bytes, *next) : -1;
}

extern "C" ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  const std::optional<size_t> next = NextSize(size);
  return next.has_value() ? syscall(SYS_pread64, fd, bytes, *next, offset) : -1;
}

namespace inlay {
namespace {

using ::testing::HasSubstr;

class ReadFullyTest : public FolderTest<> {
 protected:
  ~ReadFullyTest() override { close(fd_); }

  // Up to 8 bytes of a file of "abcdef", with the calls that are said, and the outcome.
  std::pair<std::string, ReadOutcome> Read(std::vector<ssize_t> calls,
                                           std::optional<uint64_t> offset = std::nullopt) const {
    std::string text(8, '-');
    script = std::move(calls);
    const ReadOutcome outcome =
        ReadFully(fd_, {reinterpret_cast<uint8_t*>(text.data()), text.size()}, offset);
    script.clear();
    return {text.substr(0, outcome.got), outcome};
  }

  const int fd_ = open(Make("file", "abcdef").c_str(), O_RDONLY | O_CLOEXEC);
};

TEST_F(ReadFullyTest, GoesOnAfterPartsAndSignalsUpToTheEnd) {
  const auto [text, outcome] = Read({3, -EINTR, 1});
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(text, "abcdef");
}

TEST_F(ReadFullyTest, ReadsAtAnOffset) {
  const auto [text, outcome] = Read({-EINTR, 1}, 4);
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(text, "ef");
  EXPECT_EQ(lseek(fd_, 0, SEEK_CUR), 0) << "the position stays";
}

TEST_F(ReadFullyTest, TellsAnErrorAndWhatWasReadBefore) {
  const auto [text, outcome] = Read({2, -EIO});
  EXPECT_EQ(outcome.error, EIO);
  EXPECT_EQ(text, "ab");
}

TEST_F(ReadFullyTest, ReadsATextOrNamesTheFile) {
  EXPECT_EQ(Must(ReadAt(fd_, 2, 3, "x")), "cde");
  EXPECT_EQ(Must(ReadAt(fd_, 4, 1000, "x")), "ef");
  script = {-EIO};
  EXPECT_THAT(ReadAt(fd_, 0, 3, "x").status().message(),
              HasSubstr("x cannot be read: Input/output error"));
}

}  // namespace
}  // namespace inlay

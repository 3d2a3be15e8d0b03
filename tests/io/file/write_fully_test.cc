// Bytes that are written in pieces, refused, or taken by nobody.
#include "io/file/write_fully.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/file/folder_test.h"

namespace {
// What the next calls of write() do: the most bytes that one takes, or minus its errno; all that it
// is given for those after them.
std::vector<ssize_t> script;
}  // namespace

// In the C library's place.
extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  if (!script.empty()) {
    const ssize_t now = script.front();
    script.erase(script.begin());
    if (now < 0) errno = static_cast<int>(-now);
    if (now <= 0) return now < 0 ? -1 : 0;
    size = std::min(size, static_cast<size_t>(now));
  }
  return syscall(SYS_write, fd, bytes, size);
}

namespace inlay {
namespace {

class WriteFullyTest : public FolderTest<> {
 protected:
  // Writes "abcdefgh" to a file with the calls of write() that are said.
  WriteOutcome Write(std::vector<ssize_t> calls) const {
    const int fd = open(Path("file").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    script = std::move(calls);
    const WriteOutcome outcome = WriteFully(fd, "abcdefgh");
    script.clear();
    close(fd);
    return outcome;
  }
};

TEST_F(WriteFullyTest, GoesOnAfterPartsAndSignals) {
  const WriteOutcome outcome = Write({3, -EINTR, 1});
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(outcome.written, 8u);
  EXPECT_EQ(Contents(Path("file")), "abcdefgh");
}

TEST_F(WriteFullyTest, TellsAnErrorAndWhatWasWrittenBefore) {
  for (const int error : {EIO, EAGAIN}) {
    const WriteOutcome outcome = Write({2, 3, -error});
    EXPECT_EQ(outcome.error, error);
    EXPECT_EQ(outcome.written, 5u);
    EXPECT_EQ(Contents(Path("file")), "abcde");
  }
}

// It was an endless loop for most who wrote files.
TEST_F(WriteFullyTest, AFileThatTakesNothingIsFull) {
  const WriteOutcome outcome = Write({4, 0});
  EXPECT_EQ(outcome.error, ENOSPC);
  EXPECT_EQ(outcome.written, 4u);
}

TEST_F(WriteFullyTest, WritesAtAnOffset) {
  const int fd = open(Make("file", "01234567").c_str(), O_RDWR | O_CLOEXEC);
  const std::string text = "ab";
  EXPECT_EQ(WriteFully(fd, AsBytes(text), 5).error, 0);
  EXPECT_EQ(lseek(fd, 0, SEEK_CUR), 0) << "the position stays";
  close(fd);
  EXPECT_EQ(Contents(Path("file")), "01234ab7");
}

}  // namespace
}  // namespace inlay

// Files that are opened to be read or written in places: what is refused, and in which words.
#include "io/file/open_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "tests/io/file/folder_test.h"
#include "tests/must.h"

namespace {
int fstat_error = 0;
}  // namespace

// In the C library's place.
extern "C" int fstat(int fd, struct stat* info) noexcept {
  if (fstat_error == 0) return fstatat(fd, "", info, AT_EMPTY_PATH);
  errno = fstat_error;
  return -1;
}

namespace inlay {
namespace {

using ::testing::HasSubstr;

class OpenFileTest : public FolderTest<> {};

TEST_F(OpenFileTest, KnowsWhatItIsAndClosesIt) {
  const std::string path = Make("a", "seven b");
  int fd = -1;
  {
    OpenFile file = Must(OpenFile::Open(path, O_RDONLY));
    EXPECT_EQ(file.info().st_size, 7);
    fd = file.fd();
    const OpenFile moved = std::move(file);
    EXPECT_EQ(moved.fd(), fd);
    EXPECT_EQ(moved.info().st_size, 7);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "it is closed";
}

TEST_F(OpenFileTest, SaysWhyNot) {
  EXPECT_EQ(OpenFile::Open(Path("none"), O_RDONLY).status().code(), absl::StatusCode::kNotFound);
  const absl::Status folder = OpenFile::Open(folder_, O_RDONLY).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(folder.message(), folder_ + " is a directory, not a file");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  alarm(60);  // to wait for who writes to it would be for ever
  EXPECT_EQ(OpenFile::Open(Path("pipe"), O_RDONLY).status().code(),
            absl::StatusCode::kInvalidArgument);
  alarm(0);
  const std::string path = Make("a", "x");
  fstat_error = EIO;
  const absl::Status unknown = OpenFile::Open(path, O_RDONLY).status();
  fstat_error = 0;
  EXPECT_THAT(unknown.message(), HasSubstr(path + " cannot be examined: Input/output error"));
}

}  // namespace
}  // namespace inlay

// A test with an empty folder of its own, and files in it.
#ifndef INLAY_TESTS_IO_FOLDER_TEST_H_
#define INLAY_TESTS_IO_FOLDER_TEST_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "base/byte_stream.h"
#include "tests/temp_folder.h"

namespace inlay {

inline std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The permission bits of a file; a link's are those of what it leads to.
inline mode_t Permissions(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

// Runs `act` in a child process; its wait status.
inline int InChild(const std::function<void()>& act) {
  const pid_t pid = fork();
  if (pid == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// `Base` is testing::Test or one with a parameter.
template <class Base = ::testing::Test>
class FolderTest : public Base {
 protected:
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // Makes a file of these bytes; its path.
  std::string Make(const std::string& name, absl::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return Path(name);
  }

  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                             std::filesystem::directory_iterator()));
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_FOLDER_TEST_H_

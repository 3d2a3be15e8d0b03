// Paths for files that a test program writes.
#ifndef INLAY_TESTS_GEMMA_LIKE_TEMP_PATH_H_
#define INLAY_TESTS_GEMMA_LIKE_TEMP_PATH_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace inlay {

// In a folder of this process alone, since tests of several builds may run at once. The folder goes
// when the process ends.
inline std::string TempPath(const std::string& name) {
  struct Folder {
    Folder() : path(::testing::TempDir() + "inlay_gemma_like_XXXXXX") {
      EXPECT_NE(mkdtemp(path.data()), nullptr);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path + "/" + name;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_TEMP_PATH_H_

// A folder for the files that a test writes.
#ifndef INLAY_TESTS_TEMP_FOLDER_H_
#define INLAY_TESTS_TEMP_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace inlay {

// Empty and nobody else's, since tests of several builds may run at once; removed with its files
// when the object is destroyed.
class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "inlay_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// In a folder of this process, which goes when the process ends.
inline std::string TempPath(const std::string& name) {
  static const TempFolder folder;
  return folder.Path(name);
}

}  // namespace inlay

#endif  // INLAY_TESTS_TEMP_FOLDER_H_

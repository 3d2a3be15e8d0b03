// Whether an open file is the one of a name.
#ifndef INLAY_IO_FILE_HAS_NAME_H_
#define INLAY_IO_FILE_HAS_NAME_H_

#include <sys/stat.h>

#include <string>

namespace inlay {

// False too where there is no file of this name: others may have removed or replaced it since it
// was opened.
inline bool HasName(int fd, const std::string& name) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && stat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace inlay

#endif  // INLAY_IO_FILE_HAS_NAME_H_

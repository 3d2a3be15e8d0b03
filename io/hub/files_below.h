// The files in a folder and its folders, within bounds.
#ifndef INLAY_IO_HUB_FILES_BELOW_H_
#define INLAY_IO_HUB_FILES_BELOW_H_

#include <cstddef>
#include <string>
#include <vector>

namespace inlay {

// The most names that FilesBelow looks at.
inline constexpr size_t kMostNamesBelow = 100'000;

// Paths of the regular files below `folder`, relative to it, in the order of their bytes. Links are
// followed; links to nothing and what cannot be read are left out. A file in `folder` itself has
// depth 1; deeper ones than `depth` are left out, as are those after the first kMostNamesBelow
// names.
std::vector<std::string> FilesBelow(const std::string& folder, size_t depth);

// The names of the folders in `folder`, likewise.
std::vector<std::string> FoldersIn(const std::string& folder);

}  // namespace inlay

#endif  // INLAY_IO_HUB_FILES_BELOW_H_

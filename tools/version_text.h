// What --version prints.
#ifndef INLAY_TOOLS_VERSION_TEXT_H_
#define INLAY_TOOLS_VERSION_TEXT_H_

namespace inlay {

// "inlay 0.1.0 (a81af4826f3c-dirty, Release)": the version, the commit of the checkout that was
// built, with "-dirty" where its files differed from that commit, and the build type. What the
// build does not know is left out; Bazel's knows neither.
const char* VersionText();

}  // namespace inlay

#endif  // INLAY_TOOLS_VERSION_TEXT_H_

// The version of Inlay. CMake and scripts/release read it from here.
#ifndef INLAY_BASE_VERSION_H_
#define INLAY_BASE_VERSION_H_

#define INLAY_VERSION "0.1.0"

#endif  // INLAY_BASE_VERSION_H_

// Libraries of the system that are loaded when they are first needed, so that a program which never
// needs them starts without them and runs where they are not installed.
#ifndef INLAY_IO_DOWNLOAD_SHARED_LIBRARY_H_
#define INLAY_IO_DOWNLOAD_SHARED_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

class SharedLibrary {
 public:
  // The first of the libraries of these names ("libcurl.so.4") that can be loaded; it stays loaded
  // until the process ends. Unimplemented, with `purpose` ("downloading") as its subject, where
  // there is none.
  static absl::StatusOr<SharedLibrary> Load(absl::Span<const char* const> names,
                                            absl::string_view purpose);

  // Sets a pointer to the function of this name. Unimplemented where the library has none.
  template <class Function>
  absl::Status Find(const char* name, Function** function) const {
    void* address = nullptr;
    absl::Status status = FindAddress(name, &address);
    *function = reinterpret_cast<Function*>(address);
    return status;
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  absl::Status FindAddress(const char* name, void** address) const;

  void* handle_;
  std::string name_;
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_SHARED_LIBRARY_H_

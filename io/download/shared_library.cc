#include "io/download/shared_library.h"

#include <dlfcn.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace inlay {

absl::StatusOr<SharedLibrary> SharedLibrary::Load(absl::Span<const char* const> names,
                                                  absl::string_view purpose) {
  for (const char* name : names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr)
      return SharedLibrary(handle, name);
  }
  return absl::UnimplementedError(
      absl::StrCat(purpose, " needs a library of the system: ", absl::StrJoin(names, " or "),
                   ", and this system has none of it"));
}

absl::Status SharedLibrary::FindAddress(const char* name, void** address) const {
  *address = dlsym(handle_, name);
  if (*address != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("this system's ", name_, " is too old: it has no function ", name));
}

}  // namespace inlay

// Names of files that must be gone when the process ends, also when a signal ends it.
#ifndef INLAY_IO_FILE_TEMPORARY_NAME_H_
#define INLAY_IO_FILE_TEMPORARY_NAME_H_

#include <string>

#include "absl/status/status.h"

namespace inlay {

// Installs handlers of SIGINT, SIGTERM and SIGHUP for the whole process that remove the files of
// all living TemporaryNames before the signal ends the process. A signal that is ignored or handled
// already is left alone. A library does not take over signals unasked: a program asks for this,
// once, before it writes files.
void RemoveTemporariesOnSignals();

// A name for one file beside others. The file, if one of that name exists, is removed with the
// object. Thread-safe.
class TemporaryName {
 public:
  TemporaryName() = default;  // no name
  // To be constructed before the file is created, so that no signal can come between.
  explicit TemporaryName(const std::string& path);
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();

  bool empty() const { return slot_ == nullptr; }
  const std::string& path() const;

  // The file is not removed, as it is not this object's.
  void Forget();

  // Places of names, never freed but used again, since a handler may be looking at one at any time.
  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_TEMPORARY_NAME_H_

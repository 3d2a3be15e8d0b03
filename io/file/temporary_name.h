// Names of files that must be removed when the process ends, even if a signal ends it.
#ifndef INLAY_IO_FILE_TEMPORARY_NAME_H_
#define INLAY_IO_FILE_TEMPORARY_NAME_H_

#include <string>

#include "absl/status/status.h"

namespace inlay {

// Installs handlers of SIGINT, SIGTERM and SIGHUP for the whole process that remove the files of
// all living TemporaryNames before the signal ends the process. A signal that is ignored or handled
// already is left alone. A library should not install signal handlers by itself, so the program
// calls this once, before it writes files.
void RemoveTemporariesOnSignals();

// The name of a temporary file. The destructor removes the file of that name, if there is one.
// Thread-safe.
class TemporaryName {
 public:
  TemporaryName() = default;  // no name
  // Construct it before the file is created, so that a signal in between leaves no file behind.
  explicit TemporaryName(const std::string& path);
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();

  bool empty() const { return slot_ == nullptr; }
  const std::string& path() const;

  // Gives up the name without removing a file: it was renamed, or belongs to somebody else.
  void Forget();

  // The memory of one name; never freed, only reused, since the signal handler may read it at any
  // time.
  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_TEMPORARY_NAME_H_

// A running `inlay serve`.
#ifndef INLAY_TESTS_TOOLS_SERVER_PROCESS_H_
#define INLAY_TESTS_TOOLS_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace inlay {

class ServerProcess {
 public:
  // Starts the program with these arguments after "serve --port 0", and waits until it answers. The
  // test fails where it ends instead. The INLAY_* variables of this process' environment are not
  // those of the server, which ends at the latest with the thread that has started it.
  explicit ServerProcess(const std::vector<std::string>& arguments);
  // Kills it, if it still runs.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }

  // Sends a signal.
  void Signal(int signal) const;
  // Waits for the end. The exit status; 128 + signal where one ended it. The test fails where it
  // does not end.
  int Wait();
  // Waits until standard error has shown `text`; false when it ends before.
  bool WaitFor(const std::string& text);
  const std::string& err() const { return err_; }

 private:
  bool ReadSome();

  pid_t pid_ = -1;
  int err_fd_ = -1;
  uint16_t port_ = 0;
  std::string err_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_TOOLS_SERVER_PROCESS_H_

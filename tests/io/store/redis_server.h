// Debian's redis-server, started by a test for itself.
#ifndef INLAY_TESTS_IO_REDIS_SERVER_H_
#define INLAY_TESTS_IO_REDIS_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace inlay {

// Runs on a port of the loopback interface, in an empty folder of its own, where it keeps nothing,
// and ends with this object or its process.
class RedisServer {
 public:
  // `arguments` are added to the command line. started() is false where redis-server is missing
  // (the package redis-server, which scripts/setup installs) or does not come up.
  // On `port`, unless that is 0: then on a free one.
  explicit RedisServer(const std::vector<std::string>& arguments = {}, uint16_t port = 0);
  ~RedisServer() { Kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  bool started() const { return pid_ > 0; }
  uint16_t port() const { return port_; }
  void Signal(int signal) const;
  // What it replies to these commands, each a line as a person types it, in Redis' protocol: for
  // tests that have no hiredis.
  std::string Ask(const std::vector<std::string>& commands) const;
  void Kill();

 private:
  bool TryStart(const std::vector<std::string>& arguments, uint16_t port);

  const TempFolder folder_;  // else it would load what others have left there
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_REDIS_SERVER_H_

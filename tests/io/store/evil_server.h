// A server on the loopback interface that does to its clients whatever a test says.
#ifndef INLAY_TESTS_IO_STORE_EVIL_SERVER_H_
#define INLAY_TESTS_IO_STORE_EVIL_SERVER_H_

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "tests/io/store/loopback.h"

namespace inlay {

// Accepts connections one after the other and gives each to `serve`.
class EvilServer {
 public:
  explicit EvilServer(std::function<void(int fd, EvilServer&)> serve) {
    std::tie(listener_, port_) = BindLoopback();
    listen(listener_, 16);
    thread_ = std::thread([this, serve = std::move(serve)] {
      while (true) {
        const int fd = accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        if (!stopping_) serve(fd, *this);
        close(fd);
      }
    });
  }
  ~EvilServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  uint16_t port() const { return port_; }
  bool stopping() const { return stopping_; }

  static bool Send(int fd, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Waits for a command, or at least a piece of one; false when the client has gone.
  static bool Receive(int fd) {
    char buffer[65536];
    return recv(fd, buffer, sizeof(buffer), 0) > 0;
  }

 private:
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STORE_EVIL_SERVER_H_

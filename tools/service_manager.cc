#include "tools/service_manager.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

namespace inlay {

ServiceManager::ServiceManager() {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t size = name == nullptr ? 0 : strlen(name);
  if (size < 2 || size >= sizeof(address.sun_path) || (name[0] != '/' && name[0] != '@')) return;
  memcpy(address.sun_path, name, size);
  if (name[0] == '@') address.sun_path[0] = '\0';  // it is no file
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  if (socket_ >= 0 && connect(socket_, reinterpret_cast<sockaddr*>(&address), bytes) != 0) {
    close(socket_);
    socket_ = -1;
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) close(socket_);
}

void ServiceManager::Tell(absl::string_view state) const {
  if (socket_ < 0) return;
  [[maybe_unused]] const ssize_t sent = send(socket_, state.data(), state.size(), MSG_NOSIGNAL);
}

}  // namespace inlay

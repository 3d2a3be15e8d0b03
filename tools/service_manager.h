// Tells systemd, or what else starts services by its protocol (sd_notify), how far this one is.
#ifndef INLAY_TOOLS_SERVICE_MANAGER_H_
#define INLAY_TOOLS_SERVICE_MANAGER_H_

#include "absl/strings/string_view.h"

namespace inlay {

class ServiceManager {
 public:
  // Finds the manager by $NOTIFY_SOCKET; without that Tell does nothing. Before a sandbox, which
  // lets no connection be made.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // A state of sd_notify: "READY=1", "STOPPING=1". One that cannot be sent is lost.
  void Tell(absl::string_view state) const;

 private:
  int socket_ = -1;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_SERVICE_MANAGER_H_

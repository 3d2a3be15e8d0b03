// Servers that are made a cluster.
#ifndef INLAY_TESTS_IO_REDIS_CLUSTER_H_
#define INLAY_TESTS_IO_REDIS_CLUSTER_H_

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/io/store/loopback.h"
#include "tests/io/store/redis_server.h"
#include "tests/wait_until.h"

namespace inlay {

class ClusterNode {
 public:
  ClusterNode() {
    // Somebody else may take the bus' port before the server does.
    for (int i = 0; i < 3 && !started(); ++i) {
      bus_port_ = FreePort();
      server_ = std::make_unique<RedisServer>(std::vector<std::string>{
          "--cluster-enabled", "yes", "--cluster-port", absl::StrCat(bus_port_)});
    }
  }

  bool started() const { return server_ != nullptr && server_->started(); }
  uint16_t port() const { return server_->port(); }

  // The node gets the slots from `first` to `last`, of 0 to 16383.
  void GiveSlots(int first, int last) const {
    server_->Ask({absl::StrCat("CLUSTER ADDSLOTSRANGE ", first, " ", last)});
  }
  // Makes the two nodes one cluster.
  void Meet(const ClusterNode& other) const {
    server_->Ask({absl::StrCat("CLUSTER MEET 127.0.0.1 ", other.port(), " ", other.bus_port_)});
  }
  // Until the node knows of all slots.
  void WaitForSlots() const {
    EXPECT_TRUE(WaitUntil(
        [&] { return absl::StrContains(server_->Ask({"CLUSTER INFO"}), "cluster_state:ok"); }));
  }

 private:
  static uint16_t FreePort() {
    const auto [fd, port] = BindLoopback();
    close(fd);
    return port;
  }

  uint16_t bus_port_ = 0;
  std::unique_ptr<RedisServer> server_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_REDIS_CLUSTER_H_

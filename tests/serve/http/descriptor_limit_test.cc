#include "serve/http/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace inlay::serve {
namespace {

// MakeRoomForConnections(connections) and the soft limit after that, in a process of these limits.
struct Room {
  int connections = -1, soft = -1;
};
Room RoomIn(rlim_t soft, rlim_t hard, size_t connections) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
    Room room = {.connections = static_cast<int>(MakeRoomForConnections(connections))};
    getrlimit(RLIMIT_NOFILE, &limit);
    room.soft = static_cast<int>(limit.rlim_cur);
    _exit(write(pipes[1], &room, sizeof(room)) == sizeof(room) ? 0 : 1);
  }
  close(pipes[1]);
  Room room;
  EXPECT_EQ(read(pipes[0], &room, sizeof(room)), static_cast<ssize_t>(sizeof(room)));
  close(pipes[0]);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  return room;
}

TEST(DescriptorLimitTest, RaisesTheSoftLimitAsFarAsNeeded) {
  const Room room = RoomIn(64, 250, 150);
  EXPECT_EQ(room.connections, 150);
  EXPECT_EQ(room.soft, 150 + 64);
}

TEST(DescriptorLimitTest, LeavesALimitThatIsEnough) {
  const Room room = RoomIn(240, 250, 100);
  EXPECT_EQ(room.connections, 100);
  EXPECT_EQ(room.soft, 240);
}

TEST(DescriptorLimitTest, LeavesDescriptorsForOthers) {
  const Room room = RoomIn(100, 250, 2048);
  EXPECT_EQ(room.connections, 250 - 64);
  EXPECT_EQ(room.soft, 250);
  EXPECT_EQ(RoomIn(64, 100, 2048).connections, 50) << "half of what is little";
}

}  // namespace
}  // namespace inlay::serve

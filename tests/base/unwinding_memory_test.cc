#include "base/unwinding_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <new>

namespace inlay {
namespace {

// As the destructors of some libraries do.
struct TakesMemoryToEnd {
  ~TakesMemoryToEnd() {
    char* const taken = new char[100];
    static_cast<volatile char*>(taken)[0] = 1;
    delete[] taken;
  }
};

struct Block {
  Block* next;
  char bytes[96];
};

// Takes all memory, in small blocks that stay, while something ends that takes memory.
bool RunOut() {
  static Block* blocks = nullptr;
  try {
    const TakesMemoryToEnd something;
    while (true) blocks = new Block{blocks, {}};
  } catch (const std::bad_alloc&) {
    return true;
  }
}

// How a process with little memory ends that runs out of it.
int StatusWithout(bool keeps) {
  const pid_t pid = fork();
  if (pid == 0) {
    const rlimit core = {.rlim_cur = 0, .rlim_max = 0};
    const rlimit limit = {.rlim_cur = size_t{256} << 20, .rlim_max = size_t{256} << 20};
    if (setrlimit(RLIMIT_CORE, &core) != 0 || setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    if (keeps) KeepUnwindingMemory();
    _exit(RunOut() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(UnwindingMemoryTest, DestructorsFindSome) {
  EXPECT_EQ(StatusWithout(false), 128 + SIGABRT) << "without it they end the process";
  EXPECT_EQ(StatusWithout(true), 0);
}

}  // namespace
}  // namespace inlay

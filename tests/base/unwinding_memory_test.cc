#include "base/unwinding_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <latch>
#include <new>
#include <thread>
#include <utility>
#include <vector>

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

// Takes all memory, in small blocks, while something ends that takes memory.
void RunOut() {
  Block* blocks = nullptr;
  try {
    const TakesMemoryToEnd something;
    while (true) blocks = new Block{blocks, {}};
  } catch (const std::bad_alloc&) {
    RenewUnwindingMemory();
  }
  while (blocks != nullptr) delete std::exchange(blocks, blocks->next);
}

// How a process with little memory ends whose threads run out of it, each several times.
int StatusWithout(bool keeps, int threads) {
  const pid_t pid = fork();
  if (pid == 0) {
    const rlimit core = {.rlim_cur = 0, .rlim_max = 0};
    const rlimit limit = {.rlim_cur = size_t{256} << 20, .rlim_max = size_t{256} << 20};
    if (setrlimit(RLIMIT_CORE, &core) != 0 || setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    if (keeps) KeepUnwindingMemory();
    {
      std::latch started(threads);  // a thread cannot start without memory
      std::vector<std::jthread> all;
      for (int i = 0; i < threads; ++i) {
        all.emplace_back([&started] {
          started.arrive_and_wait();
          for (int round = 0; round < 5; ++round) RunOut();
        });
      }
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(UnwindingMemoryTest, DestructorsFindSome) {
  EXPECT_EQ(StatusWithout(false, 1), 128 + SIGABRT) << "without it they end the process";
  EXPECT_EQ(StatusWithout(true, 1), 0);
}

// Whatever the others take meanwhile.
TEST(UnwindingMemoryTest, DestructorsFindSomeInEachThread) { EXPECT_EQ(StatusWithout(true, 6), 0); }

}  // namespace
}  // namespace inlay

// Files that go with the process, whatever ends it.
#include "io/file/temporary_name.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

class TemporaryNameTest : public FolderTest<> {};

TEST_F(TemporaryNameTest, RemovesItsFileUnlessToldToForget) {
  {
    TemporaryName name(Path("x"));
    EXPECT_EQ(name.path(), Path("x"));
    Make("x", "");
    TemporaryName moved = std::move(name);
    EXPECT_TRUE(name.empty());
    EXPECT_EQ(NumFiles(), 1u);
    const TemporaryName missing(Path("y"));
  }
  EXPECT_EQ(NumFiles(), 0u);
  {
    TemporaryName kept(Path("x"));
    Make("x", "");
    kept.Forget();
    EXPECT_TRUE(kept.empty());
  }
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(TemporaryNameTest, GoesWithEachSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = InChild([&] {
      RemoveTemporariesOnSignals();
      std::vector<TemporaryName> names;
      for (const char* name : {"a", "b", "c", "d"}) names.emplace_back(Make(name, ""));
      names[1].Forget();
      names.erase(names.begin() + 2);
      // In another thread than the one whose names they are.
      std::thread([&] { kill(getpid(), signal); }).join();
      pause();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(NumFiles(), 1u) << "the one that was forgotten";
  }
}

// PID 1, as which a container starts a program: the kernel takes no default action for it.
TEST_F(TemporaryNameTest, ASignalEndsTheFirstProcessOfAContainer) {
  constexpr int kNoNamespaces = 77;
  const int status = InChild([&] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kNoNamespaces);
    const pid_t first = fork();
    if (first == 0) {
      RemoveTemporariesOnSignals();
      const TemporaryName name(Make("x", ""));
      raise(SIGTERM);
      _exit(1);
    }
    int ended = 0;
    waitpid(first, &ended, 0);
    _exit(WIFEXITED(ended) ? WEXITSTATUS(ended) : 1);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "this user may make no namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(TemporaryNameTest, LeavesSignalsThatSomebodyElseHandlesOrIgnores) {
  const int ignored = InChild([&] {
    signal(SIGHUP, SIG_IGN);  // as nohup does
    RemoveTemporariesOnSignals();
    raise(SIGHUP);
    _exit(7);
  });
  EXPECT_TRUE(WIFEXITED(ignored) && WEXITSTATUS(ignored) == 7);
  const int handled = InChild([&] {
    signal(SIGTERM, [](int) { _exit(8); });
    RemoveTemporariesOnSignals();
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFEXITED(handled) && WEXITSTATUS(handled) == 8);
}

}  // namespace
}  // namespace inlay

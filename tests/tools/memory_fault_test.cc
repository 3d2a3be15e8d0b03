// The command line where memory runs out at any of its allocations: one sentence, or the answer.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/failing_memory.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"
#include "tools/cli.h"

namespace inlay {
namespace {

using failing_memory::Fault;

class MemoryFault : public testing::Test {
 protected:
  MemoryFault()
      : reached_(static_cast<bool*>(mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        written_(ScratchPath("written")) {}
  ~MemoryFault() override {
    munmap(reached_, sizeof(bool));
    unlink(written_.c_str());
  }

  // In a child of this process, whose allocator it has.
  ProgramResult Run(std::vector<std::string> arguments, const std::string& input, long allocations,
                    Fault fault) {
    arguments.insert(arguments.begin(), "inlay");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return RunProgram({}, {.input = input, .act = [&] {
                             failing_memory::FailAfter(allocations, fault);
                             const int status =
                                 RunCommandLine(static_cast<int>(arguments.size()), argv.data());
                             failing_memory::Stop();
                             *reached_ = failing_memory::has_failed;
                             return status;
                           }});
  }

  // Every allocation among the first, then about a tenth of those before later.
  void Sweep(const std::vector<std::string>& arguments, const std::string& input = "") {
    SCOPED_TRACE(arguments[0]);
    const std::string expected = Run(arguments, input, -1, Fault::kOnce).out;
    int survived = 0;
    for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
      for (long n = 0;; n += 1 + n / 10) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        *reached_ = false;
        const ProgramResult result = Run(arguments, input, n, fault);
        if (result.status == 0) {
          EXPECT_EQ(result.out, expected);
        } else {
          // After whatever a chat has told before.
          const size_t line = result.err.rfind('\n', result.err.size() - 2) + 1;
          EXPECT_EQ(result.status, 1);
          EXPECT_THAT(result.err.substr(line), testing::StartsWith("inlay: "));
        }
        if (HasFailure()) return;
        if (!*reached_) {
          EXPECT_EQ(result.status, 0);
          break;
        }
        ++survived;
      }
    }
    EXPECT_GT(survived, 50);
    std::printf("%s: %d failures survived\n", arguments[0].c_str(), survived);
  }

  bool* reached_;
  std::string written_;
};

TEST_F(MemoryFault, Generate) {
  Sweep({"generate", "-m", kDemoModel, "-p", "ROMEO:", "-n", "6", "-s", "1", "-t", "3", "--draft",
         "4"});
  Sweep({"generate", "ROMEO:", "-m", kDemoModel, "--n-predict=6", "-ngl", "99", "-s", "1", "-t",
         "1"});
}

TEST_F(MemoryFault, Chat) {
  Sweep(
      {"chat", "-m", kDemoModel, "-n", "4", "-s", "1", "-t", "2"},
      "ROMEO:\n/fork\n/regen\n/rewind\n/save! " + written_ + "\n/load " + written_ + "\n/fork 1\n");
}

// A chat that is kept, too, after every answer.
TEST_F(MemoryFault, KeptChat) {
  const TempFolder folder;
  Sweep({"chat", kDemoModel, "-n", "4", "-s", "1", "-t", "2", "-c", "40", "--on-full", "trim",
         "--autosave", "--store", folder.path()},
        "ROMEO:\n/system Ay.\nJULIET:\n/tokens 1\n/fork\n/forks\n/drop 1\n" + std::string(20, 'x') +
            "\nNURSE:\n");
}

TEST_F(MemoryFault, WhatNeedsNoEngine) {
  Sweep({"tokenize", "-m", kDemoModel}, "To be, or not to be\n");
  Sweep({"inspect", "-m", kDemoModel});
  Sweep({"quantize", kDemoModel, written_, "Q4_0", "--force"});
}

TEST_F(MemoryFault, Perplexity) {
  WriteFile(written_, ReadFile("LICENSE").substr(0, 400));
  Sweep({"perplexity", "-m", kDemoModel, "-f", written_, "-c", "64"});
}

TEST_F(MemoryFault, Embed) {
  WriteEmbeddingFile({.dense = {2, 3}}, written_);
  Sweep({"embed", "-m", written_, "-t", "2", "-"}, "To be\nor not to be");
}

}  // namespace
}  // namespace inlay

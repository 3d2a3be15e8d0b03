// The memory plan: what it says is enough, and where memory is short there is a sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/unwinding_memory.h"
#include "nlohmann/json.hpp"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

size_t Planned(const std::vector<std::string>& flags) {
  std::vector<std::string> inspect = {"inspect", "-o", "json"};
  inspect.insert(inspect.end(), flags.begin(), flags.end());
  const auto memory = RunProgram(inspect).Json()["memory"];
  size_t bytes = 0;
  for (const char* part : {"bytes_of_weights", "bytes_of_scratch", "bytes_per_conversation",
                           "bytes_per_open_append"}) {
    EXPECT_GT(memory[part].get<size_t>(), 0u) << part;
    bytes += memory[part].get<size_t>();
  }
  return bytes;
}

// Beside what the program itself takes: what it takes for a vocabulary and nothing else, or for the
// list of configs, each of which has code of its own.
TEST(Memory, StaysWithinThePlan) {
  std::string prompt;
  while (prompt.size() < 4000) prompt += "ROMEO:\nWhat light through yonder window breaks?\n";
  const size_t program = std::max(RunProgram({"tokenize"}, {.input = prompt}).peak_bytes,
                                  RunProgram({"configs"}).peak_bytes);
  for (const std::string type : {"f32", "f16"}) {
    const size_t planned = Planned({"-c", "2048", "--cache-type", type});
    const ProgramResult result = RunProgram(
        {"generate", "-n", "20", "-c", "2048", "--cache-type", type, "-t", "2"}, {.input = prompt});
    ASSERT_EQ(result.status, 0) << result.err;
    const size_t used = result.peak_bytes - std::min(result.peak_bytes, program);
    std::printf("%s: planned %.1f MB, used %.1f MB beside the program's %.1f MB\n", type.c_str(),
                static_cast<double>(planned) / 1e6, static_cast<double>(used) / 1e6,
                static_cast<double>(program) / 1e6);
    EXPECT_LE(used, planned + planned / 10);
    EXPECT_GE(used, planned / 3) << "the plan is idle";
  }
}

// Every limit from one where the program barely starts to one that is enough.
TEST(Memory, AnyLimitEndsInASentenceOrAnAnswer) {
  constexpr size_t least = size_t{25} << 20;
  ASSERT_EQ(RunProgram({"--version"}, {.address_space = least}).status, 0);
  int refused = 0;
  // Of many threads the first few may find memory for their stacks and the next not.
  for (const std::string threads : {"2", "20"}) {
    const int before = refused;
    int done = 0;
    for (size_t limit = least; done < 3; limit += limit / 12) {
      ASSERT_LT(limit, size_t{4} << 30);
      const ProgramResult result = RunProgram(
          {"generate", "-p", "ROMEO:", "-n", "30", "-t", threads}, {.address_space = limit});
      if (result.status == 0) {
        ++done;
        continue;
      }
      ExpectError(result, 1, AnyOf(HasSubstr("memory"), HasSubstr("thread")));
      ++refused;
    }
    EXPECT_GT(refused, before + 5);
  }
  std::printf("%d limits were too small, and said so\n", refused);
}

// Of commands that start threads of their own, beside those of a model that is loaded.
TEST(Memory, AThreadThatIsRefusedIsCalledSo) {
  const ProgramOptions options{.address_space = size_t{256} << 20};  // for stacks of a few threads
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"quantize", kDemoModel, ScratchPath("q8.gguf"), "Q8_0"},
        {"pack", kDemoModel, ScratchPath("packed")},
        {"limits"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-t", "200"});
    ExpectError(RunProgram(arguments, options), 1, HasSubstr("the system refuses a thread for "));
  }
}

TEST(Memory, IsCheckedBeforeItIsTaken) {
  // The program and the mapped file take 36 MiB of addresses, the model 23 MiB more.
  const size_t limit = size_t{44} << 20;
  const ProgramResult result =
      RunProgram({"generate", "-p", "ROMEO:", "-n", "1"}, {.address_space = limit});
  ExpectError(result, 1, AllOf(HasSubstr("bard.gguf"), HasSubstr("bytes of memory")));
  EXPECT_LT(result.peak_bytes, size_t{30} << 20);
}

// The destructor of a nlohmann::json takes memory, and the program must not end there.
TEST(Memory, DestructorsFindSomeWhereThereIsNone) {
  const auto end_without_memory = [] {
    KeepUnwindingMemory();
    std::optional<nlohmann::json> json = nlohmann::json::object();
    for (int i = 0; i < 40; ++i) (*json)[std::to_string(i)] = nlohmann::json::array({i});
    // Past operator new, down to the gaps between what is there.
    for (const size_t bytes : {65536, 4096, 1024, 256, 64, 16}) {
      while (volatile void* const taken = std::malloc(bytes)) (void)taken;
    }
    json.reset();
    return 0;
  };
  const ProgramResult result =
      RunProgram({}, {.address_space = size_t{512} << 20, .act = end_without_memory});
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace inlay

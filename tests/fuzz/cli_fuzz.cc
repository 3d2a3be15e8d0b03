// Any command line, an argument per line: a sentence, a help text, or something to do, which is not
// done here.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/fuzz/fuzz_input.h"
#include "tools/flags/command_line.h"
#include "tools/flags/usage_error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  std::vector<std::string> arguments = {"inlay"};
  for (const absl::string_view line : absl::StrSplit(FuzzInput(data, size).Rest(), '\n')) {
    arguments.emplace_back(line.data(), line.size());
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const auto parsed = ParseCommandLine(static_cast<int>(arguments.size()), argv.data());
  if (parsed.ok()) {
    INLAY_FUZZ_CHECK(parsed->text.empty() == (parsed->action != nullptr));
  } else {
    INLAY_FUZZ_CHECK(IsUsageError(parsed.status()) && !parsed.status().message().empty());
  }
  return 0;
}

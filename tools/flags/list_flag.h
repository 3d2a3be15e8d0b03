// Flags whose value is a list of numbers, as 0,4096.
#ifndef INLAY_TOOLS_FLAGS_LIST_FLAG_H_
#define INLAY_TOOLS_FLAGS_LIST_FLAG_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "io/gguf/gguf_value.h"

namespace inlay {

// Adds an option that replaces `values` by whole numbers from `low` to `high`, with commas between
// them or each as an argument. An empty element is refused; CLI11's own lists would leave it out.
template <class T>
CLI::Option* AddListFlag(CLI::App& command, const std::string& name, std::vector<T>& values,
                         const std::string& what, T low, T high) {
  const std::string shown = name.substr(name.rfind(',') + 1);
  const auto set = [&values, low, high, shown](const std::vector<std::string>& arguments) {
    values.clear();
    for (const std::string& argument : arguments) {
      for (absl::string_view word : absl::StrSplit(argument, ',')) {
        T value = 0;
        if (!absl::SimpleAtoi(word, &value) || value < low || value > high) {
          throw CLI::ValidationError(
              shown, absl::StrCat(QuoteForMessage(word), " is not a whole number from ", low,
                                  " to ", high));
        }
        values.push_back(value);
      }
    }
  };
  return command.add_option_function<std::vector<std::string>>(name, set, what)->type_name("INT");
}

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_LIST_FLAG_H_

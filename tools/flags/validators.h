// Checks of flag values whose messages name the value and the bound.
#ifndef INLAY_TOOLS_FLAGS_VALIDATORS_H_
#define INLAY_TOOLS_FLAGS_VALIDATORS_H_

#include <functional>
#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace inlay {

// As CLI11 wants it: an empty message when the value is good.
using Validator = std::function<std::string(const std::string& value)>;

// A number from `low` to `high`, not NaN.
Validator Between(double low, double high);

// A number above `low`, at most `high`.
Validator Above(double low, double high);

// Lets the option have one of these words, which also stand for its value in --help.
void AllowOneOf(CLI::Option& option, const std::vector<std::string>& words);

// Anything but a number with a zero in front, which CLI11 reads as octal: seeds are counted as 01,
// 02.
std::string NotOctal(const std::string& value);

// Anything but the empty text.
std::string NotEmpty(const std::string& value);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_VALIDATORS_H_

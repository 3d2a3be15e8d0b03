// How often a test repeats what it does with other numbers.
#ifndef INLAY_TESTS_REPETITIONS_H_
#define INLAY_TESTS_REPETITIONS_H_

#include <algorithm>

namespace inlay {

#ifdef INLAY_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// `n`, and with sanitizers a tenth of it: they take about ten times as long, and find what they
// look for in few repetitions, while other builds hold the results of all to what is expected.
constexpr int Repetitions(int n) { return kSanitized ? std::max(n / 10, 1) : n; }

}  // namespace inlay

#endif  // INLAY_TESTS_REPETITIONS_H_

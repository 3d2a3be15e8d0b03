// What rendering a template may use: steps, memory and depth.
#ifndef INLAY_IO_TEMPLATE_LIMITS_H_
#define INLAY_IO_TEMPLATE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace inlay::jinja {

// Published templates need some ten thousand steps and a few times the size of their result.
struct Limits {
  // An operation counts one, and one more for each 64 bytes or item that it goes through.
  uint64_t max_steps = 10'000'000;
  // Of all strings, lists and the like that exist at once, the result included, in bytes.
  size_t max_bytes = size_t{256} << 20;
  // Of expressions and statements inside each other, through calls of macros.
  int max_depth = 600;
};

// The most brackets, tags and operators inside each other in a template's text.
inline constexpr int kMaxNesting = 150;
// The most lists and mappings inside each other, in a template or in its inputs.
inline constexpr int kMaxValueDepth = 200;
// The most bytes of a template's text; published ones have at most some 40,000.
inline constexpr size_t kMaxTemplateBytes = size_t{4} << 20;
// The most parameters of a macro, and the most arguments with names of a call: each is compared
// with all before it.
inline constexpr size_t kMaxNames = 1000;
// The most items of a range(), as in Jinja's sandbox.
inline constexpr int64_t kMaxRange = 100'000;

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_LIMITS_H_

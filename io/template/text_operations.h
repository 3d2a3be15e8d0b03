// What filters and the functions of strings do with texts; every byte keeps its origin.
#ifndef INLAY_IO_TEMPLATE_TEXT_OPERATIONS_H_
#define INLAY_IO_TEMPLATE_TEXT_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/template/budget.h"
#include "io/template/text.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {

enum class Side : uint8_t { kBoth, kLeft, kRight };

// Without white space at these sides.
Text StripSpace(const Text& text, Side side);
// Without the code points of `characters` at these sides.
absl::StatusOr<Text> StripCharacters(Budget& budget, const Text& text, absl::string_view characters,
                                     Side side);

// str.upper and str.lower. A capital sigma at the end of a word gets its own small letter.
absl::StatusOr<Text> InCase(Budget& budget, const Text& text, Case to);
// The first code point in upper (title) case, the rest in lower case.
absl::StatusOr<Text> Capitalize(Budget& budget, const Text& text);
// str.title: every run of letters starts with a capital.
absl::StatusOr<Text> TitleWords(Budget& budget, const Text& text);
// Jinja's filter title: words start after white space, hyphens and opening brackets.
absl::StatusOr<Text> TitleFilter(Budget& budget, const Text& text);

// The parts between `separator`, which must not be empty, in at most `most` + 1 parts (negative: as
// many as there are), counted from that side (kLeft or kRight).
absl::StatusOr<std::vector<Text>> Split(Budget& budget, const Text& text,
                                        absl::string_view separator, int64_t most, Side from);
// The same between runs of white space; none of the parts is empty.
absl::StatusOr<std::vector<Text>> SplitSpace(Budget& budget, const Text& text, int64_t most,
                                             Side from);
absl::StatusOr<std::vector<Text>> SplitLines(Budget& budget, const Text& text, bool keep_ends);

absl::StatusOr<Text> Join(Budget& budget, const Text& separator, absl::Span<const Text> parts);
absl::StatusOr<Text> Repeat(Budget& budget, const Text& text, int64_t times);
// Replaces at most `most` occurrences (negative: all).
absl::StatusOr<Text> Replace(Budget& budget, const Text& text, absl::string_view old,
                             const Text& with, int64_t most);
// Jinja's filter indent.
absl::StatusOr<Text> Indent(Budget& budget, const Text& text, const Text& indention, bool first,
                            bool blank);
// &, <, >, " and ' as HTML writes them.
absl::StatusOr<Text> EscapeHtml(Budget& budget, const Text& text);
// `width` code points or more, filled up with `fill` at these sides (kBoth: str.center).
absl::StatusOr<Text> Pad(Budget& budget, const Text& text, int64_t width, const Text& fill,
                         Side side);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_TEXT_OPERATIONS_H_

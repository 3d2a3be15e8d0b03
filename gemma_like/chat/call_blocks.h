// Parses whole blocks of calls that are not JSON, and writes their arguments as JSON.
#ifndef INLAY_GEMMA_LIKE_CHAT_CALL_BLOCKS_H_
#define INLAY_GEMMA_LIKE_CHAT_CALL_BLOCKS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "io/template/value.h"

namespace inlay {

// The tags of ParseTaggedCalls: those that names and ">" follow, and the last one of a call.
inline constexpr absl::string_view kFunction = "<function=";
inline constexpr absl::string_view kParameter = "<parameter=";
inline constexpr absl::string_view kEndFunction = "</function>";

struct ParsedCall {
  std::string name;
  std::string arguments;  // a JSON object
};

// Each parses a block, between its markers and with white space around it, and returns whether it
// is one. On false `calls` is undefined.

// <function=f><parameter=x>1</parameter></function>, any number of them. A parameter is text, one
// line break on each side left out, unless its schema in `tools` has another type. Sets `open`
// where the block ends within a text, or within a string of such a parameter's JSON: then the
// block's end may be a part of it, and the block may go on. Both may go beyond an end of before, of
// which the block has `behind` bytes left (0: there was none); a text only if no other call begins
// behind that end, and no parameter that should be JSON and is none.
bool ParseTaggedCalls(absl::string_view block, const jinja::Value& tools, size_t behind,
                      std::vector<ParsedCall>* calls, bool* open);

// The names of functions in definitions as templates get them.
std::vector<std::string> FunctionNames(const jinja::Value& tools);

// [f(x=1, y="b"), g()] with Python's literals; keys of dicts become texts, as JSON has no others.
// Models, and templates that show them how, write quotes in texts without a backslash; a quote ends
// a text where a text can end.
bool ParsePythonCalls(absl::string_view block, std::vector<ParsedCall>* calls);

// call:f{x:1,y:<escape>b<escape>}, where `quote` is <escape>.
bool ParseEscapedCall(absl::string_view block, absl::string_view quote,
                      std::vector<ParsedCall>* calls);

// What the parsers share: a position in a block.
class BlockCursor {
 public:
  // Lists and maps inside each other.
  static constexpr int kMostDepth = 200;

  explicit BlockCursor(absl::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  absl::string_view rest() const { return rest_; }
  void SkipSpace();
  // Goes over `text`, after white space, if it is there.
  bool Skip(absl::string_view text);
  // What is before `text`, over which it goes; false where there is none.
  bool TakeUntil(absl::string_view text, absl::string_view* before);
  // What is before the first of these bytes, or before the end.
  absl::string_view TakeBefore(absl::string_view bytes);
  void Advance(size_t bytes) { rest_.remove_prefix(bytes); }

 private:
  absl::string_view rest_;
};

// Appends a number, or true, false or null, also as Python writes them (+1_000, .5, True); false
// for other words.
bool AppendWord(absl::string_view word, std::string* out);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CALL_BLOCKS_H_

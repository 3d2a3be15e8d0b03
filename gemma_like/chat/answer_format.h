// How a model writes its thoughts and its calls of tools.
#ifndef INLAY_GEMMA_LIKE_CHAT_ANSWER_FORMAT_H_
#define INLAY_GEMMA_LIKE_CHAT_ANSWER_FORMAT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace inlay {

// How the text between the markers of calls is read. Wherever JSON is expected, one object
// {"name", "arguments"} and a list of them are both read.
enum class CallSyntax : uint8_t {
  kNone,         // calls are not looked for
  kJson,         // {"name": "f", "arguments": {...}}
  kTagged,       // <function=f><parameter=x>1</parameter></function>, or JSON
  kNamedJson,    // f[ARGS]{...}, f[CALL_ID]id[ARGS]{...}, or JSON
  kPython,       // [f(x=1, y="b"), g()], or JSON
  kEscapedText,  // call:f{x:1,y:<escape>b<escape>}, where `quote` encloses texts
};

// The markers of one family. Their texts live as long as the program; "" is a marker that the
// family does not have.
struct AnswerFormat {
  absl::string_view think_begin, think_end;
  // Whether thoughts may also begin after text. Markers that are ordinary letters are read only at
  // the beginning, since an answer may be about them.
  bool thinks_anywhere = false;
  // Around the text that follows the thoughts.
  absl::string_view text_begin, text_end;

  CallSyntax calls = CallSyntax::kNone;
  absl::string_view call_begin, call_end;
  absl::string_view quote;  // of texts in kEscapedText

  // The format of a model with this chat template: the first row of each table in answer_format.cc
  // of which the template has all texts.
  static AnswerFormat Of(absl::string_view template_source);
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_ANSWER_FORMAT_H_

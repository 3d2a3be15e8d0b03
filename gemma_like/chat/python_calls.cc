// Calls as LFM2 writes them.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "gemma_like/chat/call_blocks.h"
#include "gemma_like/chat/call_json.h"

namespace inlay {
namespace {

class PythonParser {
 public:
  explicit PythonParser(absl::string_view block) : cursor_(block) {}

  bool Calls(std::vector<ParsedCall>* calls) {
    if (!cursor_.Skip("[")) return false;
    do {
      ParsedCall call;
      if (!Call(&call)) return false;
      calls->push_back(call);
    } while (cursor_.Skip(","));
    if (!cursor_.Skip("]")) return false;
    cursor_.SkipSpace();
    return cursor_.AtEnd();
  }

 private:
  // Where a word ends.
  static constexpr absl::string_view kWordEnds = ",:=()[]{}\"' \t\r\n";

  bool Word(absl::string_view* word) {
    cursor_.SkipSpace();
    *word = cursor_.TakeBefore(kWordEnds);
    return !word->empty();
  }

  bool Call(ParsedCall* call) {
    absl::string_view name, key;
    if (!Word(&name) || !cursor_.Skip("(")) return false;
    call->name = std::string(name);
    call->arguments = "{";
    while (!cursor_.Skip(")")) {
      if (call->arguments.size() > 1) {
        if (!cursor_.Skip(",")) return false;
        call->arguments += ", ";
      }
      if (!Word(&key) || !cursor_.Skip("=")) return false;
      AppendJsonString(key, &call->arguments);
      call->arguments += ": ";
      if (!Value(0, &call->arguments)) return false;
    }
    call->arguments += "}";
    return true;
  }

  bool Value(int depth, std::string* out) {
    if (depth == BlockCursor::kMostDepth) return false;
    if (cursor_.Skip("'")) return Text('\'', out);
    if (cursor_.Skip("\"")) return Text('"', out);
    if (cursor_.Skip("[")) return List(']', depth, out);
    if (cursor_.Skip("(")) return List(')', depth, out);
    if (cursor_.Skip("{")) return Dict(depth, out);
    absl::string_view word;
    return Word(&word) && AppendWord(word, out);
  }

  bool List(char end, int depth, std::string* out) {
    const absl::string_view closing(&end, 1);
    out->push_back('[');
    for (bool first = true; !cursor_.Skip(closing); first = false) {
      if (!first) {
        if (!cursor_.Skip(",")) return false;
        if (cursor_.Skip(closing)) break;  // (1,)
        *out += ", ";
      }
      if (!Value(depth + 1, out)) return false;
    }
    out->push_back(']');
    return true;
  }

  bool Dict(int depth, std::string* out) {
    out->push_back('{');
    for (bool first = true; !cursor_.Skip("}"); first = false) {
      if (!first) {
        if (!cursor_.Skip(",")) return false;
        *out += ", ";
      }
      const bool single = cursor_.Skip("'");
      if (!single && !cursor_.Skip("\"")) return false;
      if (!Text(single ? '\'' : '"', out) || !cursor_.Skip(":")) return false;
      *out += ": ";
      if (!Value(depth + 1, out)) return false;
    }
    out->push_back('}');
    return true;
  }

  // Whether a text can end before `rest`.
  static bool EndsBefore(absl::string_view rest) {
    rest = absl::StripLeadingAsciiWhitespace(rest);
    return rest.empty() || absl::string_view(",)]}:").find(rest[0]) != absl::string_view::npos;
  }

  // After the first quote.
  bool Text(char quote, std::string* out) {
    std::string text;
    while (!cursor_.AtEnd()) {
      const char c = cursor_.rest()[0];
      cursor_.Advance(1);
      if (c == quote && EndsBefore(cursor_.rest())) {
        AppendJsonString(text, out);
        return true;
      }
      if (c != '\\') {
        text.push_back(c);
      } else if (!Escape(&text)) {
        return false;
      }
    }
    return false;
  }

  // After a backslash.
  bool Escape(std::string* text) {
    if (cursor_.AtEnd()) return false;
    const char c = cursor_.rest()[0];
    cursor_.Advance(1);
    constexpr absl::string_view kNames = "abfnrtv\\'\"";
    constexpr absl::string_view kBytes = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t i = kNames.find(c); i != absl::string_view::npos) {
      text->push_back(kBytes[i]);
      return true;
    }
    if (c == 'x' || c == 'u' || c == 'U') return CodeUnit(c, text);
    if (c == '\n') return true;  // the text goes on in the next line
    text->push_back('\\');
    text->push_back(c);
    return true;
  }

  bool CodeUnit(char kind, std::string* text) {
    char32_t value = 0;
    if (!Hex(kind == 'x' ? 2 : kind == 'u' ? 4 : 8, &value)) return false;
    // Two escapes may be the halves of one character, as in JSON.
    if (value >= 0xD800 && value < 0xDC00 && cursor_.Skip("\\u")) {
      char32_t low = 0;
      if (!Hex(4, &low) || low < 0xDC00 || low >= 0xE000) return false;
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    AppendUtf8(value, text);
    return true;
  }

  bool Hex(size_t digits, char32_t* value) {
    const absl::string_view rest = cursor_.rest().substr(0, digits);
    if (rest.size() < digits) return false;
    for (const char c : rest) {
      if (!absl::ascii_isxdigit(c)) return false;
      const char lower = absl::ascii_tolower(c);
      *value = *value << 4 | static_cast<char32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    cursor_.Advance(digits);
    return true;
  }

  BlockCursor cursor_;
};

}  // namespace

bool ParsePythonCalls(absl::string_view block, std::vector<ParsedCall>* calls) {
  return PythonParser(block).Calls(calls);
}

}  // namespace inlay

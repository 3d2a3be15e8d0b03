// Calls as LFM2 writes them.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  struct Quote {
    absl::string_view text;  // one quote or three
    bool raw = false;        // a backslash is one
  };

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
    JsonMembers arguments;
    for (bool first = true; !cursor_.Skip(")"); first = false) {
      if (!first) {
        if (!cursor_.Skip(",")) return false;
        if (cursor_.Skip(")")) break;  // f(a=1,)
      }
      if (!Word(&key) || !cursor_.Skip("=")) return false;
      std::string json_key;
      AppendJsonString(key, &json_key);
      if (!Value(0, ')', arguments.Add(json_key))) return false;
    }
    arguments.AppendTo(&call->arguments);
    return true;
  }

  // A value in what `closing` ends.
  bool Value(int depth, char closing, std::string* out) {
    if (depth == BlockCursor::kMostDepth) return false;
    const bool is_argument = depth == 0;
    if (Quote quote; SkipQuote(&quote)) return Text(quote, closing, is_argument, out);
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
      if (!Value(depth + 1, end, out)) return false;
    }
    out->push_back(']');
    return true;
  }

  bool Dict(int depth, std::string* out) {
    JsonMembers members;
    for (bool first = true; !cursor_.Skip("}"); first = false) {
      if (!first) {
        if (!cursor_.Skip(",")) return false;
        if (cursor_.Skip("}")) break;  // {"a": 1,}
      }
      std::string key;
      if (!Key(&key) || !cursor_.Skip(":")) return false;
      if (!Value(depth + 1, '}', members.Add(key))) return false;
    }
    members.AppendTo(out);
    return true;
  }

  bool Key(std::string* out) {
    if (Quote quote; SkipQuote(&quote)) return Text(quote, ':', false, out);
    absl::string_view word;
    std::string literal;
    if (!Word(&word) || !AppendWord(word, &literal)) return false;
    AppendJsonString(literal, out);
    return true;
  }

  // Goes over what begins a text: one or three quotes and letters before them. What f"{x}" stands
  // for nobody knows here; it is the text in the quotes.
  bool SkipQuote(Quote* quote) {
    cursor_.SkipSpace();
    const absl::string_view rest = cursor_.rest();
    const size_t begin = rest.substr(0, 3).find_first_not_of("bfruBFRU");
    if (begin == absl::string_view::npos) return false;
    const char c = rest[begin];
    if (c != '"' && c != '\'') return false;
    const bool three = absl::StartsWith(rest.substr(begin), std::string(3, c));
    quote->text = rest.substr(begin, three ? 3 : 1);
    quote->raw = absl::StrContains(absl::AsciiStrToLower(rest.substr(0, begin)), 'r');
    cursor_.Advance(begin + quote->text.size());
    return true;
  }

  // Whether a text can end before `rest`, in what `closing` ends. Models leave quotes within texts
  // bare, above all where a text is JSON: after an argument a comma goes before another one.
  static bool EndsBefore(absl::string_view rest, char closing, bool is_argument) {
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (rest.empty() || rest[0] == closing) return true;
    if (rest[0] != ',' || closing == ':') return false;
    if (!is_argument) return true;
    rest = absl::StripLeadingAsciiWhitespace(rest.substr(1));
    const size_t word = std::min(rest.find_first_of(kWordEnds), rest.size());
    if (word == 0) return absl::StartsWith(rest, ")");
    return absl::StartsWith(absl::StripLeadingAsciiWhitespace(rest.substr(word)), "=");
  }

  // After the first quote.
  bool Text(const Quote& quote, char closing, bool is_argument, std::string* out) {
    std::string text;
    while (!cursor_.AtEnd()) {
      const absl::string_view rest = cursor_.rest();
      if (absl::StartsWith(rest, quote.text) &&
          EndsBefore(rest.substr(quote.text.size()), closing, is_argument)) {
        cursor_.Advance(quote.text.size());
        AppendJsonString(text, out);
        return true;
      }
      cursor_.Advance(1);
      if (rest[0] != '\\') {
        text.push_back(rest[0]);
      } else if (quote.raw) {
        // It only keeps a quote from ending the text.
        const size_t size = std::min<size_t>(rest.size(), 2);
        absl::StrAppend(&text, rest.substr(0, size));
        cursor_.Advance(size - 1);
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

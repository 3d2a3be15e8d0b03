// Calls as FunctionGemma and Gemma 4 write them.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "gemma_like/chat/call_blocks.h"
#include "gemma_like/chat/call_json.h"

namespace inlay {
namespace {

class EscapedParser {
 public:
  EscapedParser(absl::string_view block, absl::string_view quote) : cursor_(block), quote_(quote) {}

  bool Call(ParsedCall* call) {
    absl::string_view name;
    if (!cursor_.Skip("call:") || !cursor_.TakeUntil("{", &name)) return false;
    name = absl::StripAsciiWhitespace(name);
    if (name.empty() || !Map(0, &call->arguments)) return false;
    call->name = std::string(name);
    cursor_.SkipSpace();
    return cursor_.AtEnd();
  }

 private:
  // After {.
  bool Map(int depth, std::string* out) {
    JsonMembers members;
    for (bool first = true; !cursor_.Skip("}"); first = false) {
      if (!first && !cursor_.Skip(",")) return false;
      std::string key;
      if (!Key(&key) || !Value(depth + 1, members.Add(key))) return false;
    }
    members.AppendTo(out);
    return true;
  }

  // With the colon behind it.
  bool Key(std::string* out) {
    absl::string_view key;
    if (cursor_.Skip(quote_)) {
      if (!cursor_.TakeUntil(quote_, &key)) return false;
      AppendJsonString(key, out);
      return cursor_.Skip(":");
    }
    key = absl::StripAsciiWhitespace(cursor_.TakeBefore(":,{}[]"));
    if (key.empty()) return false;
    AppendJsonString(key, out);
    return cursor_.Skip(":");
  }

  bool Value(int depth, std::string* out) {
    if (depth == BlockCursor::kMostDepth) return false;
    if (cursor_.Skip(quote_)) {
      absl::string_view text;
      if (!cursor_.TakeUntil(quote_, &text)) return false;
      AppendJsonString(text, out);
      return true;
    }
    if (cursor_.Skip("{")) return Map(depth, out);
    if (cursor_.Skip("[")) return List(depth, out);
    return AppendWord(absl::StripAsciiWhitespace(cursor_.TakeBefore(",{}[]")), out);
  }

  bool List(int depth, std::string* out) {
    out->push_back('[');
    for (bool first = true; !cursor_.Skip("]"); first = false) {
      if (!first) {
        if (!cursor_.Skip(",")) return false;
        *out += ", ";
      }
      if (!Value(depth + 1, out)) return false;
    }
    out->push_back(']');
    return true;
  }

  BlockCursor cursor_;
  const absl::string_view quote_;
};

}  // namespace

bool ParseEscapedCall(absl::string_view block, absl::string_view quote,
                      std::vector<ParsedCall>* calls) {
  calls->emplace_back();
  return EscapedParser(block, quote).Call(&calls->back());
}

}  // namespace inlay

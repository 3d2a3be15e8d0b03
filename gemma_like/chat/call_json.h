// The JSON of calls: one value read byte by byte, and strings written.
#ifndef INLAY_GEMMA_LIKE_CHAT_CALL_JSON_H_
#define INLAY_GEMMA_LIKE_CHAT_CALL_JSON_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

// Reads one JSON value (RFC 8259), a byte at a time, from its first byte on. Bytes above 0x7F are
// accepted anywhere in strings; they are not checked to be UTF-8.
class JsonScanner {
 public:
  enum class State : uint8_t {
    kMore,         // the value goes on
    kEnded,        // this byte was its last
    kEndedBefore,  // the value, a number, ended before this byte, which was not taken
    kRefused,      // this byte cannot be there
  };

  // Lists and objects inside each other.
  static constexpr size_t kMostDepth = 200;

  // Appends the byte to `out` if it is taken; an escape is appended once it is whole. What models
  // write in strings and JSON forbids is mended there: control characters are escaped, and so is a
  // backslash that begins no escape ("C:\dir").
  State Push(char c, std::string* out);

 private:
  enum class Expect : uint8_t {
    kValue,
    kValueOrEnd,  // after [
    kKey,
    kKeyOrEnd,  // after {
    kColon,
    kCommaOrEnd,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kNumber,
  };
  enum class Number : uint8_t { kMinus, kZero, kInteger, kPoint, kFraction, kE, kESign, kExponent };

  State BeginValue(char c);
  State InString(char c, std::string* out);
  State InEscape(char c, std::string* out);
  State InHex(char c, std::string* out);
  State EndEscape(std::string* out);
  State TakeAsNoEscape(char c, std::string* out);
  State InNumber(char c);
  State Open(char closing);
  State Close(char c);
  State EndValue();

  Expect expect_ = Expect::kValue;
  std::vector<char> closing_;  // the brackets that are open, as those that close them
  bool in_key_ = false;
  std::string escape_;  // so far
  uint32_t code_unit_ = 0;
  bool after_high_surrogate_ = false;
  const char* literal_ = nullptr;  // what must follow
  Number number_ = Number::kMinus;
};

// Whether the whole text, white space around it allowed, is one JSON value, which is appended to
// `out` without that white space.
bool AppendJsonValue(absl::string_view text, std::string* out);

// Appends `text` in quotes; what is not UTF-8 is replaced by U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

// Collects the members of a JSON object. Of those with the same key the last one counts, at the
// place of the first.
class JsonMembers {
 public:
  // Where the value of this key, both as JSON, is to be written; valid until the next Add.
  std::string* Add(const std::string& key);
  void AppendTo(std::string* out) const;

 private:
  struct Member {
    std::string key, value;
  };
  std::vector<Member> members_;
  std::map<std::string, size_t> places_;  // in members_, by key
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CALL_JSON_H_

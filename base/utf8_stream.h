// Cuts a stream of bytes at character boundaries, so that what is printed is always UTF-8.
#ifndef INLAY_BASE_UTF8_STREAM_H_
#define INLAY_BASE_UTF8_STREAM_H_

#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// Tokens may end inside a character: the start of one is held back until the rest arrives.
class Utf8Stream {
 public:
  // The characters that are complete now. Each ill-formed stretch becomes one U+FFFD.
  std::string Push(absl::string_view bytes);

  // What is held back, as U+FFFD, when no more bytes will come; empty otherwise.
  std::string Flush();

  // The bytes that are held back.
  const std::string& held() const { return held_; }

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace inlay

#endif  // INLAY_BASE_UTF8_STREAM_H_

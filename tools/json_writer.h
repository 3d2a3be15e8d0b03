// JSON written piece by piece, in the form in which JsonText writes it whole.
#ifndef INLAY_TOOLS_JSON_WRITER_H_
#define INLAY_TOOLS_JSON_WRITER_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tools/json_text.h"
#include "tools/output.h"

namespace inlay {

// For results that may be too large for memory. Within an object, each value follows a Key().
class JsonWriter {
 public:
  explicit JsonWriter(Output& out) : out_(out) {}

  void BeginObject() { Begin('{', '}'); }
  void BeginArray() { Begin('[', ']'); }
  // Ends the object or array that was begun last; the outermost one ends with a newline.
  void End() {
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.empty) out_.Write(NewLine());
    out_.Write(absl::string_view(&level.end, 1));
    if (levels_.empty()) out_.Write("\n");
  }

  void Key(absl::string_view key) {
    BeginElement();
    out_.Write(absl::StrCat(TextOf(std::string(key)), ": "));
    after_key_ = true;
  }

  void Value(const nlohmann::ordered_json& value) {
    // All newlines are between elements: those within strings are escaped.
    Text(absl::StrReplaceAll(TextOf(value), {{"\n", NewLine()}}));
  }

  // A value that is JSON already, written as it is.
  void Text(absl::string_view json) {
    BeginElement();
    out_.Write(json);
  }

 private:
  struct Level {
    char end;
    bool empty;
  };

  static std::string TextOf(const nlohmann::ordered_json& value) {
    std::string text = JsonText(value);
    text.pop_back();  // its newline
    return text;
  }

  std::string NewLine() const { return "\n" + std::string(2 * levels_.size(), ' '); }

  void Begin(char begin, char end) {
    BeginElement();
    out_.Write(absl::string_view(&begin, 1));
    levels_.push_back({end, true});
  }

  // Key() has already begun the element of the value after it.
  void BeginElement() {
    if (!after_key_ && !levels_.empty()) {
      if (!levels_.back().empty) out_.Write(",");
      out_.Write(NewLine());
      levels_.back().empty = false;
    }
    after_key_ = false;
  }

  Output& out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_JSON_WRITER_H_

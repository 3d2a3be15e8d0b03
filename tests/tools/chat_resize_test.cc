// inlay chat on a terminal whose width changes while a person types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

// What a terminal shows that joins and wraps lines anew when its width changes, as most do, or that
// leaves each row as it is and cuts it. It has as many rows as it needs.
class Screen {
 public:
  explicit Screen(bool rewraps) : rewraps_(rewraps) {}

  // Goes on behind what was read before of everything that the terminal got.
  void Read(absl::string_view all) {
    for (size_t size = 1; read_ < all.size() && size > 0; read_ += size)
      size = ReadOne(all.substr(read_));
  }

  void Resize(size_t columns) {
    columns_ = columns;
    if (!rewraps_) {
      for (Row& row : rows_) row.cells.resize(std::min(row.cells.size(), columns));
      column_ = std::min(column_, columns - 1);
      return;
    }
    std::vector<Row> before;
    before.swap(rows_);
    const size_t cursor_row = row_;
    for (size_t at = 0; at < before.size();) {
      std::vector<std::string> line;
      size_t cursor = kNone;  // its cell of the line, or behind
      bool goes_on = true;
      for (; goes_on && at < before.size(); ++at) {
        if (at == cursor_row) cursor = line.size() + column_;
        line.insert(line.end(), before[at].cells.begin(), before[at].cells.end());
        goes_on = before[at].wraps;
      }
      AddWrapped(line, cursor);
    }
  }

  // All characters but spaces, whatever rows they are in.
  std::string Text() const {
    std::string text;
    for (const Row& row : rows_) {
      for (const std::string& cell : row.cells) absl::StrAppend(&text, cell == " " ? "" : cell);
    }
    return text;
  }

  // The character before the cursor; "" while the cursor stands behind a full row.
  std::string BeforeCursor() const {
    if (column_ == columns_) return "";
    const bool first = column_ == 0 && row_ > 0;
    const std::vector<std::string>& cells = rows_[first ? row_ - 1 : row_].cells;
    size_t end = first ? cells.size() : column_;
    if (end > cells.size()) return " ";
    while (end > 0 && cells[end - 1].empty()) --end;
    return end == 0 ? "" : cells[end - 1];
  }

  // The row with the prompt that was shown last; "" for none.
  std::string PromptRow() const {
    for (size_t i = rows_.size(); i-- > 0;) {
      const std::string row = absl::StrJoin(rows_[i].cells, "");
      if (row.rfind("> ", 0) == 0) return row;
    }
    return "";
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // A cell holds a character; the second one of a wide character is empty.
  struct Row {
    std::vector<std::string> cells = {};
    bool wraps = false;  // the line goes on in the next row
  };

  void AddWrapped(const std::vector<std::string>& line, size_t cursor) {
    rows_.emplace_back();
    for (size_t i = 0; i < line.size(); ++i) {
      const size_t width = i + 1 < line.size() && line[i + 1].empty() ? 2 : 1;
      if (!line[i].empty() && rows_.back().cells.size() + width > columns_) {
        rows_.back().wraps = true;
        rows_.emplace_back();
      }
      if (cursor == i) {
        row_ = rows_.size() - 1;
        column_ = rows_.back().cells.size();
      }
      rows_.back().cells.push_back(line[i]);
    }
    if (cursor == kNone || cursor < line.size()) return;
    row_ = rows_.size() - 1;
    column_ = std::min(columns_, rows_.back().cells.size() + cursor - line.size());
  }

  // Reads a character or a control sequence. Returns its size; 0: more of it is to come.
  size_t ReadOne(absl::string_view all) {
    const auto first = static_cast<unsigned char>(all[0]);
    switch (first) {
      case '\x1b':
        return ReadSequence(all);
      case '\n':
        GoDown(1);
        return 1;
      case '\r':
        column_ = 0;
        return 1;
      case '\b':
        GoLeft(1);
        return 1;
      case '\t':
        column_ = std::min(columns_ - 1, (column_ / 8 + 1) * 8);
        return 1;
      case '\a':
        return 1;
      default:
        break;
    }
    const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (all.size() < size) return 0;
    Put(std::string(all.substr(0, size)), first >= 0xe3);  // U+3000 and above are wide here
    return size;
  }

  size_t ReadSequence(absl::string_view all) {
    if (all.size() < 2) return 0;
    EXPECT_EQ(all[1], '[') << "a control sequence that the test does not know";
    const size_t end = all.find_first_not_of("0123456789;?", 2);
    if (end == all.npos) return 0;
    const std::string parameter(all.substr(2, end - 2));
    const size_t count = std::max<size_t>(1, std::strtoul(parameter.c_str(), nullptr, 10));
    std::vector<std::string>& cells = rows_[row_].cells;
    const auto here = [&] {
      return cells.begin() + static_cast<ptrdiff_t>(std::min(column_, cells.size()));
    };
    switch (all[end]) {
      case 'A':
        row_ -= std::min(row_, count);
        break;
      case 'B':
        GoDown(count);
        break;
      case 'C':
        column_ = std::min(column_ + count, columns_ - 1);
        break;
      case 'D':
        GoLeft(count);
        break;
      case 'G':
        column_ = count - 1;
        break;
      case 'J':
        rows_.resize(row_ + 1);
        EraseRight();
        break;
      case 'K':
        EraseRight();
        break;
      case 'P':
        cells.erase(here(), here() + std::min<ptrdiff_t>(static_cast<ptrdiff_t>(count),
                                                         cells.end() - here()));
        break;
      case '@':
        cells.insert(here(), count, " ");
        cells.resize(std::min(cells.size(), columns_));
        break;
      case 'm':  // colours
      case 'h':  // modes
      case 'l':
        break;
      default:
        ADD_FAILURE() << "the test does not know " << all.substr(0, end + 1);
    }
    return end + 1;
  }

  void Put(const std::string& character, bool wide) {
    const size_t width = wide ? 2 : 1;
    if (column_ + width > columns_) {
      rows_[row_].wraps = true;
      GoDown(1);
      column_ = 0;
    }
    std::vector<std::string>& cells = rows_[row_].cells;
    if (cells.size() < column_ + width) cells.resize(column_ + width, " ");
    cells[column_] = character;
    if (wide) cells[column_ + 1] = "";
    column_ += width;
  }

  void GoDown(size_t count) {
    row_ += count;
    if (rows_.size() <= row_) rows_.resize(row_ + 1);
  }

  void GoLeft(size_t count) {
    column_ = std::min(column_, columns_ - 1);  // behind a full row it stands on its last cell
    column_ -= std::min(column_, count);
  }

  void EraseRight() {
    Row& row = rows_[row_];
    row.cells.resize(std::min(row.cells.size(), column_));
    row.wraps = false;
  }

  const bool rewraps_;
  size_t columns_ = 80;
  std::vector<Row> rows_{1};
  size_t row_ = 0, column_ = 0;  // the cursor; behind a full row its column is `columns_`
  size_t read_ = 0;
};

// What a person sees who types in a chat.
class Seen {
 public:
  Seen(const TempFolder& folder, std::map<std::string, std::string> env)
      : terminal_({"chat", "-s", "1", "-n", "8"}, Env(folder, env)), screen_(env.empty()) {
    terminal_.WaitFor("/help lists");
    terminal_.WaitFor("> ");
    terminal_.ReadUntil([&](const std::string& shown) {
      screen_.Read(shown);
      return true;
    });
    above_ = screen_.Text();
  }

  Terminal& terminal() { return terminal_; }
  const Screen& screen() const { return screen_; }

  void Type(const std::string& keys) { terminal_.Type(keys); }

  void Resize(size_t columns) {
    screen_.Resize(columns);
    terminal_.Resize(static_cast<unsigned short>(columns));
    terminal_.WaitFor("\x1b[J");  // the line is drawn anew
  }

  // Waits until the line has this text, spaces aside, and the cursor stands behind `last`. Above it
  // nothing has changed then: nothing was erased, and nothing of the line was left behind.
  void Expect(const std::string& text, const std::string& last) {
    const std::string expected = above_ + WithoutSpaces(text);
    terminal_.ReadUntil([&](const std::string& shown) {
      screen_.Read(shown);
      return screen_.Text() == expected && screen_.BeforeCursor() == last;
    });
    EXPECT_EQ(screen_.Text(), expected);
  }

 private:
  static std::map<std::string, std::string> Env(const TempFolder& folder,
                                                std::map<std::string, std::string> more) {
    more.insert({{"TERM", "xterm"}, {"HOME", folder.path()}, {"LANG", "C.UTF-8"}});
    return more;
  }

  static std::string WithoutSpaces(std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  }

  Terminal terminal_;
  Screen screen_;
  std::string above_;  // up to the prompt
};

class ChatResize : public testing::Test {
 protected:
  const TempFolder folder_;
};

// Such that whatever the width some row ends with a space.
std::string Words() {
  std::string words;
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&words, i % 7 == 0 ? "a " : i % 3 == 0 ? "four " : "words ");
  return words + "end";
}

// Has the widths one after the other, and a letter typed at each.
void TypeAtWidths(Seen& seen, std::string& text, const std::string& letter,
                  const std::vector<size_t>& widths) {
  for (const size_t columns : widths) {
    if (testing::Test::HasFailure()) return;  // each wait would be long
    const std::string last = seen.screen().BeforeCursor();
    seen.Resize(columns);
    seen.Expect(text, last);
    seen.Type(letter);
    text += letter;
    seen.Expect(text, letter);
  }
}

// A line that the terminal got key by key, one that libedit has drawn at once, and one of both.
TEST_F(ChatResize, DrawsTheLineAnew) {
  Seen seen(folder_, {});
  std::string text = Words();
  seen.Type(text);
  seen.Expect(text, "d");
  TypeAtWidths(seen, text, "Z", {41, 40, 39, 119, 23, 12, 80});
  EXPECT_EQ(seen.screen().PromptRow().substr(0, 4), "> a ");
  seen.Resize(50);
  seen.Expect(text, "Z");
  seen.Resize(30);
  seen.Expect(text, "Z");
  // It is the same message.
  Terminal& terminal = seen.terminal();
  terminal.Type("\n");
  terminal.WaitFor("\x1b[?2004l");
  terminal.WaitFor("> ");
  terminal.Type("/save ~/chat\n");
  terminal.WaitFor("saved 1 turn");
  terminal.Type("/exit\n");
  EXPECT_EQ(terminal.Finish().status, 0);
  EXPECT_THAT(ReadFile(folder_.Path("chat")), testing::HasSubstr(text));
}

TEST_F(ChatResize, DrawsAnEmptyLineAnew) {
  Seen seen(folder_, {});
  std::string text;
  TypeAtWidths(seen, text, "Z", {40, 80});
}

TEST_F(ChatResize, DrawsAFullRowAnew) {
  Seen seen(folder_, {});
  std::string text(78, 'x');
  seen.Type(text);
  seen.Expect(text, "x");
  TypeAtWidths(seen, text, "Z", {40, 80});
}

TEST_F(ChatResize, DrawsPastedLinesAnew) {
  Seen seen(folder_, {});
  seen.Resize(23);
  seen.Expect("", " ");
  std::string text = Words() + "\n\n" + Words() + "\nlast";
  std::string typed = text;
  std::replace(typed.begin(), typed.end(), '\n', '\r');
  seen.Type("\x1b[200~" + typed + "\x1b[201~");
  seen.Expect(text, "t");
  TypeAtWidths(seen, text, "Z", {40, 39, 100});
}

TEST_F(ChatResize, DrawsWideCharactersAnew) {
  Seen seen(folder_, {});
  std::string text;
  TypeAtWidths(seen, text, "Z", {41});
  std::string more;
  for (int i = 0; i < 60; ++i) more += i % 9 == 0 ? "a" : "\u65e5";
  seen.Type(more);
  text += more;
  seen.Expect(text, "\u65e5");
  TypeAtWidths(seen, text, "\u672c", {30, 31, 29, 60, 81});
}

TEST_F(ChatResize, KeepsTheCursorInTheLine) {
  const std::string text = std::string(60, 'x') + std::string(60, 'y') + "abc";
  const std::string home = "\x01", right = "\x1b[C", left = "\x1b[D";
  std::string row_end = home;
  for (int i = 0; i < 30; ++i) row_end += right;
  for (const auto& [keys, at] :
       std::vector<std::pair<std::string, size_t>>{{home, 0},
                                                   {home + right + right, 2},
                                                   {row_end, 30},
                                                   {left + left + left, text.size() - 3}}) {
    Seen seen(folder_, {});
    seen.Type(text);
    seen.Expect(text, "c");
    seen.Type(keys + "Y");
    std::string changed = text;
    changed.insert(at, "Y");
    seen.Expect(changed, "Y");
    seen.Resize(33);
    seen.Expect(changed, "Y");
  }
}

// Rows stay where they are, and what is cut off is lost.
TEST_F(ChatResize, DrawsTheLineAnewWhereTheTerminalWrapsNothing) {
  Seen seen(folder_, {{"XTERM_VERSION", "XTerm(379)"}});
  std::string text = Words();
  seen.Type(text);
  seen.Expect(text, "d");
  TypeAtWidths(seen, text, "Z", {120, 200, 100});
}

}  // namespace
}  // namespace inlay

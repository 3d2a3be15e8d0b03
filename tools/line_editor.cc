#include "tools/line_editor.h"

#if __has_include(<histedit.h>)
#include <dlfcn.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <cwctype>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/byte_stream.h"
#include "base/printable.h"
#include "io/file/atomic_file.h"
#include "io/file/read_fully.h"
#include "tools/output.h"

namespace inlay {
namespace {

constexpr int kHistory = 1000;                                           // entries
constexpr char kPasteOn[] = "\033[?2004h", kPasteOff[] = "\033[?2004l";  // bracketed paste

// The functions of libedit that are used.
struct LibeditApi {
  decltype(&::el_init) init = nullptr;
  decltype(&::el_end) end = nullptr;
  decltype(&::el_set) set = nullptr;
  decltype(&::el_wset) wset = nullptr;
  decltype(&::el_get) get = nullptr;
  decltype(&::el_gets) gets = nullptr;
  decltype(&::el_wgetc) wgetc = nullptr;
  decltype(&::el_line) line = nullptr;
  decltype(&::el_wline) wline = nullptr;
  decltype(&::el_insertstr) insertstr = nullptr;
  decltype(&::el_winsertstr) winsertstr = nullptr;
  decltype(&::el_resize) resize = nullptr;
  decltype(&::el_source) source = nullptr;
  decltype(&::history_init) history_init = nullptr;
  decltype(&::history_end) history_end = nullptr;
  decltype(&::history) history = nullptr;

  bool Load() {
    void* library = nullptr;
    for (const char* name : {"libedit.so.2", "libedit.so.0"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return false;
    const auto find = [library](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find("el_init", init) && find("el_end", end) && find("el_set", set) &&
           find("el_wset", wset) && find("el_get", get) && find("el_gets", gets) &&
           find("el_wgetc", wgetc) && find("el_line", line) && find("el_wline", wline) &&
           find("el_insertstr", insertstr) && find("el_winsertstr", winsertstr) &&
           find("el_resize", resize) && find("el_source", source) &&
           find("history_init", history_init) && find("history_end", history_end) &&
           find("history", history);
  }
};

// Characters are edited as such only in a locale of UTF-8; numbers are still written with a point.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Whether the terminal wraps lines anew when its width changes. Most do; xterm, st and the Linux
// console cut them, and each row stays where it is.
bool TerminalRewraps() {
  const char* const term_variable = std::getenv("TERM");
  const absl::string_view term = term_variable == nullptr ? "" : term_variable;
  if (absl::StartsWith(term, "xterm")) return std::getenv("XTERM_VERSION") == nullptr;
  return !absl::StartsWith(term, "linux") && term != "st" && !absl::StartsWith(term, "st-");
}

// Finds the row of the cursor on a terminal that has wrapped an edited line anew: libedit has drawn
// the line in rows of `drawn` columns, and the terminal shows it in rows of `shown` columns.
class RowCounter {
 public:
  RowCounter(size_t drawn, size_t shown) : drawn_(drawn), shown_(shown) {}

  // Passes a character. `at_once` says whether libedit has drawn it together with all before it:
  // then it has left out spaces at the end of a row and begun the next one by a line break, so that
  // the terminal does not join these rows. Where characters came one by one it has written all.
  // Returns the row in which the character begins, from 0.
  size_t Pass(wchar_t c, bool at_once) {
    at_once_ = at_once;
    if (c == L'\n') {
      const size_t row = End();
      BreakLine();
      drawn_column_ = 0;
      return row;
    }
    if (c == L'\t') {
      const size_t row = PassCell(1, /*blank=*/true);
      while (drawn_column_ % 8 != 0) PassCell(1, /*blank=*/true);
      return row;
    }
    const auto wide = static_cast<wint_t>(c);
    if (std::iswprint(wide) != 0)
      return PassCell(static_cast<size_t>(std::max(wcwidth(c), 0)), c == L' ');
    // libedit shows others as ^A, \U+1234 or \U+12345.
    const bool control = wide < 0x100 && std::iswcntrl(wide) != 0;
    const int columns = control ? 2 : wide <= 0xffff ? 7 : 8;
    const size_t row = PassCell(1, /*blank=*/false);
    for (int i = 1; i < columns; ++i) PassCell(1, /*blank=*/false);
    return row;
  }

  // The row of the cursor behind the last character of the line.
  size_t End() {
    // libedit writes a cell into the next row as soon as one is full.
    if (filled_) return PassCell(1, /*blank=*/false);
    if (at_once_) blanks_ = 0;
    ShowBlanks();
    return row_;
  }

 private:
  size_t PassCell(size_t width, bool blank) {
    // libedit fills a row with spaces where a wide character has no room.
    while (drawn_column_ + width > drawn_) PassCell(1, /*blank=*/true);
    if (blank) {
      ++blanks_;
    } else {
      ShowBlanks();
      Show(width);
    }
    const size_t last = shown_column_ + blanks_;
    const size_t row = row_ + (last == 0 ? 0 : (last - 1) / shown_);
    drawn_column_ += width;
    filled_ = drawn_column_ == drawn_;
    if (!filled_) return row;
    drawn_column_ = 0;
    if (at_once_ && blanks_ > 0) {
      BreakLine();
    } else {
      ShowBlanks();
    }
    return row;
  }

  void Show(size_t width) {
    if (shown_column_ + width > shown_) {
      ++row_;
      shown_column_ = 0;
    }
    shown_column_ += width;
  }

  void ShowBlanks() {
    for (; blanks_ > 0; --blanks_) Show(1);
  }

  // What follows begins a row on every terminal.
  void BreakLine() {
    blanks_ = 0;
    ++row_;
    shown_column_ = 0;
    filled_ = false;
  }

  const size_t drawn_, shown_;
  size_t drawn_column_ = 0;
  size_t row_ = 0, shown_column_ = 0;  // on the terminal
  size_t blanks_ = 0;                  // spaces since then: written only if something follows them
  bool at_once_ = true;
  bool filled_ = false;  // the last cell was the last one of a row of libedit's
};

class Libedit final : public LineEditor {
 public:
  Libedit(const LibeditApi& api, Completer completer, std::string history, int shown_fd)
      : api_(api),
        completer_(std::move(completer)),
        history_path_(std::move(history)),
        shown_fd_(shown_fd) {}

  ~Libedit() override {
    if (line_ != nullptr) api_.end(line_);
    if (history_ != nullptr) api_.history_end(history_);
  }

  bool Init() {
    line_ = api_.init("inlay", stdin, shown_fd_ == STDOUT_FILENO ? stdout : stderr, stderr);
    history_ = api_.history_init();
    if (line_ == nullptr || history_ == nullptr) return false;
    get = api_.get;
    api_.set(line_, EL_CLIENTDATA, this);
    api_.set(line_, EL_PROMPT_ESC, &Libedit::Prompt, '\1');
    api_.set(line_, EL_EDITOR, "emacs");
    api_.wset(line_, EL_GETCFN, &Libedit::ReadCharacter);
    api_.set(line_, EL_HIST, api_.history, history_);
    api_.set(line_, EL_ADDFN, "inlay-complete", "Complete a command or path", &Libedit::Complete);
    api_.set(line_, EL_ADDFN, "inlay-paste", "Insert what is pasted", &Libedit::Paste);
    api_.set(line_, EL_ADDFN, "inlay-nothing", "Do nothing", &Libedit::DoNothing);
    const auto bind = [this](const char* key, const char* function) {
      api_.set(line_, EL_BIND, key, function, static_cast<char*>(nullptr));
    };
    for (const std::string& key : KeysOfTerminals()) bind(key.c_str(), "inlay-nothing");
    for (const auto& [key, function] : kKeys) bind(key, function);
    api_.source(line_, nullptr);  // ~/.editrc
    LoadHistory();
    return true;
  }

  TypedLine Read(const std::string& prompt, PromptSignals& signals) override {
    prompt_ = prompt;
    signals_ = &signals;
    drawn_at_once_ = 0;
    typed_ = {};
    Put(kPasteOn);
    // Before the prompt: what is typed as soon as it shows is not for the terminal's own editing.
    api_.set(line_, EL_PREP_TERM, 1);
    int count = 0;
    const char* const text = api_.gets(line_, &count);
    Put(kPasteOff);
    signals_ = nullptr;
    if (typed_.signal != 0) {
      typed_.end = TypedLine::End::kSignal;
    } else if (text != nullptr && count > 0) {
      typed_.end = TypedLine::End::kLine;
      typed_.text = std::string(absl::StripSuffix(text, "\n"));
    }
    return std::exchange(typed_, {});
  }

  void Remember(const std::string& message) override {
    HistEvent event;
    api_.history(history_, &event, H_ENTER, message.c_str());
    if (history_path_.empty()) return;
    const int fd = open(history_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    std::FILE* const file = fd < 0 ? nullptr : fdopen(fd, "a");
    if (file == nullptr) {
      if (fd >= 0) close(fd);
      return;
    }
    // The library writes its first line where the position is 0.
    std::fseek(file, 0, SEEK_END);
    // It goes back so many entries from the last, and writes from there.
    api_.history(history_, &event, H_NSAVE_FP, size_t{0}, file);
    std::fclose(file);
  }

 private:
  // As in other programs; libedit itself knows the keys of the terminal's description.
  static constexpr std::pair<const char*, const char*> kKeys[] = {
      {"^I", "inlay-complete"},          {"\\e[200~", "inlay-paste"},
      {"^R", "em-inc-search-prev"},      {"^W", "ed-delete-prev-word"},
      {"\\e[1~", "ed-move-to-beg"},      {"\\e[4~", "ed-move-to-end"},
      {"\\e[7~", "ed-move-to-beg"},      {"\\e[8~", "ed-move-to-end"},
      {"\\e[H", "ed-move-to-beg"},       {"\\e[F", "ed-move-to-end"},
      {"\\e[3~", "ed-delete-next-char"}, {"\\e[1;5C", "em-next-word"},
      {"\\e[1;5D", "ed-prev-word"}};

  // The sequences that terminals send for function keys, and for others with Shift, Alt or Ctrl, as
  // xterm does. Of one that is not bound, the library puts the last characters into the line.
  static std::vector<std::string> KeysOfTerminals() {
    constexpr absl::string_view kOthers[] = {"\\eOP",  "\\eOQ",  "\\eOR",  "\\eOS",  "\\e[[A",
                                             "\\e[[B", "\\e[[C", "\\e[[D", "\\e[[E", "\\e[Z"};
    std::vector<std::string> keys(std::begin(kOthers), std::end(kOthers));
    // Insert, Page Up, Page Down, F1 to F20.
    for (const int number : {2, 5, 6}) keys.push_back(absl::StrCat("\\e[", number, "~"));
    for (int number = 11; number <= 34; ++number) keys.push_back(absl::StrCat("\\e[", number, "~"));
    for (int modifier = 2; modifier <= 8; ++modifier) {
      for (const char letter : {'A', 'B', 'C', 'D', 'E', 'F', 'H', 'P', 'Q', 'R', 'S'})
        keys.push_back(absl::StrCat("\\e[1;", modifier, std::string(1, letter)));
      for (int number = 2; number <= 34; ++number)
        keys.push_back(absl::StrCat("\\e[", number, ";", modifier, "~"));
    }
    return keys;
  }

  static Libedit& Of(EditLine* line) {
    void* self = nullptr;
    get(line, EL_CLIENTDATA, &self);
    return *static_cast<Libedit*>(self);
  }

  static char* Prompt(EditLine* line) { return Of(line).prompt_.data(); }

  static int ReadCharacter(EditLine* line, wchar_t* character) {
    return Of(line).ReadOne(character);
  }

  static unsigned char Complete(EditLine* line, int) {
    return OrBeep([&] { return Of(line).CompleteWord(); });
  }

  static unsigned char DoNothing(EditLine*, int) { return CC_NORM; }

  static unsigned char Paste(EditLine* line, int) {
    return OrBeep([&] { return Of(line).InsertPaste(); });
  }

  // No exception may pass through the library, which is C.
  template <class Act>
  static unsigned char OrBeep(const Act& act) {
    try {
      return act();
    } catch (const std::bad_alloc&) {
      return CC_REFRESH_BEEP;
    }
  }

  void Put(absl::string_view text) const {
    [[maybe_unused]] const ssize_t n = write(shown_fd_, text.data(), text.size());
  }

  int ReadOne(wchar_t* character) {
    std::mbstate_t state = {};
    while (true) {
      const int signo = signals_->Wait(STDIN_FILENO);
      if (signo == SIGWINCH) {
        Redraw();
      } else if (signo == SIGTSTP) {
        // The shell gets the terminal as it was, without the prompt's colour; the prompt that is
        // shown again brings that.
        Put(kPasteOff);
        if (prompt_.find('\033') != std::string::npos) Put("\033[0m");
        api_.set(line_, EL_PREP_TERM, 0);
        PromptSignals::Stop();
        api_.set(line_, EL_PREP_TERM, 1);
        Put(kPasteOn);
        api_.set(line_, EL_REFRESH);
      } else if (signo != 0) {
        const LineInfo* const info = api_.line(line_);
        typed_.signal = signo;
        typed_.begun = info->lastchar != info->buffer;
        errno = EINTR;
        return -1;
      } else {
        char byte = 0;
        const ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return static_cast<int>(n);
        const size_t size = std::mbrtowc(character, &byte, 1, &state);
        if (size == static_cast<size_t>(-2)) continue;  // more of the character comes
        if (size == static_cast<size_t>(-1)) *character = L'\uFFFD';
        return 1;
      }
    }
  }

  // Draws the line anew on a terminal whose size has changed. libedit begins where the cursor is:
  // it is moved to where the line begins, and what the terminal made of the line is erased.
  // Allocates nothing: the library calls this.
  void Redraw() {
    const size_t drawn = Columns();
    api_.resize(line_);
    size_t rows = RowsAboveCursor(drawn, TerminalRewraps() ? Columns() : drawn);
    Put("\r");
    for (; rows > 0; --rows) Put("\033[A");
    Put("\033[J");
    api_.set(line_, EL_REFRESH);
    DrawnAtOnce();
  }

  // All of the line was just drawn, or is drawn when the library goes on.
  void DrawnAtOnce() {
    const LineInfoW& line = *api_.wline(line_);
    drawn_at_once_ = line.lastchar - line.buffer;
  }

  // The width for which libedit draws.
  size_t Columns() {
    int columns = 0;
    return api_.get(line_, EL_GETTC, "co", &columns) == 0 && columns > 1
               ? static_cast<size_t>(columns)
               : 80;
  }

  size_t RowsAboveCursor(size_t drawn, size_t shown) {
    RowCounter rows(drawn, shown);
    bool takes_columns = true;  // false between two \1
    std::mbstate_t state = {};
    for (const char& byte : prompt_) {
      wchar_t character = 0;
      if (byte == '\1') {
        takes_columns = !takes_columns;
      } else if (takes_columns && std::mbrtowc(&character, &byte, 1, &state) == 1) {
        rows.Pass(character, /*at_once=*/true);
      }
    }
    const LineInfoW& line = *api_.wline(line_);
    const auto pass = [&](const wchar_t* at) {
      return rows.Pass(*at, /*at_once=*/at - line.buffer < drawn_at_once_);
    };
    for (const wchar_t* at = line.buffer; at < line.cursor; ++at) pass(at);
    return line.cursor < line.lastchar ? pass(line.cursor) : rows.End();
  }

  unsigned char CompleteWord() {
    const LineInfo* const info = api_.line(line_);
    const std::string before(info->buffer, info->cursor);
    const Completions found = completer_(before);
    if (found.words.empty()) return CC_REFRESH_BEEP;
    const std::string common = CommonBeginning(found.words);
    const size_t typed = before.size() - found.begin;
    if (common.size() > typed) {
      api_.insertstr(line_, common.c_str() + typed);
      return CC_REFRESH;
    }
    std::string list = "\r\n";
    for (const std::string& word : found.words) absl::StrAppend(&list, Printable(word), " ");
    Put(absl::StrCat(list, "\r\n"));
    return CC_REDISPLAY;
  }

  // Everything up to the end of the paste, its line breaks included: Enter sends it.
  unsigned char InsertPaste() {
    constexpr std::wstring_view kEnd = L"\033[201~";
    std::wstring text;
    wchar_t character = 0;
    bool ended = false;
    while (!ended && api_.wgetc(line_, &character) == 1) {
      text += character == L'\r' ? L'\n' : character;
      ended = text.size() >= kEnd.size() &&
              std::wstring_view(text).substr(text.size() - kEnd.size()) == kEnd;
    }
    if (ended) text.resize(text.size() - kEnd.size());
    std::erase_if(text, [](wchar_t c) { return (c < 32 && c != L'\n' && c != L'\t') || c == 127; });
    const LineInfoW& line = *api_.wline(line_);
    const bool alone = line.lastchar == line.buffer;
    if (!text.empty()) api_.winsertstr(line_, text.c_str());
    if (alone) DrawnAtOnce();
    return typed_.signal != 0 ? CC_EOF : CC_REFRESH;
  }

  void LoadHistory() {
    HistEvent event;
    api_.history(history_, &event, H_SETSIZE, kHistory);
    api_.history(history_, &event, H_SETUNIQUE, 1);
    if (history_path_.empty()) return;
    struct stat info;
    if (stat(history_path_.c_str(), &info) != 0) return;
    // To open a pipe would wait for who writes to it, and the library reads lines of any length.
    constexpr off_t kMostRead = off_t{16} << 20, kMostKept = off_t{1} << 20;
    if (!S_ISREG(info.st_mode) || info.st_size > kMostRead) {
      WriteSentence(absl::StrCat("what is typed is not remembered, since ",
                                 PrintableName(history_path_), " is no file of at most ",
                                 kMostRead >> 20, " MiB"));
      history_path_.clear();
      return;
    }
    const int loaded = api_.history(history_, &event, H_LOAD, history_path_.c_str());
    // Entries are appended: now and then the oldest are dropped. A file that could not be read
    // (loaded < 0) stays as it is.
    if (loaded >= 2 * kHistory || (loaded >= 0 && info.st_size > kMostKept)) SaveHistory();
  }

  // Replaces the file by the entries that there are, or leaves it as it is after an error.
  void SaveHistory() {
    // The library sets the permissions of the file into which it writes: memory has none.
    std::FILE* const copy = std::tmpfile();
    if (copy == nullptr) return;
    HistEvent event;
    const bool saved =
        api_.history(history_, &event, H_SAVE_FP, copy) >= 0 && std::fflush(copy) == 0;
    const long size = std::ftell(copy);
    const absl::StatusOr<std::string> text =
        ReadAt(fileno(copy), 0, static_cast<size_t>(std::max(size, 0L)), history_path_);
    std::fclose(copy);
    if (!saved || !text.ok()) return;
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(history_path_);
    if (file.ok() && file->Write(AsBytes(*text)).ok()) file->Commit().IgnoreError();
  }

  // Of the library that was loaded: callbacks need it to find their object.
  static inline decltype(&::el_get) get = nullptr;

  const LibeditApi api_;
  const Completer completer_;
  std::string history_path_;  // "": nothing is remembered
  const int shown_fd_;
  EditLine* line_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  PromptSignals* signals_ = nullptr;
  ptrdiff_t drawn_at_once_ = 0;  // so many characters at the beginning of the line
  TypedLine typed_;
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::Create(Completer completer, const std::string& history,
                                               int shown_fd) {
  const char* const term = std::getenv("TERM");
  if (term == nullptr || *term == 0 || absl::string_view(term) == "dumb") return nullptr;
  LibeditApi api;
  if (!api.Load()) return nullptr;
  UseUtf8();
  auto editor = std::make_unique<Libedit>(api, std::move(completer), history, shown_fd);
  if (!editor->Init()) return nullptr;
  return editor;
}

}  // namespace inlay

#else  // without libedit's header

namespace inlay {

std::unique_ptr<LineEditor> LineEditor::Create(Completer, const std::string&, int) {
  return nullptr;
}

}  // namespace inlay

#endif

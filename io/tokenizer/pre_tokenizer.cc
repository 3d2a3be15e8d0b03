#include "io/tokenizer/pre_tokenizer.h"

#include <cstddef>
#include <limits>

#include "base/utf8.h"
#include "io/tokenizer/unicode_classes.h"

namespace inlay {
namespace {

using Class = CodePointClass;

constexpr PreTokenizerInfo kInfos[] = {
    {kUnnamedPreTokenizer, PreTokenizer::kUnnamed, false, false},
    {"gpt-2", PreTokenizer::kGpt2, false, false},
    {"gpt-neox", PreTokenizer::kGpt2, false, false, true},
    {"mpt", PreTokenizer::kGpt2, false, false, true},
    {"olmo", PreTokenizer::kGpt2, false, false, true},
    {"refact", PreTokenizer::kSingleDigits, false, false},
    {"starcoder", PreTokenizer::kSingleDigits, false, false},
    {"codeshell", PreTokenizer::kSingleDigits, false, false},
    {"smollm", PreTokenizer::kSingleDigits, false, false},
    {"dbrx", PreTokenizer::kLlama3, false, false},
    {"smaug-bpe", PreTokenizer::kLlama3, false, false},
    {"llama-bpe", PreTokenizer::kLlama3, true, true},
    {"llama3", PreTokenizer::kLlama3, true, true},
    {"llama-v3", PreTokenizer::kLlama3, true, true},
    {"lfm2", PreTokenizer::kLlama3, true, true},
    {"falcon-h1", PreTokenizer::kLlama3, true, true},
    {"pixtral", PreTokenizer::kLlama3, true, true},
    {"qwen2", PreTokenizer::kQwen2, false, false, true},
    {"qwen35", PreTokenizer::kQwen35, false, false, true},
};

// Not here: Granite, whose versions have different rules ("refact", "dbrx"), and Mamba 2, whose
// models have vocabularies of several makers.
struct FamilyRules {
  absl::string_view architecture;
  absl::string_view pre;
};
constexpr FamilyRules kFamilies[] = {
    {"falcon-h1", "falcon-h1"},    {"lfm2", "lfm2"},
    {"lfm2moe", "lfm2"},           {"nemotron_h", "pixtral"},
    {"nemotron_h_moe", "pixtral"}, {"qwen35", "qwen35"},
    {"qwen35moe", "qwen35"},
};

struct Char {
  Class kind;
  size_t end;  // where the next one starts
};

// The text that is cut into words; places in it are byte offsets.
class Scanner {
 public:
  // `marks` is the class that marks count as.
  explicit Scanner(absl::string_view text, Class marks = Class::kOther)
      : text_(text), marks_(marks) {}

  size_t size() const { return text_.size(); }

  // Whether the text ends at `at`. This is recorded, since text that follows could change the
  // result.
  bool Ends(size_t at) const {
    if (at < size()) return false;
    saw_end_ = true;
    return true;
  }
  // Whether any result since the last ForgetEnd depends on where the text ends.
  bool saw_end() const { return saw_end_; }
  void ForgetEnd() const { saw_end_ = false; }

  char ByteAt(size_t at) const { return text_[at]; }
  bool IsNewline(size_t at) const { return text_[at] == '\r' || text_[at] == '\n'; }

  Char CharAt(size_t at) const {
    Char c = CharWithPunctuationAt(at);
    if (c.kind == Class::kPunctuation) c.kind = Class::kOther;
    if (c.kind == Class::kMark) c.kind = marks_;
    return c;
  }

  // CharAt with punctuation and marks as classes of their own.
  Char CharWithPunctuationAt(size_t at) const {
    const uint8_t byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) return {ClassOf(byte), at + 1};
    if (size() - at < kLongestCharacter) saw_end_ = true;  // it may lack bytes
    const CodePoint c = DecodeUtf8(text_.substr(at));
    return c.valid ? Char{ClassOf(c.value), at + c.length} : Char{Class::kOther, at + 1};
  }

  // Whether a character of this class starts at `at`.
  bool Is(size_t at, Class kind) const { return !Ends(at) && CharAt(at).kind == kind; }

  // The end of the characters of one class from `at` on, at most `most` of them.
  size_t RunEnd(size_t at, Class kind, size_t most = std::numeric_limits<size_t>::max()) const {
    for (; most > 0 && !Ends(at); --most) {
      const Char c = CharAt(at);
      if (c.kind != kind) break;
      at = c.end;
    }
    return at;
  }

  // The end of 's, 't, 're, 've, 'm, 'll or 'd at `at`; `at` itself when there is none.
  size_t ContractionEnd(size_t at, bool any_case) const {
    if (text_[at] != '\'') return at;
    const auto letter = [&](size_t i) {
      if (Ends(i)) return '\0';
      const char c = text_[i];
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    const char first = letter(at + 1);
    const char second = letter(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
        (first == 'l' && second == 'l')) {
      return at + 3;
    }
    return at;
  }

  // \s+(?!\S)|\s+ at a space: all spaces at the end of the text, else all but the last one, which
  // belongs to the next word, unless it is the only one.
  size_t SpacesEnd(size_t at) const {
    size_t last = at;
    size_t end = at;
    while (!Ends(end)) {
      const Char c = CharAt(end);
      if (c.kind != Class::kSpace) return last > at ? last : end;
      last = end;
      end = c.end;
    }
    return end;
  }

 private:
  absl::string_view text_;
  Class marks_;
  mutable bool saw_end_ = false;
};

size_t Gpt2WordEnd(const Scanner& text, size_t at) {
  const size_t contraction = text.ContractionEnd(at, /*any_case=*/false);
  if (contraction > at) return contraction;
  const bool space = text.ByteAt(at) == ' ';
  const size_t start = space && !text.Ends(at + 1) ? at + 1 : at;
  const Class kind = text.CharAt(start).kind;
  if (kind != Class::kSpace) return text.RunEnd(start, kind);
  return text.SpacesEnd(at);
}

// Numbers are cut after `digits` characters.
template <size_t digits>
size_t Llama3WordEnd(const Scanner& text, size_t at) {
  const size_t contraction = text.ContractionEnd(at, /*any_case=*/true);
  if (contraction > at) return contraction;
  const Char first = text.CharAt(at);
  if (first.kind == Class::kLetter) return text.RunEnd(at, Class::kLetter);
  if (first.kind == Class::kNumber) return text.RunEnd(at, Class::kNumber, digits);
  if (!text.IsNewline(at) && text.Is(first.end, Class::kLetter)) {
    return text.RunEnd(first.end, Class::kLetter);
  }
  const size_t start = text.ByteAt(at) == ' ' && text.Is(first.end, Class::kOther) ? first.end : at;
  if (text.Is(start, Class::kOther)) {
    size_t end = text.RunEnd(start, Class::kOther);
    while (!text.Ends(end) && text.IsNewline(end)) ++end;
    return end;
  }
  // Spaces up to and including the last newline among them. Going backwards byte by byte is safe:
  // no byte of a longer character is a newline.
  size_t end = text.RunEnd(at, Class::kSpace);
  while (end > at && !text.IsNewline(end - 1)) --end;
  return end > at ? end : text.SpacesEnd(at);
}

// Like SplitWords, where word_end(scanner, at) is the end of the word at `at` and marks count as
// characters of the class `marks`.
template <typename WordEnd>
size_t Split(absl::string_view text, bool last, const WordEnd& word_end,
             absl::FunctionRef<void(absl::string_view)> use, Class marks = Class::kOther) {
  const Scanner scanner(text, marks);
  size_t at = 0;
  while (at < text.size()) {
    scanner.ForgetEnd();
    const size_t end = word_end(scanner, at);
    if (!last && scanner.saw_end()) break;
    use(text.substr(at, end - at));
    at = end;
  }
  return at;
}

size_t SplitSingleDigits(absl::string_view text, bool last,
                         absl::FunctionRef<void(absl::string_view)> use) {
  const Scanner scanner(text);
  size_t at = 0;
  while (at < text.size()) {
    scanner.ForgetEnd();
    size_t end = at;
    Char c = scanner.CharAt(at);
    if (c.kind == Class::kNumber) {
      if (!last && scanner.saw_end()) break;
      use(text.substr(at, c.end - at));
      at = c.end;
      continue;
    }
    while (end < text.size() && (c = scanner.CharAt(end)).kind != Class::kNumber) end = c.end;
    // If a number follows, these words end here, whatever text comes later.
    at += Split(text.substr(at, end - at), last || end < text.size(), Gpt2WordEnd, use);
    if (at < end) break;
  }
  return at;
}

// [\p{P}$+<=>^~|]+ at `at`; `at` itself when there is none.
size_t PunctuationEnd(const Scanner& text, size_t at) {
  while (!text.Ends(at)) {
    const Char c = text.CharWithPunctuationAt(at);
    const bool symbol =
        absl::string_view("$+<=>^~|").find(text.ByteAt(at)) != absl::string_view::npos;
    if (c.kind != Class::kPunctuation && !symbol) break;
    at = c.end;
  }
  return at;
}

// Cuts one of the words of kGpt2's rules further, as kUnnamed does.
void SplitNumber(absl::string_view word, absl::FunctionRef<void(absl::string_view)> use) {
  const Scanner text(word);
  size_t begin = word[0] == ' ' && text.Is(1, Class::kNumber) ? 1 : 0;
  if (!text.Is(begin, Class::kNumber)) {
    use(word);
    return;
  }
  if (begin > 0) use(word.substr(0, begin));
  const auto is_digit = [&](size_t i) {
    return i < word.size() && word[i] >= '0' && word[i] <= '9';
  };
  for (size_t at = begin; at < word.size();) {
    if (!is_digit(at) || !is_digit(at + 1) || !is_digit(at + 2)) {
      at = text.CharAt(at).end;
      continue;
    }
    if (at > begin) use(word.substr(begin, at - begin));
    use(word.substr(at, 3));
    begin = at = at + 3;
  }
  if (begin < word.size()) use(word.substr(begin));
}

size_t SplitUnnamed(absl::string_view text, bool last,
                    absl::FunctionRef<void(absl::string_view)> use) {
  const Scanner scanner(text);
  const auto use_word = [use](absl::string_view word) { SplitNumber(word, use); };
  size_t at = 0;
  while (at < text.size()) {
    scanner.ForgetEnd();
    const size_t punctuation = PunctuationEnd(scanner, at);
    if (punctuation > at) {
      if (!last && scanner.saw_end()) break;
      use(text.substr(at, punctuation - at));
    }
    size_t end = punctuation;
    while (end < text.size() && PunctuationEnd(scanner, end) == end) end = scanner.CharAt(end).end;
    // If punctuation follows, these words end here, whatever text comes later.
    at = punctuation + Split(text.substr(punctuation, end - punctuation), last || end < text.size(),
                             Gpt2WordEnd, use_word);
    if (at < end) break;
  }
  return at;
}

}  // namespace

absl::Span<const PreTokenizerInfo> PreTokenizers() { return kInfos; }

const PreTokenizerInfo* FindPreTokenizer(absl::string_view name) {
  for (const PreTokenizerInfo& info : kInfos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

absl::string_view PreTokenizerOfFamily(absl::string_view architecture) {
  for (const FamilyRules& family : kFamilies) {
    if (family.architecture == architecture) return family.pre;
  }
  return kUnnamedPreTokenizer;
}

size_t SplitWords(PreTokenizer rules, absl::string_view text, bool last,
                  absl::FunctionRef<void(absl::string_view)> use) {
  switch (rules) {
    case PreTokenizer::kGpt2:
      return Split(text, last, Gpt2WordEnd, use);
    case PreTokenizer::kSingleDigits:
      return SplitSingleDigits(text, last, use);
    case PreTokenizer::kLlama3:
      return Split(text, last, Llama3WordEnd<3>, use);
    case PreTokenizer::kQwen2:
      return Split(text, last, Llama3WordEnd<1>, use);
    case PreTokenizer::kQwen35:
      return Split(text, last, Llama3WordEnd<1>, use, /*marks=*/Class::kLetter);
    case PreTokenizer::kUnnamed:
      return SplitUnnamed(text, last, use);
  }
  return text.size();
}

}  // namespace inlay

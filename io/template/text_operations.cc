#include "io/template/text_operations.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/operators.h"

namespace inlay::jinja {
namespace {

// The code points of a text, one after another.
class CodePoints {
 public:
  explicit CodePoints(const Text& text) : bytes_(text.bytes()) {}

  bool done() const { return at_ == bytes_.size(); }
  // The next one; `valid` is false for a byte that is not UTF-8.
  CodePoint Read() {
    CodePoint c = DecodeUtf8(bytes_.substr(at_));
    if (!c.valid) c.length = 1;
    start_ = at_;
    at_ += c.length;
    return c;
  }
  // Where the last one that was read starts.
  size_t start() const { return start_; }
  absl::string_view raw() const { return bytes_.substr(start_, at_ - start_); }
  absl::string_view rest() const { return bytes_.substr(at_); }

 private:
  absl::string_view bytes_;
  size_t start_ = 0, at_ = 0;
};

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c); }

// Appends the code point that was just read in another case.
void AppendRead(const CodePoints& in, const CodePoint& c, Case to, bool after_letter, Origin origin,
                Text* out) {
  if (!c.valid) {
    out->Append(in.raw(), origin);
    return;
  }
  if (c.value < 0x80 && to != Case::kTitle) {
    const auto byte = static_cast<char>(c.value);
    const bool changes =
        to == Case::kUpper ? byte >= 'a' && byte <= 'z' : byte >= 'A' && byte <= 'Z';
    const char changed = changes ? static_cast<char>(byte ^ 0x20) : byte;
    out->Append(absl::string_view(&changed, 1), origin);
    return;
  }
  std::string changed;
  const bool ends_word = in.rest().empty() || !IsCased(DecodeUtf8(in.rest()).value);
  if (to == Case::kLower && c.value == kCapitalSigma && after_letter && ends_word) {
    AppendUtf8(kFinalSigma, &changed);
  } else {
    AppendInCase(c.value, to, &changed);
  }
  out->Append(changed, origin);
}

// Every code point in the case that `choose(c, whether a cased letter is before it)` says.
template <class Choose>
absl::StatusOr<Text> ChangeCase(Budget& budget, const Text& text, const Choose& choose) {
  // One code point of two bytes may become three of two.
  INLAY_RETURN_IF_ERROR(budget.Reserve(3 * text.size()));
  Text out;
  OriginReader origins(text);
  bool after_letter = false;
  for (CodePoints in(text); !in.done();) {
    const CodePoint c = in.Read();
    AppendRead(in, c, choose(c, after_letter), after_letter, origins.At(in.start()), &out);
    after_letter = c.valid && IsCased(c.value);
  }
  return out;
}

// The most that a split may find, as a count that is never reached when it is negative.
size_t MostParts(int64_t most) { return most < 0 ? SIZE_MAX : static_cast<size_t>(most); }

// What `parts` take at least; each is to become a value.
absl::Status ReserveParts(Budget& budget, size_t parts) {
  return budget.Reserve(parts * 2 * sizeof(Text));
}

// Appends the part [begin, end) and, now and then, counts the parts.
absl::Status AddPart(Budget& budget, const Text& text, size_t begin, size_t end,
                     std::vector<Text>* parts) {
  if (parts->size() % 256 == 0) INLAY_RETURN_IF_ERROR(ReserveParts(budget, 256 + parts->size()));
  parts->push_back(text.Part(begin, end));
  return absl::OkStatus();
}

// The bytes of the word that `text`, which has no white space at this side, begins or ends with.
size_t WordSize(absl::string_view text, Side from) {
  size_t size = 0;
  while (size < text.size()) {
    const absl::string_view rest =
        from == Side::kRight ? text.substr(0, text.size() - size) : text.substr(size);
    const size_t next = from == Side::kRight ? LastCodePointSize(rest) : ByteOfCodePoint(rest, 1);
    const size_t at = from == Side::kRight ? rest.size() - next : 0;
    if (LeadingSpace(rest.substr(at, next)) > 0) break;
    size += next;
  }
  return size;
}

absl::StatusOr<std::vector<Text>> SplitFromRight(Budget& budget, const Text& text,
                                                 absl::string_view separator, int64_t most) {
  const absl::string_view bytes = text.bytes();
  INLAY_RETURN_IF_ERROR(
      budget.Step(bytes.size() / 16 + bytes.size() * separator.size() / 1024 + 1));
  std::vector<Text> parts;
  size_t end = bytes.size();
  while (parts.size() < MostParts(most) && end >= separator.size()) {
    const size_t at = bytes.rfind(separator, end - separator.size());
    if (at == absl::string_view::npos) break;
    INLAY_RETURN_IF_ERROR(AddPart(budget, text, at + separator.size(), end, &parts));
    end = at;
  }
  INLAY_RETURN_IF_ERROR(AddPart(budget, text, 0, end, &parts));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

Text StripSpace(const Text& text, Side side) {
  const absl::string_view bytes = text.bytes();
  const size_t begin = side == Side::kRight ? 0 : LeadingSpace(bytes);
  const size_t end =
      side == Side::kLeft ? bytes.size() : bytes.size() - TrailingSpace(bytes.substr(begin));
  return text.Part(begin, end);
}

absl::StatusOr<Text> StripCharacters(Budget& budget, const Text& text, absl::string_view characters,
                                     Side side) {
  absl::string_view rest = text.bytes();
  const auto strips = [&](absl::string_view code_point) {
    return !code_point.empty() && absl::StrContains(characters, code_point);
  };
  // The set is searched for every code point that goes, and for the two that stay.
  const uint64_t search = characters.size() / 16 + 1;
  size_t begin = 0;
  while (side != Side::kRight) {
    const absl::string_view first = rest.substr(0, ByteOfCodePoint(rest, 1));
    INLAY_RETURN_IF_ERROR(budget.Step(search));
    if (!strips(first)) break;
    begin += first.size();
    rest.remove_prefix(first.size());
  }
  while (side != Side::kLeft) {
    const absl::string_view last = rest.substr(rest.size() - LastCodePointSize(rest));
    INLAY_RETURN_IF_ERROR(budget.Step(search));
    if (!strips(last)) break;
    rest.remove_suffix(last.size());
  }
  return text.Part(begin, begin + rest.size());
}

absl::StatusOr<Text> InCase(Budget& budget, const Text& text, Case to) {
  return ChangeCase(budget, text, [to](const CodePoint&, bool) { return to; });
}

absl::StatusOr<Text> Capitalize(Budget& budget, const Text& text) {
  bool first = true;
  return ChangeCase(budget, text, [&first](const CodePoint&, bool) {
    return std::exchange(first, false) ? Case::kTitle : Case::kLower;
  });
}

absl::StatusOr<Text> TitleWords(Budget& budget, const Text& text) {
  return ChangeCase(budget, text, [](const CodePoint&, bool after_letter) {
    return after_letter ? Case::kLower : Case::kTitle;
  });
}

absl::StatusOr<Text> TitleFilter(Budget& budget, const Text& text) {
  bool starts_word = true;
  return ChangeCase(budget, text, [&starts_word](const CodePoint& c, bool) {
    const bool separates = c.valid && (IsSpace(c.value) || c.value == '-' || c.value == '(' ||
                                       c.value == '{' || c.value == '[' || c.value == '<');
    return std::exchange(starts_word, separates) ? Case::kUpper : Case::kLower;
  });
}

absl::StatusOr<std::vector<Text>> Split(Budget& budget, const Text& text,
                                        absl::string_view separator, int64_t most, Side from) {
  assert(!separator.empty());
  if (from == Side::kRight) return SplitFromRight(budget, text, separator, most);
  std::vector<Text> parts;
  size_t begin = 0;
  while (parts.size() < MostParts(most)) {
    INLAY_ASSIGN_OR_RETURN(const size_t at, Find(budget, text.bytes(), separator, begin));
    if (at == absl::string_view::npos) break;
    INLAY_RETURN_IF_ERROR(AddPart(budget, text, begin, at, &parts));
    begin = at + separator.size();
  }
  INLAY_RETURN_IF_ERROR(AddPart(budget, text, begin, text.size(), &parts));
  return parts;
}

absl::StatusOr<std::vector<Text>> SplitSpace(Budget& budget, const Text& text, int64_t most,
                                             Side from) {
  const absl::string_view bytes = text.bytes();
  INLAY_RETURN_IF_ERROR(budget.StepBytes(bytes.size()));
  std::vector<Text> parts;
  absl::string_view rest = bytes;
  const auto trim = [&] {
    if (from == Side::kRight) {
      rest.remove_suffix(TrailingSpace(rest));
    } else {
      rest.remove_prefix(LeadingSpace(rest));
    }
  };
  for (trim(); !rest.empty(); trim()) {
    const size_t size = parts.size() < MostParts(most) ? WordSize(rest, from) : rest.size();
    if (from == Side::kRight) rest.remove_suffix(size);
    const auto begin =
        static_cast<size_t>(rest.data() - bytes.data()) + (from == Side::kRight ? rest.size() : 0);
    INLAY_RETURN_IF_ERROR(AddPart(budget, text, begin, begin + size, &parts));
    if (from == Side::kLeft) rest.remove_prefix(size);
  }
  if (from == Side::kRight) std::reverse(parts.begin(), parts.end());
  return parts;
}

absl::StatusOr<std::vector<Text>> SplitLines(Budget& budget, const Text& text, bool keep_ends) {
  const absl::string_view bytes = text.bytes();
  INLAY_RETURN_IF_ERROR(budget.StepBytes(bytes.size()));
  std::vector<Text> lines;
  size_t begin = 0, at = 0;
  while (at < bytes.size()) {
    const size_t line_break = LineBreakSize(bytes.substr(at));
    if (line_break == 0) {
      ++at;
      continue;
    }
    const size_t end = keep_ends ? at + line_break : at;
    INLAY_RETURN_IF_ERROR(AddPart(budget, text, begin, end, &lines));
    begin = at = at + line_break;
  }
  if (begin < bytes.size())
    INLAY_RETURN_IF_ERROR(AddPart(budget, text, begin, bytes.size(), &lines));
  return lines;
}

absl::StatusOr<Text> Join(Budget& budget, const Text& separator, absl::Span<const Text> parts) {
  size_t bytes = parts.empty() ? 0 : (parts.size() - 1) * separator.size();
  for (const Text& part : parts) bytes += part.size();
  INLAY_RETURN_IF_ERROR(budget.Reserve(bytes + parts.size() * sizeof(OriginRun)));
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.Append(separator);
    out.Append(parts[i]);
  }
  return out;
}

absl::StatusOr<Text> Repeat(Budget& budget, const Text& text, int64_t times) {
  Text out;
  if (text.empty() || times <= 0) return out;
  const size_t count = static_cast<size_t>(times);
  const size_t each = text.memory();
  if (count > SIZE_MAX / each) return budget.CheckBytes(SIZE_MAX);
  INLAY_RETURN_IF_ERROR(budget.Reserve(count * each));
  for (size_t i = 0; i < count; ++i) out.Append(text);
  return out;
}

absl::StatusOr<Text> Replace(Budget& budget, const Text& text, absl::string_view old,
                             const Text& with, int64_t most) {
  INLAY_RETURN_IF_ERROR(budget.StepBytes(text.size()));
  Text out;
  size_t begin = 0, uncounted = 0;
  const absl::string_view bytes = text.bytes();
  for (size_t done = 0; done < MostParts(most); ++done) {
    size_t at = begin;
    if (!old.empty()) {
      INLAY_ASSIGN_OR_RETURN(at, Find(budget, bytes, old, begin));
      if (at == absl::string_view::npos) break;
    } else if (done > 0) {  // between all code points
      if (begin == bytes.size()) break;
      at = begin + ByteOfCodePoint(bytes.substr(begin), 1);
    }
    out.AppendPart(text, begin, at);
    out.Append(with);
    begin = at + old.size();
    uncounted += with.size() + sizeof(OriginRun);
    if (uncounted < 4096) continue;
    INLAY_RETURN_IF_ERROR(budget.CheckBytes(out.size() + with.size()));
    INLAY_RETURN_IF_ERROR(budget.StepBytes(std::exchange(uncounted, 0)));
  }
  INLAY_RETURN_IF_ERROR(budget.CheckBytes(out.size() + bytes.size() - begin));
  out.AppendPart(text, begin, bytes.size());
  return out;
}

absl::StatusOr<Text> Indent(Budget& budget, const Text& text, const Text& indention, bool first,
                            bool blank) {
  // Jinja adds the newline so that one at the end of the text is kept.
  Text whole = text;
  whole.Append("\n", Origin::kTemplate);
  INLAY_ASSIGN_OR_RETURN(std::vector<Text> lines, SplitLines(budget, whole, /*keep_ends=*/false));
  const Text newline("\n", Origin::kTemplate);
  INLAY_RETURN_IF_ERROR(budget.Reserve(text.size() + lines.size() * (indention.size() + 1)));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.Append(newline);
    if (i == 0 ? first : blank || !lines[i].empty()) out.Append(indention);
    out.Append(lines[i]);
  }
  return out;
}

absl::StatusOr<Text> EscapeHtml(Budget& budget, const Text& text) {
  INLAY_RETURN_IF_ERROR(budget.Reserve(5 * text.size()));
  Text out;
  OriginReader origins(text);
  for (size_t at = 0; at < text.size(); ++at) {
    const absl::string_view byte = text.bytes().substr(at, 1);
    const Origin origin = origins.At(at);
    out.Append(byte == "&"    ? "&amp;"
               : byte == "<"  ? "&lt;"
               : byte == ">"  ? "&gt;"
               : byte == "'"  ? "&#39;"
               : byte == "\"" ? "&#34;"
                              : byte,
               origin);
  }
  return out;
}

absl::StatusOr<Text> Pad(Budget& budget, const Text& text, int64_t width, const Text& fill,
                         Side side) {
  INLAY_RETURN_IF_ERROR(budget.StepBytes(text.size()));
  const auto size = static_cast<int64_t>(CountCodePoints(text.bytes()));
  if (width <= size) return text;
  const int64_t missing = width - size;
  // str.center puts the odd one to the left when the width is odd.
  const int64_t left = side == Side::kRight  ? 0
                       : side == Side::kLeft ? missing
                                             : missing / 2 + (missing & width & 1);
  INLAY_ASSIGN_OR_RETURN(Text out, Repeat(budget, fill, left));
  out.Append(text);
  INLAY_ASSIGN_OR_RETURN(const Text right, Repeat(budget, fill, missing - left));
  out.Append(right);
  return out;
}

}  // namespace inlay::jinja

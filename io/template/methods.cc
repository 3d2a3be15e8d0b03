// The functions of Python's str, dict, list and tuple, and of the variable `loop`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/format.h"
#include "io/template/functions.h"
#include "io/template/loop.h"
#include "io/template/operators.h"
#include "io/template/text_operations.h"
#include "io/template/unicode_text.h"
#include "io/tokenizer/unicode_classes.h"

namespace inlay::jinja {
namespace {

// A string of the same kind as `self`: what |safe made stays safe.
Value SameKind(Context& context, const Value& self, Text text) {
  return Value::String(std::move(text), &context.budget, self.string().markup);
}

absl::Status RefuseMarkup(const Value& self, absl::string_view function) {
  if (!self.string().markup) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("the function ", function, " after |safe is not supported"));
}

absl::StatusOr<Value> ListOf(Context& context, const Value& self, std::vector<Text> parts) {
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(parts.size() * (sizeof(Value) + sizeof(StringRep))));
  Values values;
  for (Text& part : parts) values.push_back(SameKind(context, self, std::move(part)));
  return Value::List(std::move(values), &context.budget);
}

template <Side kSide>
absl::StatusOr<Value> Strip(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("strip", {"chars"}, 0, arguments));
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(self.bytes().size()));
  if (args.Or(0, Value::None()).is(Type::kNone))
    return SameKind(context, self, StripSpace(self.text(), kSide));
  INLAY_ASSIGN_OR_RETURN(const Value characters, args.StringOr(0));
  INLAY_ASSIGN_OR_RETURN(Text text,
                         StripCharacters(context.budget, self.text(), characters.bytes(), kSide));
  return SameKind(context, self, std::move(text));
}

template <Side kFrom>
absl::StatusOr<Value> SplitString(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("split", {"sep", "maxsplit"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t most, args.IntegerOr(1, -1));
  std::vector<Text> parts;
  if (args.Or(0, Value::None()).is(Type::kNone)) {
    INLAY_ASSIGN_OR_RETURN(parts, SplitSpace(context.budget, self.text(), most, kFrom));
  } else {
    INLAY_ASSIGN_OR_RETURN(const Value separator, args.StringOr(0));
    if (separator.bytes().empty()) return absl::InvalidArgumentError("split needs a separator");
    INLAY_ASSIGN_OR_RETURN(parts,
                           Split(context.budget, self.text(), separator.bytes(), most, kFrom));
  }
  return ListOf(context, self, std::move(parts));
}

absl::StatusOr<Value> SplitLinesOf(Context& context, const Value& self,
                                   const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("splitlines", {"keepends"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(std::vector<Text> lines,
                         SplitLines(context.budget, self.text(), args.IsTrue(0)));
  return ListOf(context, self, std::move(lines));
}

// What is before, in and after the first (kLeft) or last separator.
template <Side kFrom>
absl::StatusOr<Value> Partition(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("partition", {"sep"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value separator, args.StringOr(0));
  if (separator.bytes().empty()) return absl::InvalidArgumentError("partition needs a separator");
  INLAY_ASSIGN_OR_RETURN(std::vector<Text> parts,
                         Split(context.budget, self.text(), separator.bytes(), 1, kFrom));
  if (parts.size() == 2) {
    parts.insert(parts.begin() + 1, separator.text());
  } else {
    parts.resize(3);
    if (kFrom == Side::kRight) std::swap(parts[0], parts[2]);
  }
  Values values;
  for (Text& part : parts) values.push_back(SameKind(context, self, std::move(part)));
  return Value::Sequence(SequenceKind::kTuple, std::move(values), &context.budget);
}

template <Case kCase>
absl::StatusOr<Value> ChangeOwnCase(Context& context, const Value& self,
                                    const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("upper or lower", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(Text text, InCase(context.budget, self.text(), kCase));
  return SameKind(context, self, std::move(text));
}

template <absl::StatusOr<Text> (*kChange)(Budget&, const Text&)>
absl::StatusOr<Value> ChangeSelf(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the function", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(Text text, kChange(context.budget, self.text()));
  return SameKind(context, self, std::move(text));
}

absl::StatusOr<Value> ReplaceIn(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(RefuseMarkup(self, "replace"));
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("replace", {"old", "new", "count"}, 2, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value old, args.StringOr(0));
  INLAY_ASSIGN_OR_RETURN(const Value with, args.StringOr(1));
  INLAY_ASSIGN_OR_RETURN(const int64_t most, args.IntegerOr(2, -1));
  INLAY_ASSIGN_OR_RETURN(Text text,
                         Replace(context.budget, self.text(), old.bytes(), with.text(), most));
  return SameKind(context, self, std::move(text));
}

absl::StatusOr<Value> JoinItems(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(RefuseMarkup(self, "join"));
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("join", {"iterable"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const auto items, Iterate(context.budget, args[0]));
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(items->items.size() * sizeof(Text)));
  std::vector<Text> parts;
  for (const Value& item : items->items) {
    if (!item.is(Type::kString))
      return absl::InvalidArgumentError(
          absl::StrCat("join needs strings, not values of the type ", TypeName(item)));
    INLAY_RETURN_IF_ERROR(context.budget.Reserve(item.bytes().size()));
    parts.push_back(item.text());
  }
  INLAY_ASSIGN_OR_RETURN(Text text, Join(context.budget, self.text(), parts));
  return SameKind(context, self, std::move(text));
}

// The part of a text in which the functions that look for something look.
struct Window {
  absl::string_view bytes;
  size_t begin = 0;    // in the whole text
  bool exists = true;  // false where its start is after its end: not even "" is in it
};

// That from the code point args[1] up to the code point args[2]. Both may be missing or none.
absl::StatusOr<Window> FindWindow(Context& context, const Value& self, const BoundArguments& args) {
  const absl::string_view bytes = self.bytes();
  if (!args.has(1) && !args.has(2)) return Window{bytes};
  INLAY_ASSIGN_OR_RETURN(const int64_t length, Length(context.budget, self));
  const auto bound = [&](size_t parameter, int64_t otherwise) -> absl::StatusOr<int64_t> {
    if (args.Or(parameter, Value::None()).is(Type::kNone)) return otherwise;
    INLAY_ASSIGN_OR_RETURN(const int64_t at, args.IntegerOr(parameter, otherwise));
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  INLAY_ASSIGN_OR_RETURN(const int64_t start, bound(1, 0));
  INLAY_ASSIGN_OR_RETURN(int64_t end, bound(2, length));
  end = std::min(end, length);
  if (start > end) return Window{{}, 0, /*exists=*/false};
  const size_t begin = ByteOfCodePoint(bytes, static_cast<size_t>(start));
  const size_t size = ByteOfCodePoint(bytes.substr(begin), static_cast<size_t>(end - start));
  return Window{bytes.substr(begin, size), begin};
}

template <bool (*kMatches)(absl::string_view, absl::string_view) noexcept>
absl::StatusOr<Value> HasEnd(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("startswith or endswith", {"affix", "start", "end"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Window window, FindWindow(context, self, args));
  const bool several = args[0].is_sequence(SequenceKind::kTuple);
  const absl::Span<const Value> affixes =
      several ? absl::MakeConstSpan(args[0].sequence()->items) : absl::MakeConstSpan(&args[0], 1);
  bool found = false;
  for (const Value& affix : affixes) {
    if (!affix.is(Type::kString))
      return absl::InvalidArgumentError(absl::StrCat(
          "startswith and endswith need strings, not a value of the type ", TypeName(affix)));
    INLAY_RETURN_IF_ERROR(context.budget.StepBytes(affix.bytes().size()));
    found = found || (window.exists && kMatches(window.bytes, affix.bytes()));
  }
  return Value::Bool(found);
}

// Where the text is as a count of code points; -1 when it is not. `kFrom` is the side that the
// search starts at.
template <Side kFrom, bool kMustBe>
absl::StatusOr<Value> FindText(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("find or index", {"sub", "start", "end"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value sub, args.StringOr(0));
  INLAY_ASSIGN_OR_RETURN(const Window window, FindWindow(context, self, args));
  const absl::string_view needle = sub.bytes();
  size_t at = absl::string_view::npos;
  if (window.exists && kFrom == Side::kLeft) {
    INLAY_ASSIGN_OR_RETURN(at, Find(context.budget, window.bytes, needle));
  } else if (window.exists) {
    INLAY_ASSIGN_OR_RETURN(at, FindLast(context.budget, window.bytes, needle));
  }
  if (at != absl::string_view::npos) {
    const absl::string_view before = self.bytes().substr(0, window.begin + at);
    INLAY_RETURN_IF_ERROR(context.budget.StepBytes(before.size()));
    return Value::Int(static_cast<int64_t>(CountCodePoints(before)));
  }
  if (kMustBe) return absl::InvalidArgumentError("index did not find the text");
  return Value::Int(-1);
}

absl::StatusOr<Value> CountText(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("count", {"sub", "start", "end"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value sub, args.StringOr(0));
  INLAY_ASSIGN_OR_RETURN(const Window window, FindWindow(context, self, args));
  const absl::string_view needle = sub.bytes();
  if (!window.exists) return Value::Int(0);
  if (needle.empty()) {
    INLAY_RETURN_IF_ERROR(context.budget.StepBytes(window.bytes.size()));
    return Value::Int(static_cast<int64_t>(CountCodePoints(window.bytes)) + 1);
  }
  int64_t count = 0;
  for (size_t from = 0;; ++count) {
    INLAY_ASSIGN_OR_RETURN(const size_t at, Find(context.budget, window.bytes, needle, from));
    if (at == absl::string_view::npos) return Value::Int(count);
    from = at + needle.size();
  }
}

template <bool kPrefix>
absl::StatusOr<Value> RemoveEnd(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("removeprefix", {"affix"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value affix, args.StringOr(0));
  const Text& text = self.text();
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(text.size()));
  size_t begin = 0, end = text.size();
  if (kPrefix && absl::StartsWith(text.bytes(), affix.bytes())) begin = affix.bytes().size();
  if (!kPrefix && absl::EndsWith(text.bytes(), affix.bytes())) end -= affix.bytes().size();
  return SameKind(context, self, text.Part(begin, end));
}

template <Side kSide>
absl::StatusOr<Value> PadTo(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("ljust, rjust or center", {"width", "fillchar"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t width, args.IntegerOr(0, 0));
  INLAY_ASSIGN_OR_RETURN(const Value fill, args.StringOr(1, " "));
  if (CountCodePoints(fill.bytes()) != 1)
    return absl::InvalidArgumentError("what fills a text must be one character");
  INLAY_ASSIGN_OR_RETURN(Text text, Pad(context.budget, self.text(), width, fill.text(), kSide));
  return SameKind(context, self, std::move(text));
}

absl::StatusOr<Value> FormatString(Context& context, const Value& self,
                                   const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(RefuseMarkup(self, "format"));
  INLAY_ASSIGN_OR_RETURN(Text text, FormatBraces(context.budget, self.text(), arguments));
  return Value::String(std::move(text), &context.budget);
}

enum class Kind { kDigit, kLetter, kLetterOrDigit, kSpace };

// Whether the code point is of this kind; nothing where that cannot be told here.
absl::StatusOr<bool> IsKind(Kind kind, const CodePoint& c) {
  if (!c.valid) return false;
  if (kind == Kind::kSpace) return IsSpace(c.value);
  if (c.value < 0x80) {
    const auto byte = static_cast<unsigned char>(c.value);
    return (kind != Kind::kLetter && absl::ascii_isdigit(byte)) ||
           (kind != Kind::kDigit && absl::ascii_isalpha(byte));
  }
  const CodePointClass c_class = ClassOf(c.value);
  if (c_class == CodePointClass::kNumber && kind != Kind::kLetter)
    return absl::UnimplementedError("digits beyond 0 to 9 are not supported here");
  return c_class == CodePointClass::kLetter && kind != Kind::kDigit;
}

template <Kind kKind>
absl::StatusOr<Value> IsAll(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the function", {}, 0, arguments).status());
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(self.bytes().size()));
  for (absl::string_view rest = self.bytes(); !rest.empty();) {
    const CodePoint c = DecodeUtf8(rest);
    INLAY_ASSIGN_OR_RETURN(const bool is, IsKind(kKind, c));
    if (!is) return Value::Bool(false);
    rest.remove_prefix(c.valid ? c.length : 1);
  }
  return Value::Bool(!self.bytes().empty());
}

template <bool kUpper>
absl::StatusOr<Value> IsInCase(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const Function* test, FindTest(kUpper ? "upper" : "lower"));
  return test->call(context, self, arguments);
}

absl::StatusOr<Value> Get(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("get", {"key", "default"}, 1, arguments));
  if (!IsHashable(args[0]))
    return absl::InvalidArgumentError(
        absl::StrCat("a value of the type ", TypeName(args[0]), " cannot be a key"));
  INLAY_RETURN_IF_ERROR(CountKey(context.budget, args[0]));
  const Value* found = self.dict().Find(args[0]);
  return found == nullptr ? args.Or(1, Value::None()) : *found;
}

template <SequenceKind kKind>
absl::StatusOr<Value> View(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("items, keys or values", {}, 0, arguments).status());
  const auto& entries = self.dict().entries();
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(entries.size() * sizeof(DictRep::Entry)));
  Values items;
  for (const auto& [key, value] : entries) {
    items.push_back(kKind == SequenceKind::kKeys ? key
                    : kKind == SequenceKind::kValues
                        ? value
                        : Value::Sequence(SequenceKind::kTuple, {key, value}, &context.budget));
  }
  return Value::Sequence(kKind, std::move(items), &context.budget);
}

absl::StatusOr<Value> Copy(Context&, const Value& self, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("copy", {}, 0, arguments).status());
  return self;  // nothing can change it
}

// The index of an item, or how often it is there.
template <bool kCount>
absl::StatusOr<Value> FindItem(Context& context, const Value& self, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("index", {"value"}, 1, arguments));
  const Values& items = self.sequence()->items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(context.budget, items[i], args[0]));
    if (!equal) continue;
    if (!kCount) return Value::Int(static_cast<int64_t>(i));
    ++count;
  }
  if (!kCount) return absl::InvalidArgumentError("index did not find the value");
  return Value::Int(count);
}

absl::StatusOr<Value> Cycle(Context&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    return absl::InvalidArgumentError("loop.cycle needs values to choose from");
  const auto index = static_cast<size_t>(std::max<int64_t>(self.loop().index0(), 0));
  return arguments.positional[index % arguments.positional.size()];
}

absl::StatusOr<Value> Changed(Context& context, const Value& self, const Arguments& arguments) {
  const Values& values = arguments.positional;
  if (!arguments.named.empty())
    return absl::InvalidArgumentError("loop.changed takes no named arguments");
  const Values* last = self.loop().remembered();
  bool changed = last == nullptr || last->size() != values.size();
  for (size_t i = 0; !changed && i < values.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool equal, Equal(context.budget, values[i], (*last)[i]));
    changed = !equal;
  }
  if (changed) self.loop().Remember(values);
  return Value::Bool(changed);
}

constexpr Function kStringMethods[] = {
    {"strip", Strip<Side::kBoth>},
    {"lstrip", Strip<Side::kLeft>},
    {"rstrip", Strip<Side::kRight>},
    {"split", SplitString<Side::kLeft>},
    {"rsplit", SplitString<Side::kRight>},
    {"splitlines", SplitLinesOf},
    {"partition", Partition<Side::kLeft>},
    {"rpartition", Partition<Side::kRight>},
    {"upper", ChangeOwnCase<Case::kUpper>},
    {"lower", ChangeOwnCase<Case::kLower>},
    {"title", ChangeSelf<TitleWords>},
    {"capitalize", ChangeSelf<Capitalize>},
    {"replace", ReplaceIn},
    {"join", JoinItems},
    {"startswith", HasEnd<absl::StartsWith>},
    {"endswith", HasEnd<absl::EndsWith>},
    {"find", FindText<Side::kLeft, false>},
    {"rfind", FindText<Side::kRight, false>},
    {"index", FindText<Side::kLeft, true>},
    {"rindex", FindText<Side::kRight, true>},
    {"count", CountText},
    {"removeprefix", RemoveEnd<true>},
    {"removesuffix", RemoveEnd<false>},
    {"ljust", PadTo<Side::kRight>},
    {"rjust", PadTo<Side::kLeft>},
    {"center", PadTo<Side::kBoth>},
    {"format", FormatString},
    {"isdigit", IsAll<Kind::kDigit>},
    {"isalpha", IsAll<Kind::kLetter>},
    {"isalnum", IsAll<Kind::kLetterOrDigit>},
    {"isspace", IsAll<Kind::kSpace>},
    {"isupper", IsInCase<true>},
    {"islower", IsInCase<false>},
};

constexpr Function kDictMethods[] = {
    {"get", Get},
    {"items", View<SequenceKind::kItems>},
    {"keys", View<SequenceKind::kKeys>},
    {"values", View<SequenceKind::kValues>},
    {"copy", Copy},
};

constexpr Function kListMethods[] = {
    {"index", FindItem<false>},
    {"count", FindItem<true>},
    {"copy", Copy},
};

constexpr Function kLoopMethods[] = {
    {"cycle", Cycle},
    {"changed", Changed},
};

// Those of Python that are left out: a template that needs one must not take it for undefined.
constexpr absl::string_view kMissingStringMethods[] = {
    "casefold",  "encode",      "expandtabs",   "format_map", "isascii",   "isdecimal", "istitle",
    "isnumeric", "isprintable", "isidentifier", "swapcase",   "translate", "maketrans", "zfill"};

absl::Span<const Function> MethodsOf(const Value& object) {
  switch (object.type()) {
    case Type::kString:
      return kStringMethods;
    case Type::kDict:
      return kDictMethods;
    case Type::kLoop:
      return kLoopMethods;
    case Type::kSequence: {
      const SequenceKind kind = object.sequence()->kind;
      const absl::Span<const Function> all = kListMethods;
      if (kind == SequenceKind::kList) return all;
      return kind <= SequenceKind::kRange ? all.first(2) : all.first(0);
    }
    default:
      return {};
  }
}

}  // namespace

absl::StatusOr<const Function*> FindMethod(const Value& object, absl::string_view name) {
  for (const Function& method : MethodsOf(object)) {
    if (method.name == name) return &method;
  }
  const bool missing = object.is(Type::kString) &&
                       std::find(std::begin(kMissingStringMethods), std::end(kMissingStringMethods),
                                 name) != std::end(kMissingStringMethods);
  if (missing || (object.is(Type::kDict) && name == "fromkeys"))
    return absl::UnimplementedError(
        absl::StrCat("the function ", name, " of a ", TypeName(object), " is not supported"));
  return nullptr;
}

bool HidesKey(absl::string_view name) {
  return name == "clear" || name == "pop" || name == "popitem" || name == "setdefault" ||
         name == "update";
}

}  // namespace inlay::jinja

// The functions that templates call without an object: range, dict, namespace, raise_exception,
// strftime_now.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/functions.h"
#include "io/template/limits.h"
#include "io/template/operators.h"
#include "io/template/print.h"

namespace inlay::jinja {
namespace {

absl::StatusOr<Value> Range(Context& context, const Value&, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("range", {"start", "stop", "step"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(int64_t start, args.IntegerOr(0, 0));
  INLAY_ASSIGN_OR_RETURN(int64_t stop, args.IntegerOr(1, 0));
  INLAY_ASSIGN_OR_RETURN(const int64_t step, args.IntegerOr(2, 1));
  if (!args.has(1)) std::swap(start, stop);
  if (step == 0) return absl::InvalidArgumentError("range cannot have the step 0");
  // In 128 bits nothing overflows.
  const __int128 distance = static_cast<__int128>(stop) - start;
  const __int128 count = step > 0 ? (distance + step - 1) / step : (distance + step + 1) / step;
  if (count > kMaxRange)
    return absl::InvalidArgumentError(
        absl::StrCat("a range has more than ", kMaxRange, " numbers"));
  Values items;
  for (__int128 i = 0; i < count; ++i)
    items.push_back(Value::Int(static_cast<int64_t>(start + i * step)));
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(items.size() * sizeof(Value)));
  return Value::Sequence(SequenceKind::kRange, std::move(items), &context.budget);
}

// The entries of dict(x) and namespace(x): those of a dict or a list of pairs, then the named
// arguments.
absl::StatusOr<std::vector<DictRep::Entry>> Entries(Context& context, absl::string_view function,
                                                    const Arguments& arguments) {
  std::vector<DictRep::Entry> entries;
  if (arguments.positional.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(function, " takes one object"));
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Type::kDict)) {
      INLAY_RETURN_IF_ERROR(
          context.budget.Reserve(source.dict().entries().size() * sizeof(DictRep::Entry)));
      for (const auto& [key, value] : source.dict().entries())
        INLAY_RETURN_IF_ERROR(CountKey(context.budget, key));
      entries = source.dict().entries();
    } else {
      INLAY_ASSIGN_OR_RETURN(const auto pairs, Iterate(context.budget, source));
      for (const Value& pair : pairs->items) {
        INLAY_ASSIGN_OR_RETURN(const auto parts, Iterate(context.budget, pair));
        if (parts->items.size() != 2 || !IsHashable(parts->items[0]))
          return absl::InvalidArgumentError(
              absl::StrCat(function, " needs pairs of a key and a value"));
        INLAY_RETURN_IF_ERROR(context.budget.Reserve(sizeof(DictRep::Entry)));
        INLAY_RETURN_IF_ERROR(CountKey(context.budget, parts->items[0]));
        entries.emplace_back(parts->items[0], parts->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    INLAY_RETURN_IF_ERROR(context.budget.Reserve(name.memory()));
    entries.emplace_back(Value::String(name, &context.budget), value);
  }
  return entries;
}

absl::StatusOr<Value> MakeDict(Context& context, const Value&, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(auto entries, Entries(context, "dict", arguments));
  const auto dict = std::make_shared<DictRep>();
  for (auto& [key, value] : entries) {
    dict->Set(std::move(key), std::move(value));
    INLAY_RETURN_IF_ERROR(context.budget.CheckBytes(dict->bytes()));
  }
  dict->Finish(&context.budget);
  return Value::Dict(dict);
}

absl::StatusOr<Value> MakeNamespace(Context& context, const Value&, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(auto entries, Entries(context, "namespace", arguments));
  auto made = std::make_unique<NamespaceRep>();
  for (auto& [key, value] : entries) {
    if (!key.is(Type::kString))
      return absl::InvalidArgumentError("the names in a namespace must be strings");
    INLAY_RETURN_IF_ERROR(context.budget.Step(made->attributes.size() + 1));
    made->Set(key.bytes(), std::move(value));
  }
  // It exists until the rendering ends, with the names it has now.
  context.budget.Take(sizeof(NamespaceRep) + made->attributes.size() * 2 * sizeof(DictRep::Entry));
  context.namespaces.push_back(std::move(made));
  return Value::Namespace(context.namespaces.back().get());
}

absl::StatusOr<Value> RaiseException(Context& context, const Value&, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("raise_exception", {"message"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Text message, Str(context.budget, args[0]));
  return absl::FailedPreconditionError(message.bytes());
}

// One directive of strftime, as "%d" or "%-d".
absl::StatusOr<std::string> FormatTime(const Context& context, const std::string& directive) {
  constexpr absl::string_view kPlain = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY";
  const char letter = directive.back();
  if (letter == '%') return std::string("%");
  const auto civil = context.time_zone.At(context.now);
  if (letter == 'f') return Format("%06d", absl::ToInt64Microseconds(civil.subsecond));
  if (letter == 'z' || letter == 'Z')
    return std::string();  // the time has no zone in Python either
  if (kPlain.find(letter) == absl::string_view::npos)
    return absl::UnimplementedError(
        absl::StrCat("strftime_now does not support ", QuoteForMessage(directive)));
  const std::tm time = absl::ToTM(context.now, context.time_zone);
  std::array<char, 256> buffer;
  return std::string(buffer.data(),
                     std::strftime(buffer.data(), buffer.size(), directive.c_str(), &time));
}

absl::StatusOr<Value> StrftimeNow(Context& context, const Value&, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("strftime_now", {"format"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value argument, args.StringOr(0));
  const Text& format = argument.text();
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(format.size() * 32));
  std::string time;
  absl::string_view rest = format.bytes();
  while (!rest.empty()) {
    if (rest[0] != '%') {
      time.push_back(rest[0]);
      rest.remove_prefix(1);
      continue;
    }
    const size_t letter = rest.size() > 1 && rest[1] == '-' ? 2 : 1;
    if (rest.size() <= letter)
      return absl::UnimplementedError("strftime_now does not support a % at the end");
    INLAY_ASSIGN_OR_RETURN(const std::string part,
                           FormatTime(context, std::string(rest.substr(0, letter + 1))));
    time += part;
    rest.remove_prefix(letter + 1);
  }
  const Origin origin = format.HasMessage() ? Origin::kMessage : Origin::kTemplate;
  return Value::String(time, origin, &context.budget);
}

absl::StatusOr<Value> LeftOut(Context&, const Value&, const Arguments&) {
  return absl::UnimplementedError("the functions cycler, joiner and lipsum are not supported");
}

constexpr Function kGlobals[] = {
    {"range", Range},
    {"dict", MakeDict},
    {"namespace", MakeNamespace},
    {"raise_exception", RaiseException},
    {"strftime_now", StrftimeNow},
    {"cycler", LeftOut},
    {"joiner", LeftOut},
    {"lipsum", LeftOut},
};

}  // namespace

const Function* FindGlobal(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kGlobals), std::end(kGlobals),
                                   [&](const Function& f) { return f.name == name; });
  return found == std::end(kGlobals) ? nullptr : found;
}

}  // namespace inlay::jinja

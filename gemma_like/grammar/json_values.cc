#include "gemma_like/grammar/json_values.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "gemma_like/grammar/json_spelling.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

// Lists of words are trees of their beginnings, down to this depth.
constexpr size_t kMostWordDepth = 40;

}  // namespace

JsonValues::JsonValues(GrammarBuilder& builder, JsonSpace space)
    : builder_(builder),
      space_(space),
      speller_(builder, CharacterSpelling::kJsonString),
      space_rule_(builder.Declare("white space")) {
  if (space == JsonSpace::kAny) {
    ByteSet spaces;
    for (const char c : {' ', '\t', '\n', '\r'}) spaces.set(static_cast<uint8_t>(c));
    builder_.Define(space_rule_, builder_.Repeat(builder_.Byte(spaces), 0, kMostJsonSpace));
    return;
  }
  const Expr indent = builder_.Choice({builder_.Repeat(builder_.Text(" "), 0, kMostIndent),
                                       builder_.Repeat(builder_.Text("\t"), 1, kMostIndentTabs)});
  builder_.Define(space_rule_, builder_.Choice({builder_.Empty(), builder_.Text(" "),
                                                builder_.Sequence({builder_.Text("\n"), indent})}));
}

Expr JsonValues::Around() { return space_ == JsonSpace::kAny ? Space() : builder_.Empty(); }

JsonValues::Rule JsonValues::RuleOf(std::string name, Expr expr) {
  const Rule rule = builder_.Declare(std::move(name));
  builder_.Define(rule, expr);
  return rule;
}

JsonValues::Rule JsonValues::Any() {
  if (any_) return *any_;
  any_ = builder_.Declare("any JSON value");
  GrammarBuilder::Object object;
  object.other = *any_;
  object.space = space_;
  const Expr string = builder_.Sequence(
      {builder_.Text("\""), builder_.Repeat(speller_.One(CodePointSet::All()), 0, std::nullopt),
       builder_.Text("\"")});
  builder_.Define(*any_, builder_.Choice({builder_.Text("null"), builder_.Text("true"),
                                          builder_.Text("false"), Number({}), string,
                                          Array([&](size_t) { return *any_; }, 0, 0, std::nullopt),
                                          builder_.AnyObject(std::move(object))}));
  return *any_;
}

JsonValues::NumberKey JsonValues::KeyOf(const NumberConstraints& constraints) {
  return {constraints.least,        constraints.most,  constraints.least_integer,
          constraints.most_integer, constraints.whole, constraints.divisor,
          constraints.halvings};
}

bool JsonValues::Knows(const NumberConstraints& constraints) const {
  return numbers_.contains(KeyOf(constraints));
}

Expr JsonValues::Number(const NumberConstraints& constraints) {
  const auto [place, is_new] = numbers_.try_emplace(KeyOf(constraints), 0);
  if (is_new) place->second = RuleOf("a number", AddNumber(builder_, constraints, any_digits_));
  return builder_.Call(place->second);
}

absl::StatusOr<Expr> JsonValues::String(const TextConstraints& constraints, TextBudget& budget) {
  StringKey key = {{}, constraints.least, constraints.most};
  for (const Regex* regex : constraints.regexes) std::get<0>(key).push_back(regex->pattern);
  const auto known = strings_.find(key);
  if (known != strings_.end()) return builder_.Call(known->second);
  INLAY_ASSIGN_OR_RETURN(const Expr text, AddText(builder_, speller_, constraints, budget));
  const Rule rule =
      RuleOf("a string", builder_.Sequence({builder_.Text("\""), text, builder_.Text("\"")}));
  strings_.emplace(std::move(key), rule);
  return builder_.Call(rule);
}

Expr JsonValues::Next(Rule item) {
  return builder_.Sequence({Around(), builder_.Text(","), Space(), builder_.Call(item)});
}

// Items that must be there are a sequence; of the others that differ, each is a rule with all that
// may follow.
Expr JsonValues::Array(const std::function<Rule(size_t)>& item, size_t same, size_t least,
                       std::optional<size_t> most) {
  if (most && *most < least) return builder_.Nothing();
  const Expr open = builder_.Text("["), close = builder_.Text("]");
  const Expr empty = builder_.Sequence({open, Around(), close});
  if (most == 0) return empty;
  same = std::max<size_t>(same, 1);  // the first item has no comma
  const auto one = [&](size_t i) { return i == 0 ? builder_.Call(item(0)) : Next(item(i)); };
  const size_t different = std::min(same, most.value_or(same));
  const size_t needed = std::max<size_t>(least, 1);  // unless the list is empty
  std::vector<Expr> items = {open, Space()};
  for (size_t i = 0; i < std::min(needed, different); ++i) items.push_back(one(i));
  Expr rest = builder_.Empty();
  if (!most || *most > same) {
    const size_t fixed = std::max(needed, same) - same;
    const auto more = most ? std::optional<size_t>(*most - same) : std::nullopt;
    const Expr next = Next(item(same));
    rest = std::max(fixed, more.value_or(0)) <= kMostWrittenOut
               ? builder_.Repeat(next, fixed, more)
               : builder_.Counted(RuleOf("an item", next), fixed, more);
  }
  for (size_t i = different; i-- > needed;) {
    rest = builder_.Call(
        RuleOf("items", builder_.Choice({builder_.Empty(), builder_.Sequence({one(i), rest})})));
  }
  items.insert(items.end(), {rest, Space(), close});
  const Expr list = builder_.Sequence(std::move(items));
  return least == 0 ? builder_.Choice({empty, list}) : list;
}

// An integer with its digits, which a double may not hold; another number as JavaScript writes it,
// and as Python does.
Expr JsonValues::ExactNumber(const Json& value) {
  if (value.is_number_integer()) return builder_.Text(value.dump());
  const std::string text = JsonNumber(value.get<double>());
  std::vector<Expr> options = {builder_.Text(text)};
  if (text.find_first_of(".e") == std::string::npos) options.push_back(builder_.Text(text + ".0"));
  return builder_.Choice(std::move(options));
}

Expr JsonValues::Exactly(const Json& value) {
  const auto rule = [&](const Json& part) { return RuleOf("a value", Exactly(part)); };
  if (value.is_number()) return ExactNumber(value);
  if (value.is_string()) return builder_.Text(JsonSpelling(value.get_ref<const std::string&>()));
  if (value.is_array())
    return Array([&](size_t i) { return rule(value[i]); }, value.size(), value.size(),
                 value.size());
  if (!value.is_object()) return builder_.Text(value.dump());
  GrammarBuilder::Object object;
  object.space = space_;
  for (const auto& [name, member] : value.get_ref<const Json::object_t&>())
    object.members.push_back({name, rule(member), /*required=*/true});
  return builder_.AnyObject(std::move(object));
}

Expr JsonValues::OneOf(const std::vector<const Json*>& values) {
  std::vector<std::string> words;
  std::vector<Expr> options;
  for (const Json* value : values) {
    if (value->is_string())
      words.push_back(JsonSpelling(value->get_ref<const std::string&>()));
    else
      options.push_back(Exactly(*value));
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  if (!words.empty()) options.push_back(Words(words, 0, words.size(), 0, 0));
  return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
}

// What follows the first `same` bytes of the words from `first` to before `last`, which all have
// them in common. No word is the beginning of another, since a quote ends each.
Expr JsonValues::Words(const std::vector<std::string>& sorted, size_t first, size_t last,
                       size_t same, size_t depth) {
  const std::string& start = sorted[first];
  const std::string& end = sorted[last - 1];  // the two differ first
  size_t shared = same;
  while (shared < start.size() && shared < end.size() && start[shared] == end[shared]) ++shared;
  const Expr prefix = builder_.Text(start.substr(same, shared - same));
  if (last - first == 1) return prefix;
  std::vector<Expr> options;
  for (size_t from = first; from < last;) {
    size_t to = from + 1;
    if (depth < kMostWordDepth)
      while (to < last && sorted[to][shared] == sorted[from][shared]) ++to;
    options.push_back(Words(sorted, from, to, shared, depth + 1));
    from = to;
  }
  return builder_.Sequence({prefix, builder_.Choice(std::move(options))});
}

}  // namespace inlay

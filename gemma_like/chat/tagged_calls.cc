// Calls as Qwen3-Coder, Qwen 3.5 and Nemotron 3 write them.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gemma_like/chat/call_blocks.h"
#include "gemma_like/chat/call_json.h"
#include "io/template/value.h"

namespace inlay {
namespace {

using jinja::Value;

constexpr absl::string_view kEndParameter = "</parameter>";

// The value of a key, null where `value` is no dict or has none.
const Value* Member(const Value* value, absl::string_view key) {
  if (value == nullptr || !value->is(jinja::Type::kDict)) return nullptr;
  return value->dict().Find(key);
}

const jinja::Values& ItemsOf(const Value* value) {
  static const auto& none = *new jinja::Values();
  if (value == nullptr || !value->is_sequence(jinja::SequenceKind::kList)) return none;
  return value->sequence()->items;
}

// The definition of the function that a tool is.
const Value* FunctionOf(const Value& tool) {
  const Value* function = Member(&tool, "function");
  return function == nullptr ? &tool : function;
}

// Its name; "" where there is none.
absl::string_view NameOf(const Value* function) {
  const Value* name = Member(function, "name");
  return name == nullptr || !name->is(jinja::Type::kString) ? "" : name->bytes();
}

// The schema of a function's parameters; null where there is none.
const Value* ParametersOf(const Value& tools, absl::string_view function) {
  for (const Value& tool : ItemsOf(&tools)) {
    const Value* definition = FunctionOf(tool);
    if (NameOf(definition) == function) return Member(definition, "parameters");
  }
  return nullptr;
}

struct Types {
  bool text = false;
  bool null = false;
  bool any = false;  // at least one is named

  bool MayBeText() const { return text || !any; }
};

void AddTypes(const Value* schema, Types& types) {
  const auto add = [&](const Value& type) {
    if (!type.is(jinja::Type::kString)) return;
    types.any = true;
    if (absl::EqualsIgnoreCase(type.bytes(), "string")) types.text = true;
    if (absl::EqualsIgnoreCase(type.bytes(), "null")) types.null = true;
  };
  if (const Value* type = Member(schema, "type"); type != nullptr) {
    add(*type);
    for (const Value& one : ItemsOf(type)) add(one);
  }
  for (const absl::string_view choice : {"anyOf", "oneOf"}) {
    for (const Value& one : ItemsOf(Member(schema, choice))) {
      if (const Value* type = Member(&one, "type"); type != nullptr) add(*type);
    }
  }
}

// The part of the schema `root` that "#/$defs/Point" refers to; null where there is none.
const Value* Referred(const Value* root, absl::string_view reference) {
  if (!absl::ConsumePrefix(&reference, "#")) return nullptr;
  if (reference.empty()) return root;
  if (!absl::ConsumePrefix(&reference, "/")) return nullptr;
  for (const absl::string_view step : absl::StrSplit(reference, '/'))
    root = Member(root, absl::StrReplaceAll(step, {{"~1", "/"}, {"~0", "~"}}));
  return root;
}

// What a schema that names no type itself says in other words: by reference, by its parts or by
// values. At most `left` schemas are looked at, as they may refer to themselves, several times
// each.
void AddImpliedTypes(const Value* schema, const Value* root, int& left, Types& types) {
  if (schema == nullptr || left == 0) return;
  --left;
  const auto add = [&](const Value* part) {
    Types named;
    AddTypes(part, named);
    if (!named.any) return AddImpliedTypes(part, root, left, types);
    types.any = true;
    types.text = types.text || named.text;
    types.null = types.null || named.null;
  };
  const auto add_value = [&](const Value& value) {
    types.any = true;
    types.text = types.text || value.is(jinja::Type::kString);
    types.null = types.null || value.is(jinja::Type::kNone);
  };
  if (const Value* reference = Member(schema, "$ref");
      reference != nullptr && reference->is(jinja::Type::kString)) {
    add(Referred(root, reference->bytes()));
  }
  for (const absl::string_view parts : {"allOf", "anyOf", "oneOf"})
    for (const Value& one : ItemsOf(Member(schema, parts))) add(&one);
  for (const Value& value : ItemsOf(Member(schema, "enum"))) add_value(value);
  if (const Value* value = Member(schema, "const"); value != nullptr) add_value(*value);
  for (const absl::string_view keyword : {"properties", "items"})
    if (Member(schema, keyword) != nullptr) types.any = true;
}

Types TypesOf(const Value* schema, const Value* root) {
  Types types;
  AddTypes(schema, types);
  int left = 64;
  if (!types.any) AddImpliedTypes(schema, root, left, types);
  return types;
}

void AppendParameter(absl::string_view text, const Types& types, std::string* out) {
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  if (types.MayBeText() && types.null && (word == "null" || word == "None")) {
    out->append("null");
  } else if (types.MayBeText() || !(AppendWord(word, out) || AppendJsonValue(word, out))) {
    AppendJsonString(text, out);
  }
}

// Where the end of the parameter is, if one JSON value is all that comes before it; else 0. Sets
// `open` where the text ends within the value, which then is within a string of it: markup is
// nowhere else in JSON.
size_t EndAfterJson(absl::string_view text, bool* open) {
  JsonScanner scanner;
  std::string scanned;
  auto state = JsonScanner::State::kMore;
  size_t at = text.size() - absl::StripLeadingAsciiWhitespace(text).size();
  for (; at < text.size() && state == JsonScanner::State::kMore; ++at)
    state = scanner.Push(text[at], &scanned);
  if (state == JsonScanner::State::kEndedBefore) --at;
  if (state == JsonScanner::State::kMore) *open = true;
  if (state == JsonScanner::State::kMore || state == JsonScanner::State::kRefused) return 0;
  const absl::string_view after = absl::StripLeadingAsciiWhitespace(text.substr(at));
  return absl::StartsWith(after, kEndParameter) ? text.size() - after.size() : 0;
}

// Whether another call begins in this text: a function behind the end of one that begins before it.
// Functions that begin and end within it are parts of the text.
bool HasNextCall(absl::string_view text) {
  size_t functions = 0;
  bool ended = false;
  for (size_t at = text.find('<'); at != absl::string_view::npos; at = text.find('<', at + 1)) {
    if (absl::StartsWith(text.substr(at), kFunction)) {
      if (ended) return true;
      ++functions;
    } else if (absl::StartsWith(text.substr(at), kEndFunction)) {
      if (functions == 0) ended = true;
      functions -= functions == 0 ? 0 : 1;
    }
  }
  return false;
}

class TaggedParser {
 public:
  TaggedParser(absl::string_view block, const Value& tools, size_t behind)
      : cursor_(block), tools_(tools), behind_(behind) {}

  bool Calls(std::vector<ParsedCall>* calls) {
    do {
      ParsedCall call;
      if (!Function(&call)) return false;
      calls->push_back(call);
      cursor_.SkipSpace();
    } while (!cursor_.AtEnd());
    return true;
  }
  bool open() const { return open_; }

 private:
  bool Function(ParsedCall* call) {
    absl::string_view name;
    if (!cursor_.Skip(kFunction) || !cursor_.TakeUntil(">", &name)) return false;
    name = absl::StripAsciiWhitespace(name);
    if (name.empty()) return false;
    call->name = std::string(name);
    const Value* parameters = ParametersOf(tools_, name);
    const Value* properties = Member(parameters, "properties");
    JsonMembers arguments;
    while (cursor_.Skip(kParameter)) {
      absl::string_view key, text;
      if (!cursor_.TakeUntil(">", &key)) return false;
      key = absl::StripAsciiWhitespace(key);
      const Types types = TypesOf(Member(properties, key), parameters);
      if (!TakeParameter(types, &text)) return false;
      std::string json_key;
      AppendJsonString(key, &json_key);
      AppendParameter(text, types, arguments.Add(json_key));
    }
    arguments.AppendTo(&call->arguments);
    return cursor_.Skip(kEndFunction);
  }

  // The text up to the end of the parameter. It may hold such ends itself: the one that counts is
  // followed by what follows a parameter, and is not within a JSON value.
  bool TakeParameter(const Types& types, absl::string_view* text) {
    const absl::string_view rest = cursor_.rest();
    const bool may_be_text = types.MayBeText();
    const size_t json_end = may_be_text ? 0 : EndAfterJson(rest, &open_);
    for (size_t end = rest.find(kEndParameter, json_end); end != absl::string_view::npos;
         end = rest.find(kEndParameter, end + 1)) {
      const absl::string_view after =
          absl::StripLeadingAsciiWhitespace(rest.substr(end + kEndParameter.size()));
      if (!absl::StartsWith(after, kParameter) && !absl::StartsWith(after, kEndFunction)) continue;
      const bool is_json = json_end != 0 && end == json_end;
      const bool goes_beyond = rest.size() > behind_ && rest.size() - end <= behind_;
      *text = rest.substr(0, end);
      if (goes_beyond && !is_json && (!may_be_text || HasNextCall(*text))) return false;
      cursor_.Advance(end + kEndParameter.size());
      absl::ConsumePrefix(text, "\n");
      absl::ConsumeSuffix(text, "\n");
      return true;
    }
    if (may_be_text && !HasNextCall(rest)) open_ = true;
    return false;
  }

  BlockCursor cursor_;
  const Value& tools_;
  const size_t behind_;
  bool open_ = false;
};

}  // namespace

std::vector<std::string> FunctionNames(const Value& tools) {
  std::vector<std::string> names;
  for (const Value& tool : ItemsOf(&tools)) {
    const absl::string_view name = NameOf(FunctionOf(tool));
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

bool ParseTaggedCalls(absl::string_view block, const Value& tools, size_t behind,
                      std::vector<ParsedCall>* calls, bool* open) {
  TaggedParser parser(block, tools, behind);
  const bool parsed = parser.Calls(calls);
  *open = parser.open();
  return parsed;
}

}  // namespace inlay

#include "gemma_like/grammar/call_grammar.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/json_schema.h"
#include "gemma_like/grammar/json_spelling.h"
#include "gemma_like/grammar/tagged_parameters.h"
#include "gemma_like/grammar/text_without.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;
using Rule = GrammarBuilder::Rule;
using Syntax = CallRules::Syntax;
using Otherwise = CallRules::Otherwise;

class CallGrammar {
 public:
  CallGrammar(const CallRules& rules, const Tokenizer& tokenizer)
      : rules_(rules), tokenizer_(tokenizer) {}

  absl::StatusOr<std::shared_ptr<const Grammar>> Compile() && {
    const Rule answer = builder_.Declare("the answer");
    INLAY_ASSIGN_OR_RETURN(const Expr thoughts, Thoughts());
    INLAY_ASSIGN_OR_RETURN(const Expr call, Call());
    INLAY_ASSIGN_OR_RETURN(const Expr rest, AfterThoughts(call));
    builder_.Define(answer, builder_.Sequence({thoughts, rest}));
    return std::move(builder_).Build(answer);
  }

 private:
  // The text of a marker; what of it is a control token of the vocabulary is that token.
  Expr Marker(absl::string_view text) {
    const auto [known, is_new] = markers_.try_emplace(std::string(text), 0);
    if (is_new) known->second = NewMarker(text);
    return known->second;
  }

  Expr NewMarker(absl::string_view text) {
    std::vector<Expr> parts;
    for (size_t plain = 0; plain < text.size();) {
      if (const std::optional<Expr> token = TakeControl(text.substr(plain), &plain)) {
        parts.push_back(*token);
        continue;
      }
      parts.push_back(builder_.Text(text.substr(plain, 1)));
      ++plain;
    }
    return builder_.Sequence(std::move(parts));
  }

  // The longest control token at the beginning of `text`, whose length is added to `at`; where
  // several have the same text, any of them.
  std::optional<Expr> TakeControl(absl::string_view text, size_t* at) {
    size_t longest = 1;
    std::vector<Expr> tokens;
    for (int32_t id = 0; static_cast<size_t>(id) < tokenizer_.size(); ++id) {
      if (!tokenizer_.IsControl(id)) continue;
      const absl::string_view token = tokenizer_.TokenText(id);
      if (token.size() < longest || !absl::StartsWith(text, token)) continue;
      if (token.size() > longest) tokens.clear();
      longest = token.size();
      tokens.push_back(builder_.ControlToken(id));
    }
    if (tokens.empty()) return std::nullopt;
    *at += longest;
    return builder_.Choice(std::move(tokens));
  }

  // Whether f[ARGS]{...} is how the model writes calls.
  bool NamesFirst() const {
    return rules_.syntax == Syntax::kNamedJson && tokenizer_.FindSpecial("[ARGS]").has_value();
  }

  // Calls are in one list, between one pair of markers.
  bool InList() const { return rules_.syntax != Syntax::kTagged && !NamesFirst(); }

  Expr Space() { return builder_.Choice({builder_.Empty(), builder_.Text(" ")}); }
  Expr Break() { return builder_.Choice({Space(), builder_.Text("\n")}); }

  // Models that think may do so before anything else.
  absl::StatusOr<Expr> Thoughts() {
    if (rules_.think_begin.empty()) return builder_.Empty();
    INLAY_ASSIGN_OR_RETURN(const Expr inside, AddTextWithout(builder_, {rules_.think_end}));
    const Expr thoughts =
        builder_.Sequence({Marker(rules_.think_begin), inside, Marker(rules_.think_end),
                           builder_.Repeat(builder_.Text("\n"), 0, 2)});
    return builder_.Choice({builder_.Empty(), thoughts});
  }

  absl::StatusOr<Expr> AfterThoughts(Expr call) {
    if (rules_.otherwise == Otherwise::kText) return TextAndCalls(call);
    if (rules_.otherwise == Otherwise::kNothing) return Calls(call);
    INLAY_ASSIGN_OR_RETURN(const std::vector<Expr> values,
                           AddJsonSchema(builder_, values_, DumpJson(*rules_.schema),
                                         {.in_order = rules_.schema_in_order}, budget_));
    return rules_.tools.empty() ? values[0] : builder_.Choice({Calls(call), values[0]});
  }

  // A call of one of the tools, without markers and white space around it.
  absl::StatusOr<Expr> Call() {
    std::vector<Expr> objects, others;
    for (const CallRules::Tool& tool : rules_.tools) {
      const absl::Status status = AddTool(tool, &objects, &others);
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat("the tool '", PrintableName(tool.name),
                                                        "': ", status.message()));
    }
    if (!objects.empty()) {
      others.push_back(
          builder_.Sequence({builder_.Text("{\"name\":"), Space(),
                             builder_.Choice(std::move(objects)), builder_.Text("}")}));
    }
    const Rule call = builder_.Declare("a call");
    builder_.Define(call, others.empty() ? builder_.Nothing() : builder_.Choice(others));
    return builder_.Call(call);
  }

  // Adds the call of a tool: what is between {"name": and }, or its other forms.
  absl::Status AddTool(const CallRules::Tool& tool, std::vector<Expr>* objects,
                       std::vector<Expr>* others) {
    INLAY_RETURN_IF_ERROR(CheckParameters(tool));
    std::optional<std::vector<TaggedParameter>> tagged;
    if (rules_.syntax == Syntax::kTagged && tool.parameters.has_value())
      tagged = TaggedParametersOf(**tool.parameters);
    std::vector<SchemaPlace> places = {{.only_objects = true}};
    if (tagged.has_value()) {
      for (const TaggedParameter& parameter : *tagged)
        if (!parameter.place.empty()) places.push_back({.pointer = parameter.place});
    }
    const std::string schema = tool.parameters.has_value() ? DumpJson(**tool.parameters) : "true";
    INLAY_ASSIGN_OR_RETURN(
        const std::vector<Expr> values,
        AddJsonSchema(builder_, values_, schema, {.in_order = tool.in_order}, budget_, places));
    if (NamesFirst()) {
      others->push_back(NamedCall(tool.name, values[0]));
    } else {
      objects->push_back(JsonCall(tool.name, values[0]));
    }
    if (rules_.syntax != Syntax::kTagged) return absl::OkStatus();
    INLAY_RETURN_IF_ERROR(MakeTaggedText());
    if (!tool.parameters.has_value()) {
      others->push_back(TaggedCall(tool.name, AnyParameters()));
    } else if (tagged.has_value()) {
      others->push_back(
          TaggedCall(tool.name, Parameters(*tagged, absl::MakeConstSpan(values).subspan(1))));
    }
    return absl::OkStatus();
  }

  Expr JsonCall(const std::string& name, Expr arguments) {
    return builder_.Sequence({builder_.Text(absl::StrCat(JsonSpelling(name), ",")), Space(),
                              builder_.Text("\"arguments\":"), Space(), arguments});
  }

  Expr NamedCall(const std::string& name, Expr arguments) {
    return builder_.Sequence({builder_.Text(name), CallId(), Marker("[ARGS]"), arguments});
  }

  Expr TaggedCall(const std::string& name, Expr parameters) {
    return builder_.Sequence({builder_.Text(absl::StrCat("<function=", name, ">\n")), parameters,
                              builder_.Text("</function>")});
  }

  // Arguments are an object even where their schema does not say so; it must allow for one.
  static absl::Status CheckParameters(const CallRules::Tool& tool) {
    if (!tool.parameters.has_value()) return absl::OkStatus();
    const Json& schema = **tool.parameters;
    if (!schema.is_object())
      return absl::InvalidArgumentError("its parameters must be a JSON schema of an object");
    const auto type = schema.find("type");
    const bool fits =
        type == schema.end() || *type == "object" ||
        (type->is_array() && std::find(type->begin(), type->end(), Json("object")) != type->end());
    if (!fits)
      return absl::InvalidArgumentError(
          absl::StrCat("its parameters must be of type object, not ", type->dump()));
    return absl::OkStatus();
  }

  // Some models put a made-up id of nine characters between name and arguments.
  Expr CallId() {
    if (!tokenizer_.FindSpecial("[CALL_ID]").has_value()) return builder_.Empty();
    ByteSet bytes;
    for (const char c : absl::string_view("0123456789abcdefghijklmnopqrstuvwxyz"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
      bytes.set(static_cast<unsigned char>(c));
    const Expr id = builder_.Repeat(builder_.Byte(bytes), 9, 9);
    return builder_.Choice({builder_.Empty(), builder_.Sequence({Marker("[CALL_ID]"), id})});
  }

  // A parameter that is text. Both ends would end the parameter, or the call, for who reads it.
  absl::Status MakeTaggedText() {
    if (tagged_text_.has_value()) return absl::OkStatus();
    INLAY_ASSIGN_OR_RETURN(const Expr text,
                           AddTextWithout(builder_, {"</parameter>", "</function>"}));
    tagged_text_ = builder_.Declare("the text of a parameter");
    builder_.Define(*tagged_text_, text);
    return absl::OkStatus();
  }

  Expr AnyParameters() {
    const CodePointRange name[] = {{'!', ';'}, {'=', '='}, {'?', 0x10FFFF}};
    const Expr any_name = builder_.Repeat(builder_.CodePoint(name), 1, std::nullopt);
    return builder_.Repeat(Parameter(any_name, builder_.Call(*tagged_text_)), 0, std::nullopt);
  }

  // `json` are the values of those parameters that are JSON.
  Expr Parameters(const std::vector<TaggedParameter>& parameters, absl::Span<const Expr> json) {
    std::vector<Expr> parts;
    for (const TaggedParameter& one : parameters) {
      Expr value;
      if (one.kind == TaggedParameter::Kind::kText) {
        value = builder_.Call(*tagged_text_);
      } else if (one.kind == TaggedParameter::Kind::kWords) {
        std::vector<Expr> words;
        for (const std::string& word : one.words) words.push_back(builder_.Text(word));
        value = words.empty() ? builder_.Nothing() : builder_.Choice(std::move(words));
      } else {
        value = json[0];
        json.remove_prefix(1);
      }
      const Expr parameter = Parameter(builder_.Text(one.name), value);
      parts.push_back(one.required ? parameter : builder_.Choice({builder_.Empty(), parameter}));
    }
    return builder_.Sequence(std::move(parts));
  }

  Expr Parameter(Expr name, Expr value) {
    return builder_.Sequence({builder_.Text("<parameter="), name, builder_.Text(">\n"), value,
                              builder_.Text("\n</parameter>\n")});
  }

  // What is between one pair of markers, with them.
  Expr Block(Expr call) {
    std::vector<Expr> parts = {Marker(rules_.begin)};
    if (InList()) {
      const Expr separator = builder_.Sequence({builder_.Text(","), Space()});
      parts.insert(parts.end(),
                   {Space(), builder_.Text("["), Several(call, separator), builder_.Text("]")});
    } else if (NamesFirst()) {
      parts.push_back(call);
    } else {
      parts.insert(parts.end(), {Break(), call, Break()});
    }
    parts.push_back(Marker(rules_.end));
    return builder_.Sequence(std::move(parts));
  }

  // One, or more if there may be.
  Expr Several(Expr one, Expr separator) {
    if (rules_.one_call) return one;
    const Expr next = builder_.Sequence({separator, one});
    return builder_.Sequence({one, builder_.Repeat(next, 0, std::nullopt)});
  }

  // At least one call, and nothing else.
  Expr Calls(Expr call) {
    if (InList()) return Block(call);
    return Several(Block(call), NamesFirst() ? builder_.Empty() : Break());
  }

  absl::StatusOr<Expr> TextAndCalls(Expr call) {
    // Who reads the answer takes a function for a call also without the marker before it.
    std::vector<std::string> begins = {rules_.begin};
    if (rules_.syntax == Syntax::kTagged) begins.push_back("<function=");
    INLAY_ASSIGN_OR_RETURN(const Expr without, AddTextWithout(builder_, std::move(begins)));
    const Rule text = builder_.Declare("text without calls");
    builder_.Define(text, without);
    const Expr more = builder_.Sequence({Block(call), builder_.Call(text)});
    return builder_.Sequence(
        {builder_.Call(text),
         builder_.Repeat(more, 0, rules_.one_call ? std::optional<size_t>(1) : std::nullopt)});
  }

  const CallRules& rules_;
  const Tokenizer& tokenizer_;
  GrammarBuilder builder_;
  JsonValues values_{builder_, JsonSpace::kSerialized};
  SchemaBudget budget_;
  std::optional<Rule> tagged_text_;
  std::map<std::string, Expr> markers_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Grammar>> CompileCalls(const CallRules& rules,
                                                            const Tokenizer& tokenizer) {
  return OrOutOfMemory("calls of tools", [&] { return CallGrammar(rules, tokenizer).Compile(); });
}

}  // namespace inlay

#include "gemma_like/grammar/grammar_builder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/compile_grammar.h"
#include "gemma_like/grammar/json_spelling.h"

namespace inlay {
namespace {

// Numbers of states stop here, far above what is accepted, so that products do not overflow.
constexpr uint64_t kManyStates = uint64_t{1} << 31;

size_t BytesOf(const GrammarExpr& expr) {
  size_t bytes = sizeof(expr) + expr.text.size() + expr.parts.size() * sizeof(expr.parts[0]);
  for (const auto& edges : expr.machine.edges)
    bytes += sizeof(edges) + edges.size() * sizeof(Utf8Machine::Edge);
  return bytes;
}

size_t BytesOf(const GrammarObject& object) {
  size_t bytes = sizeof(object);
  for (const GrammarMember& member : object.members) bytes += sizeof(member) + member.name.size();
  return bytes;
}

// "the rules up to 'a' need 7 states, more than 5"
absl::Status TooManyStates(absl::string_view rule, uint64_t states) {
  return absl::ResourceExhaustedError(absl::StrCat("the rules up to ", QuoteForMessage(rule),
                                                   " need ", states, " states, more than ",
                                                   kMostGrammarStates));
}

Utf8Machine OneByte(const ByteSet& bytes) {
  Utf8Machine machine;
  machine.edges.resize(2);
  machine.edges[1].push_back({bytes, Utf8Machine::kEnd});
  machine.start = 1;
  return machine;
}

}  // namespace

std::string ControlTokenSpelling(int32_t token) {
  assert(token >= 0 && token < 1 << 24);
  return {static_cast<char>(kControlTokenByte), static_cast<char>(token >> 16),
          static_cast<char>(token >> 8), static_cast<char>(token)};
}

bool GrammarBuilder::TakeBytes(size_t bytes) {
  if (!status_.ok()) return false;
  if (bytes <= most_bytes_ - bytes_) {
    bytes_ += bytes;
    return true;
  }
  status_ = absl::ResourceExhaustedError(
      absl::StrCat("the expressions of the grammar take more than ", most_bytes_, " bytes"));
  return false;
}

GrammarBuilder::Expr GrammarBuilder::Add(GrammarExpr expr) {
  if (!TakeBytes(BytesOf(expr))) return 0;  // any number of an expression will do
  for (const Expr part : expr.parts) {
    assert(part >= 0 && static_cast<size_t>(part) < source_.exprs.size());
    const GrammarExpr& inner = source_.exprs[part];
    expr.depth = std::max(expr.depth, inner.depth + 1);
    expr.states += inner.states;
  }
  if (expr.kind == Kind::kRepeat) {
    const uint64_t times = expr.most == kUnlimited ? expr.least + 1 : expr.most;
    expr.states = std::min(times, kManyStates) * std::min(expr.states + 1, kManyStates);
  }
  expr.states = std::min(expr.states + 1, kManyStates);
  source_.exprs.push_back(std::move(expr));
  return static_cast<Expr>(source_.exprs.size() - 1);
}

GrammarBuilder::Expr GrammarBuilder::AddParts(Kind kind, std::vector<Expr> parts) {
  GrammarExpr expr{.kind = kind};
  expr.parts = std::move(parts);
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::Empty() { return AddParts(Kind::kEmpty, {}); }

GrammarBuilder::Expr GrammarBuilder::Nothing() { return AddParts(Kind::kNothing, {}); }

GrammarBuilder::Expr GrammarBuilder::Byte(const ByteSet& bytes) {
  ByteSet text = bytes;
  text.reset(kControlTokenByte);
  GrammarExpr expr{.kind = Kind::kBytes};
  expr.machine = OneByte(text);
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::Text(absl::string_view bytes) {
  if (bytes.find(static_cast<char>(kControlTokenByte)) != absl::string_view::npos) return Nothing();
  GrammarExpr expr{.kind = Kind::kText, .states = bytes.size()};
  expr.text = std::string(bytes);
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::CodePoint(absl::Span<const CodePointRange> ranges) {
  if (!status_.ok()) return 0;  // the machine would be made for nothing
  GrammarExpr expr{.kind = Kind::kCodePoint};
  expr.machine = MakeUtf8Machine(ranges);
  expr.states = expr.machine.edges.size();
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::Sequence(std::vector<Expr> parts) {
  return AddParts(Kind::kSequence, std::move(parts));
}

GrammarBuilder::Expr GrammarBuilder::Choice(std::vector<Expr> options) {
  return AddParts(Kind::kChoice, std::move(options));
}

GrammarBuilder::Expr GrammarBuilder::Repeat(Expr part, size_t least, std::optional<size_t> most) {
  if (most.has_value() && *most < least) return Nothing();
  GrammarExpr expr{.kind = Kind::kRepeat};
  expr.parts = {part};
  expr.least = std::min<uint64_t>(least, kManyStates);
  expr.most = most.has_value() ? std::min<uint64_t>(*most, kManyStates) : kUnlimited;
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::ControlToken(int32_t token) {
  GrammarExpr expr{.kind = Kind::kText, .states = 4};
  expr.text = ControlTokenSpelling(token);
  return Add(std::move(expr));
}

GrammarBuilder::Expr GrammarBuilder::AnyObject(Object object) {
  const Rule rule = Declare("an object");
  if (!TakeBytes(BytesOf(object))) return Call(rule);
  source_.rules[rule].object = static_cast<int32_t>(source_.objects.size());
  source_.objects.push_back(std::move(object));
  return Call(rule);
}

GrammarBuilder::Expr GrammarBuilder::Chain(ChainRule chain) {
  const Rule rule = Declare("a chain");
  if (!TakeBytes(chain.bytes())) return Call(rule);
  source_.rules[rule].chain = static_cast<int32_t>(source_.chains.size());
  source_.chains.push_back(std::move(chain));
  return Call(rule);
}

GrammarBuilder::Expr GrammarBuilder::Counted(Rule part, size_t least, std::optional<size_t> most) {
  if (most.has_value() && *most < least) return Nothing();
  GrammarChain chain;
  chain.states.push_back({.accepts = true, .steps = {{part, 0}}});
  chain.least = least;
  chain.most = most.value_or(chain.most);
  size_t work = 100;  // there is one state
  return Chain(*ChainRule::Create(std::move(chain), &work));
}

GrammarBuilder::Rule GrammarBuilder::Declare(std::string name) {
  TakeBytes(sizeof(GrammarRuleSource) + name.size());
  source_.rules.push_back({.name = std::move(name)});
  return static_cast<Rule>(source_.rules.size() - 1);
}

void GrammarBuilder::Define(Rule rule, Expr expr) {
  assert(rule >= 0 && static_cast<size_t>(rule) < source_.rules.size());
  assert(source_.rules[rule].expr < 0 && source_.rules[rule].object < 0 &&
         source_.rules[rule].chain < 0);
  if (!status_.ok()) return;
  assert(expr >= 0 && static_cast<size_t>(expr) < source_.exprs.size());
  source_.rules[rule].expr = expr;
  states_ += source_.exprs[expr].states + 2;
  if (states_ > kMostGrammarStates) status_ = TooManyStates(source_.rules[rule].name, states_);
}

void GrammarBuilder::Explain(Rule rule, std::string why_empty) {
  assert(rule >= 0 && static_cast<size_t>(rule) < source_.rules.size());
  if (TakeBytes(why_empty.size())) source_.rules[rule].why_empty = std::move(why_empty);
}

GrammarBuilder::Expr GrammarBuilder::Call(Rule rule) {
  assert(rule >= 0 && static_cast<size_t>(rule) < source_.rules.size());
  GrammarExpr expr{.kind = Kind::kCall};
  expr.rule = rule;
  return Add(std::move(expr));
}

absl::StatusOr<std::shared_ptr<const Grammar>> GrammarBuilder::Build(Rule start) && {
  INLAY_RETURN_IF_ERROR(status_);
  const GrammarSource source = std::move(source_);
  return OrOutOfMemory("a grammar", [&] { return CompileGrammar(source, start); });
}

}  // namespace inlay

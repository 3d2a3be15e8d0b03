#include "io/template/parser.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/expression_parser.h"
#include "io/template/lexer.h"
#include "io/template/limits.h"
#include "io/template/token_stream.h"

namespace inlay::jinja {
namespace {

// Tags of Jinja that are left out.
constexpr absl::string_view kUnsupportedTags[] = {"autoescape", "block",  "extends",
                                                  "from",       "import", "include"};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_, parsed_.symbols) {}

  absl::StatusOr<ParsedTemplate> Run() {
    INLAY_ASSIGN_OR_RETURN(parsed_.body, ParseBody({}));
    INLAY_RETURN_IF_ERROR(expressions_.CheckMissing());
    return std::move(parsed_);
  }

 private:
  using Names = std::initializer_list<absl::string_view>;

  static bool IsOneOf(const Token& token, Names names) {
    return std::any_of(names.begin(), names.end(),
                       [&](absl::string_view name) { return token.IsName(name); });
  }

  // Statements until a tag of one of these names, which stays the current token; without names,
  // until the end of the template.
  absl::StatusOr<Body> ParseBody(Names ends) {
    if (++depth_ > kMaxNesting)
      return SyntaxError(tokens_.line(), absl::StrCat("the template has more than ", kMaxNesting,
                                                      " tags inside each other"));
    Body body;
    while (true) {
      const Token& token = tokens_.current();
      const int line = token.line;
      if (token.Is(TokenKind::kEnd)) {
        if (ends.size() > 0)
          return SyntaxError(
              line, absl::StrCat("the template ends before the tag ", absl::StrJoin(ends, " or ")));
        break;
      }
      if (token.Is(TokenKind::kData)) {
        const Value text = Value::String(token.text, Origin::kTemplate);
        body.push_back({line, OutputStatement{ExprPtr(new Expr{line, 1, Constant{text}})}});
        tokens_.Skip();
      } else if (token.Is(TokenKind::kVariableBegin)) {
        tokens_.Skip();
        INLAY_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseTuple());
        INLAY_RETURN_IF_ERROR(tokens_.Expect(TokenKind::kVariableEnd));
        body.push_back({line, OutputStatement{std::move(value)}});
      } else {
        INLAY_RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockBegin));
        if (IsOneOf(tokens_.current(), ends)) break;
        INLAY_RETURN_IF_ERROR(ParseStatement(&body));
        INLAY_RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockEnd));
      }
    }
    --depth_;
    return body;
  }

  // The rest of a tag, the body after it, and the name of the tag that ends the body. `soft` is
  // whether Jinja leaves missing filters for later there.
  absl::StatusOr<Body> ParseBlock(Names ends, bool soft) {
    tokens_.SkipOperator(":");
    INLAY_RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockEnd));
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    expressions_.set_soft(soft);
    return ParseBody(ends);
  }

  // The body up to the one tag that ends it, which is skipped.
  absl::StatusOr<Body> ParseWholeBlock(absl::string_view end, bool soft) {
    INLAY_ASSIGN_OR_RETURN(Body body, ParseBlock({end}, soft));
    tokens_.Skip();
    return body;
  }

  absl::Status ParseStatement(Body* body) {
    const int line = tokens_.line();
    INLAY_ASSIGN_OR_RETURN(const std::string tag, tokens_.ReadName());
    if (tag == "print") return ParsePrint(body);
    using Rule = absl::StatusOr<decltype(Statement::node)> (Parser::*)(int);
    constexpr std::pair<absl::string_view, Rule> kRules[] = {
        {"if", &Parser::ParseIf},       {"for", &Parser::ParseFor},
        {"set", &Parser::ParseSet},     {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCall},   {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},   {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseBreak}, {"continue", &Parser::ParseContinue},
    };
    for (const auto& [name, rule] : kRules) {
      if (name != tag) continue;
      INLAY_ASSIGN_OR_RETURN(auto node, (this->*rule)(line));
      body->push_back({line, std::move(node)});
      return absl::OkStatus();
    }
    for (const absl::string_view unsupported : kUnsupportedTags) {
      if (tag == unsupported)
        return UnsupportedError(line, absl::StrCat("the tag ", tag, " is not supported"));
    }
    return SyntaxError(line,
                       absl::StrCat("there is no tag ", QuoteForMessage(tag), " at this place"));
  }

  absl::Status ParsePrint(Body* body) {
    for (bool first = true; !tokens_.current().Is(TokenKind::kBlockEnd); first = false) {
      const int line = tokens_.line();
      if (!first) INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      INLAY_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseExpression());
      body->push_back({line, OutputStatement{std::move(value)}});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<decltype(Statement::node)> ParseIf(int) {
    IfStatement statement;
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    while (true) {
      expressions_.set_soft(true);
      INLAY_ASSIGN_OR_RETURN(ExprPtr test, expressions_.ParseTuple(/*with_condition=*/false));
      INLAY_ASSIGN_OR_RETURN(Body body, ParseBlock({"elif", "else", "endif"}, /*soft=*/true));
      statement.branches.emplace_back(std::move(test), std::move(body));
      INLAY_ASSIGN_OR_RETURN(const std::string tag, tokens_.ReadName());
      if (tag == "elif") continue;
      if (tag == "else") {
        INLAY_ASSIGN_OR_RETURN(statement.otherwise, ParseWholeBlock("endif", /*soft=*/true));
      }
      return statement;
    }
  }

  absl::StatusOr<decltype(Statement::node)> ParseFor(int) {
    ForStatement statement;
    ++open_fors_;
    INLAY_ASSIGN_OR_RETURN(statement.target, ParseTarget(/*with_namespace=*/false));
    INLAY_RETURN_IF_ERROR(tokens_.ExpectName("in"));
    INLAY_ASSIGN_OR_RETURN(statement.items, expressions_.ParseTuple(/*with_condition=*/false));
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    expressions_.set_soft(false);
    if (tokens_.SkipName("if")) {
      INLAY_ASSIGN_OR_RETURN(statement.test, expressions_.ParseExpression());
    }
    statement.recursive = tokens_.SkipName("recursive");
    ++loops_;
    INLAY_ASSIGN_OR_RETURN(statement.body, ParseBlock({"endfor", "else"}, /*soft=*/false));
    --loops_;
    if (tokens_.SkipName("else")) {
      INLAY_ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endfor"}, /*soft=*/false));
    }
    tokens_.Skip();
    --open_fors_;
    return statement;
  }

  absl::StatusOr<decltype(Statement::node)> ParseSet(int) {
    INLAY_ASSIGN_OR_RETURN(Target target, ParseTarget(/*with_namespace=*/true));
    if (tokens_.SkipOperator("=")) {
      INLAY_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseTuple());
      return SetStatement{std::move(target), std::move(value)};
    }
    SetBlockStatement block;
    block.target = std::move(target);
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    expressions_.set_soft(false);
    INLAY_ASSIGN_OR_RETURN(block.filter,
                           expressions_.ParseFilters(nullptr, /*first_inline=*/false));
    INLAY_ASSIGN_OR_RETURN(block.body, ParseWholeBlock("endset", /*soft=*/false));
    return block;
  }

  absl::StatusOr<decltype(Statement::node)> ParseMacro(int line) {
    auto macro = std::make_unique<MacroDefinition>();
    macro->line = line;
    const Token name = tokens_.current();
    INLAY_ASSIGN_OR_RETURN(const Target target, ParseNameTarget());
    macro->name = name.text;
    INLAY_RETURN_IF_ERROR(ParseSignature(macro.get()));
    INLAY_RETURN_IF_ERROR(ParseMacroBody("endmacro", macro.get()));
    return MacroStatement{target.symbol, std::move(macro)};
  }

  absl::StatusOr<decltype(Statement::node)> ParseCall(int line) {
    auto caller = std::make_unique<MacroDefinition>();
    caller->line = line;
    caller->name = "caller";
    if (tokens_.current().IsOperator("(")) INLAY_RETURN_IF_ERROR(ParseSignature(caller.get()));
    INLAY_ASSIGN_OR_RETURN(ExprPtr call, expressions_.ParseExpression());
    if (!std::holds_alternative<CallExpr>(call->node))
      return SyntaxError(line, "the tag call needs a call");
    INLAY_RETURN_IF_ERROR(ParseMacroBody("endcall", caller.get()));
    return CallBlockStatement{std::move(caller), std::move(call)};
  }

  // The parameters in parentheses, with their defaults.
  absl::Status ParseSignature(MacroDefinition* macro) {
    INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    expressions_.set_soft(false);
    while (!tokens_.current().IsOperator(")")) {
      const int line = tokens_.line();
      if (!macro->parameters.empty()) INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      INLAY_ASSIGN_OR_RETURN(const Target parameter, ParseNameTarget());
      const std::string& name = Name(parameter.symbol);
      if (name == "caller")
        return UnsupportedError(line, "a parameter of the name caller is not supported");
      if (macro->parameters.size() == kMaxNames)
        return SyntaxError(line, absl::StrCat("a macro has more than ", kMaxNames, " parameters"));
      for (const Symbol other : macro->parameters) {
        if (other == parameter.symbol)
          return SyntaxError(line, absl::StrCat("two parameters have the name ", name));
      }
      if (tokens_.SkipOperator("=")) {
        INLAY_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseExpression());
        macro->defaults.push_back(std::move(value));
      } else if (!macro->defaults.empty()) {
        return SyntaxError(line, "a parameter without a default follows one that has one");
      }
      macro->parameters.push_back(parameter.symbol);
    }
    tokens_.Skip();
    return absl::OkStatus();
  }

  absl::Status ParseMacroBody(absl::string_view end, MacroDefinition* macro) {
    auto& open = expressions_.open_macros();
    open.push_back(macro);
    const int loops = std::exchange(loops_, 0);  // a break does not leave a macro
    INLAY_ASSIGN_OR_RETURN(macro->body, ParseWholeBlock(end, /*soft=*/false));
    loops_ = loops;
    open.pop_back();
    return absl::OkStatus();
  }

  absl::StatusOr<decltype(Statement::node)> ParseFilterBlock(int) {
    FilterBlockStatement block;
    const bool was_soft = expressions_.soft();
    const absl::Cleanup restore = [&] { expressions_.set_soft(was_soft); };
    expressions_.set_soft(false);
    INLAY_ASSIGN_OR_RETURN(block.filter, expressions_.ParseFilters(nullptr, /*first_inline=*/true));
    INLAY_ASSIGN_OR_RETURN(block.body, ParseWholeBlock("endfilter", /*soft=*/false));
    return block;
  }

  absl::StatusOr<decltype(Statement::node)> ParseWith(int) {
    WithStatement with;
    while (!tokens_.current().Is(TokenKind::kBlockEnd)) {
      if (!with.variables.empty()) INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      INLAY_ASSIGN_OR_RETURN(Target target, ParseTarget(/*with_namespace=*/false));
      INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator("="));
      INLAY_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseExpression());
      with.variables.emplace_back(std::move(target), std::move(value));
    }
    INLAY_ASSIGN_OR_RETURN(with.body, ParseWholeBlock("endwith", /*soft=*/false));
    return with;
  }

  absl::StatusOr<decltype(Statement::node)> ParseGeneration(int) {
    GenerationStatement generation;
    const int loops = std::exchange(loops_, 0);
    INLAY_ASSIGN_OR_RETURN(generation.body, ParseWholeBlock("endgeneration", /*soft=*/false));
    loops_ = loops;
    return generation;
  }

  absl::StatusOr<decltype(Statement::node)> ParseBreak(int line) {
    if (loops_ == 0) return SyntaxError(line, "a break is outside of a loop");
    return BreakStatement{};
  }

  absl::StatusOr<decltype(Statement::node)> ParseContinue(int line) {
    if (loops_ == 0) return SyntaxError(line, "a continue is outside of a loop");
    return ContinueStatement{};
  }

  const std::string& Name(Symbol symbol) const {
    return parsed_.symbols.names()[static_cast<size_t>(symbol)];
  }

  absl::StatusOr<Target> ParseNameTarget() {
    const int line = tokens_.line();
    INLAY_ASSIGN_OR_RETURN(const std::string name, tokens_.ReadName());
    constexpr absl::string_view kConstants[] = {"true", "True", "false", "False", "none", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants))
      return SyntaxError(line, absl::StrCat(name, " cannot be assigned to"));
    Target target;
    target.symbol = parsed_.symbols.Add(name);
    return target;
  }

  // A name, an attribute of a namespace, or names in parentheses.
  absl::StatusOr<Target> ParseSingleTarget(bool with_namespace) {
    const int line = tokens_.line();
    if (tokens_.SkipOperator("(")) {
      if (++depth_ > kMaxNesting) return SyntaxError(line, "a target has too many parentheses");
      INLAY_ASSIGN_OR_RETURN(Target inner, ParseTarget(/*with_namespace=*/false));
      --depth_;
      INLAY_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
      return inner;
    }
    INLAY_ASSIGN_OR_RETURN(Target target, ParseNameTarget());
    if (with_namespace && tokens_.SkipOperator(".")) {
      INLAY_ASSIGN_OR_RETURN(target.attribute, tokens_.ReadName());
    } else if (open_fors_ > 0 && Name(target.symbol) == "loop") {
      return SyntaxError(line, "the variable loop cannot be assigned to within a loop");
    }
    return target;
  }

  // One target, or several with commas between them. After a comma at the end, a bracket or the end
  // of the tag must follow.
  absl::StatusOr<Target> ParseTarget(bool with_namespace) {
    Target tuple;
    while (true) {
      INLAY_ASSIGN_OR_RETURN(Target part, ParseSingleTarget(with_namespace));
      tuple.parts.push_back(std::move(part));
      if (!tokens_.SkipOperator(",")) break;
      tuple.is_tuple = true;
      if (tokens_.current().IsOperator(")") || tokens_.current().Is(TokenKind::kBlockEnd)) break;
    }
    if (!tuple.is_tuple) return std::move(tuple.parts[0]);
    return tuple;
  }

  TokenStream tokens_;
  ParsedTemplate parsed_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int open_fors_ = 0;  // for tags that are being parsed
  int loops_ = 0;      // of these, those that a break could leave
};

}  // namespace

Symbol SymbolTable::Add(absl::string_view name) {
  const auto [entry, added] =
      numbers_.try_emplace(std::string(name), static_cast<Symbol>(names_.size()));
  if (added) names_.emplace_back(name);
  return entry->second;
}

Symbol SymbolTable::Find(absl::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

absl::StatusOr<ParsedTemplate> ParseTemplate(absl::string_view source) {
  INLAY_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace inlay::jinja

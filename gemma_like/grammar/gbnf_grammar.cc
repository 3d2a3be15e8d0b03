#include "gemma_like/grammar/gbnf_grammar.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "gemma_like/grammar/code_point_set.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr size_t kMostGbnfSize = size_t{1} << 20;
constexpr size_t kMostGbnfDepth = 60;
constexpr size_t kMostGbnfRepetitions = 1'000'000;

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; }

class GbnfParser {
 public:
  explicit GbnfParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::shared_ptr<const Grammar>> Parse() && {
    Skip(/*lines=*/true);
    while (!Ends()) {
      INLAY_RETURN_IF_ERROR(Definition());
      Skip(/*lines=*/true);
    }
    for (const auto& [name, rule] : rules_)
      if (!rule.is_defined)
        return ErrorAt(rule.first_use,
                       absl::StrCat("the rule ", QuoteForMessage(name), ", which is not defined,"));
    const auto root = rules_.find("root");
    if (root == rules_.end()) return absl::InvalidArgumentError("the grammar has no rule 'root'");
    return std::move(builder_).Build(root->second.rule);
  }

 private:
  struct NamedRule {
    GrammarBuilder::Rule rule;
    size_t first_use;
    bool is_defined = false;
  };

  absl::Status ErrorAt(size_t at, absl::string_view what) const {
    const absl::string_view before = text_.substr(0, at);
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return absl::InvalidArgumentError(
        absl::StrCat("the grammar has ", what, " in line ", line, ", column ", at - start + 1));
  }
  absl::Status Error(absl::string_view what) const { return ErrorAt(at_, what); }

  bool Ends() const { return at_ == text_.size(); }
  bool Sees(absl::string_view what) const { return text_.substr(at_, what.size()) == what; }
  bool SeesLineEnd() const { return Sees("\n") || Sees("\r"); }
  bool Take(absl::string_view what) {
    if (!Sees(what)) return false;
    at_ += what.size();
    return true;
  }

  // Spaces and comments, and with `lines` the ends of lines.
  void Skip(bool lines) {
    for (; !Ends(); ++at_) {
      if (Sees("#"))
        while (!Ends() && !SeesLineEnd()) ++at_;
      if (!Sees(" ") && !Sees("\t") && !(lines && SeesLineEnd())) return;
    }
  }

  absl::string_view Name() {
    const size_t start = at_;
    while (!Ends() && IsNameCharacter(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  NamedRule& FindRule(absl::string_view name, size_t use) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second;
    return rules_.emplace(name, NamedRule{builder_.Declare(std::string(name.substr(0, 100))), use})
        .first->second;
  }

  absl::Status Definition() {
    const size_t start = at_;
    const absl::string_view name = Name();
    if (name.empty()) return Error("something that is not the name of a rule");
    Skip(/*lines=*/false);
    if (!Take("::=")) return Error("no '::=' after the name of a rule");
    Skip(/*lines=*/true);
    const NamedRule& rule = FindRule(name, start);
    if (rule.is_defined)
      return ErrorAt(start, absl::StrCat("a second rule ", QuoteForMessage(name)));
    INLAY_ASSIGN_OR_RETURN(const Expr expr, Choice(0));
    if (!Ends() && !SeesLineEnd()) return Error("something that does not belong to a rule");
    NamedRule& defined = FindRule(name, start);
    defined.is_defined = true;
    builder_.Define(defined.rule, expr);
    return absl::OkStatus();
  }

  absl::StatusOr<Expr> Choice(size_t depth) {
    std::vector<Expr> options;
    do {
      Skip(/*lines=*/depth > 0 || !options.empty());
      INLAY_ASSIGN_OR_RETURN(const Expr option, Sequence(depth));
      options.push_back(option);
    } while (Take("|"));
    return builder_.Choice(std::move(options));
  }

  absl::StatusOr<Expr> Sequence(size_t depth) {
    std::vector<Expr> parts;
    while (!Ends() && !SeesLineEnd() && !Sees("|") && !Sees(")")) {
      INLAY_RETURN_IF_ERROR(builder_.status());
      INLAY_ASSIGN_OR_RETURN(Expr part, Symbol(depth));
      Skip(/*lines=*/depth > 0);
      INLAY_RETURN_IF_ERROR(Repetitions(depth, &part));
      parts.push_back(part);
    }
    return builder_.Sequence(std::move(parts));
  }

  absl::StatusOr<Expr> Symbol(size_t depth) {
    if (Take("\"")) return Literal();
    if (Take("[")) return Class();
    if (Take(".")) return One(CodePointSet::All());
    if (Sees("<") || Sees("!")) return Token();
    if (Sees("(")) {
      if (depth == kMostGbnfDepth)
        return Error(absl::StrCat("groups inside each other beyond ", kMostGbnfDepth));
      const size_t start = at_;
      Take("(");
      INLAY_ASSIGN_OR_RETURN(const Expr group, Choice(depth + 1));
      if (!Take(")")) return ErrorAt(start, "a '(' without its ')'");
      return group;
    }
    const size_t start = at_;
    const absl::string_view name = Name();
    if (name.empty()) return Error("a character that begins no symbol");
    return builder_.Call(FindRule(name, start).rule);
  }

  // Any number of ? * + {...} after `part`.
  absl::Status Repetitions(size_t depth, Expr* part) {
    for (size_t count = 0;; ++count) {
      size_t least = 0;
      std::optional<size_t> most;
      if (Take("*")) {
      } else if (Take("+")) {
        least = 1;
      } else if (Take("?")) {
        most = 1;
      } else if (Sees("{")) {
        INLAY_RETURN_IF_ERROR(Braces(&least, &most));
      } else {
        return absl::OkStatus();
      }
      if (count == kMostGbnfDepth) return Error("too many repetitions of one symbol");
      *part = builder_.Repeat(*part, least, most);
      Skip(/*lines=*/depth > 0);
    }
  }

  absl::Status Braces(size_t* least, std::optional<size_t>* most) {
    const size_t start = at_;
    Take("{");
    Skip(/*lines=*/false);
    const std::optional<size_t> low = Count();
    Skip(/*lines=*/false);
    std::optional<size_t> high = low;
    const bool has_comma = Take(",");
    if (has_comma) {
      Skip(/*lines=*/false);
      high = Count();
      Skip(/*lines=*/false);
    }
    if ((!low && !high) || !Take("}")) return ErrorAt(start, "a '{' that begins no repetition");
    if (std::max(low.value_or(0), high.value_or(0)) > kMostGbnfRepetitions)
      return ErrorAt(start, absl::StrCat("more than ", kMostGbnfRepetitions, " repetitions"));
    *least = low.value_or(0);
    *most = high;
    if (high && *high < *least)
      return ErrorAt(start, "repetitions whose bounds are in the wrong order");
    return absl::OkStatus();
  }

  std::optional<size_t> Count() {
    const size_t start = at_;
    size_t count = 0;
    for (; !Ends() && absl::ascii_isdigit(text_[at_]); ++at_)
      count =
          std::min(count * 10 + static_cast<size_t>(text_[at_] - '0'), kMostGbnfRepetitions + 1);
    return at_ == start ? std::nullopt : std::optional<size_t>(count);
  }

  // After the quote.
  absl::StatusOr<Expr> Literal() {
    const size_t start = at_ - 1;
    std::string literal;
    while (!Take("\"")) {
      if (Ends() || SeesLineEnd()) return ErrorAt(start, "a text without its closing quote");
      const size_t at = at_;
      INLAY_ASSIGN_OR_RETURN(const uint32_t c, Character());
      if (c >= 0xD800 && c < 0xE000) return ErrorAt(at, "a surrogate, which UTF-8 does not have,");
      AppendUtf8(c, &literal);
    }
    return builder_.Text(literal);
  }

  // After the bracket.
  absl::StatusOr<Expr> Class() {
    const size_t start = at_ - 1;
    const bool negated = Take("^");
    std::vector<CodePointRange> ranges;
    while (!Take("]")) {
      if (Ends() || SeesLineEnd()) return ErrorAt(start, "a '[' without its ']'");
      const size_t at = at_;
      INLAY_ASSIGN_OR_RETURN(const uint32_t first, Character());
      uint32_t last = first;
      if (Sees("-") && !Sees("-]")) {
        Take("-");
        if (Ends()) return ErrorAt(start, "a '[' without its ']'");
        INLAY_ASSIGN_OR_RETURN(last, Character());
      }
      if (last < first) return ErrorAt(at, "a range whose bounds are in the wrong order");
      ranges.push_back({first, last});
    }
    const CodePointSet set(std::move(ranges));
    return One(negated ? set.Complement() : set);
  }

  // One code point of the set. Equal sets share an expression: its machine takes time and memory.
  Expr One(const CodePointSet& set) {
    const auto [known, is_new] = sets_.try_emplace(set, 0);
    if (is_new) known->second = builder_.CodePoint(set.ranges());
    return known->second;
  }

  // A code point, perhaps escaped.
  absl::StatusOr<uint32_t> Character() {
    if (!Sees("\\")) {
      const CodePoint literal = DecodeUtf8(text_.substr(at_));
      if (!literal.valid) return Error("bytes that are not UTF-8");
      at_ += literal.length;
      return literal.value;
    }
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    static constexpr absl::string_view kNames = "trn\\\"[]-^", kMeant = "\t\r\n\\\"[]-^";
    const size_t named = kNames.find(c);
    if (named != absl::string_view::npos) {
      at_ += 2;
      return static_cast<uint8_t>(kMeant[named]);
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char digit = at_ + 2 + i < text_.size() ? text_[at_ + 2 + i] : ' ';
      if (!absl::ascii_isxdigit(digit)) return Error("an escape with too few digits");
      const int lower = absl::ascii_tolower(static_cast<unsigned char>(digit));
      value = value * 16 + static_cast<uint64_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    if (digits == 0 || value > kLastCodePoint) return Error("an unknown escape");
    at_ += 2 + digits;
    return static_cast<uint32_t>(value);
  }

  absl::StatusOr<Expr> Token() {
    const absl::string_view rest = text_.substr(at_);
    const absl::string_view token = rest.substr(0, rest.find_first_of(">\n"));
    return Error(absl::StrCat("the token ", QuoteForMessage(absl::StrCat(token, ">")),
                              ", which is not supported,"));
  }

  const absl::string_view text_;
  size_t at_ = 0;
  GrammarBuilder builder_;
  std::map<std::string, NamedRule, std::less<>> rules_;
  std::map<CodePointSet, Expr> sets_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Grammar>> ParseGbnf(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark
  if (text.size() > kMostGbnfSize)
    return absl::InvalidArgumentError(absl::StrCat("the grammar has ", text.size(),
                                                   " bytes; at most ", kMostGbnfSize, " are read"));
  return OrOutOfMemory("a grammar", [&] { return GbnfParser(text).Parse(); });
}

}  // namespace inlay

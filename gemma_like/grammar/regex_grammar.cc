#include "gemma_like/grammar/regex_grammar.h"

#include <cassert>
#include <optional>
#include <utility>
#include <vector>

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

Expr AddNode(GrammarBuilder& builder, CharacterSpeller& speller, const RegexNode& node) {
  std::vector<Expr> parts;
  parts.reserve(node.parts.size());
  for (const RegexNode& part : node.parts) parts.push_back(AddNode(builder, speller, part));
  switch (node.kind) {
    case RegexNode::Kind::kClass:
      return speller.One(node.set);
    case RegexNode::Kind::kChoice:
      return builder.Choice(std::move(parts));
    case RegexNode::Kind::kRepeat:
      return builder.Repeat(parts[0], node.least, node.most);
    default:
      return builder.Sequence(std::move(parts));
  }
}

}  // namespace

Expr AddRegex(GrammarBuilder& builder, CharacterSpeller& speller, const Regex& regex) {
  assert(!regex.looks_ahead());
  std::vector<Expr> options;
  for (const RegexBranch& branch : regex.branches) {
    std::vector<Expr> parts;
    const auto any_text = [&] {
      return builder.Repeat(speller.One(CodePointSet::All()), 0, std::nullopt);
    };
    if (!branch.from_start) parts.push_back(any_text());
    parts.push_back(AddNode(builder, speller, branch.core));
    if (!branch.to_end) parts.push_back(any_text());
    options.push_back(builder.Sequence(std::move(parts)));
  }
  return options.empty() ? builder.Nothing() : builder.Choice(std::move(options));
}

}  // namespace inlay

#include "gemma_like/chat/call_shape.h"

#include <string>

namespace inlay {
namespace {

std::optional<CallRules::Syntax> SyntaxOf(CallSyntax syntax) {
  switch (syntax) {
    case CallSyntax::kJson:
      return CallRules::Syntax::kJson;
    case CallSyntax::kTagged:
      return CallRules::Syntax::kTagged;
    case CallSyntax::kNamedJson:
      return CallRules::Syntax::kNamedJson;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<CallRules> CallRulesOf(const AnswerFormat& format) {
  const std::optional<CallRules::Syntax> syntax = SyntaxOf(format.calls);
  if (!syntax.has_value()) return std::nullopt;
  return CallRules{.syntax = *syntax,
                   .begin = std::string(format.call_begin),
                   .end = std::string(format.call_end),
                   .think_begin = std::string(format.think_begin),
                   .think_end = std::string(format.think_end),
                   .tools = {}};
}

}  // namespace inlay

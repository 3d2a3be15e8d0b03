// What a chat template does not take of the order of roles, and chats adapted to that.
#ifndef INLAY_GEMMA_LIKE_CHAT_TURN_RULES_H_
#define INLAY_GEMMA_LIKE_CHAT_TURN_RULES_H_

#include "gemma_like/chat/chat_probe.h"
#include "io/template/value.h"

namespace inlay {

// Some templates want user and assistant to take turns, or one system message in front of all
// others. Coding agents send several of each, and system messages in the middle. Each member says
// that a template refuses such a chat, or leaves texts of it out, and so what is done to every chat
// in which it occurs.
//
// The rules are the template's, whatever chat is written: a chat that goes on is written as before
// up to where it went on, so what was computed of it can be used again.
struct TurnRules {
  // There is no system role: what the system says first is a user's message.
  bool system_is_user = false;
  // One system message: further ones after the first are part of it.
  bool one_system = false;
  // None after others: what the system says then is a user's message. One between calls of tools
  // and their results comes after the results.
  bool late_system_is_user = false;
  // What the user says right after a result of a tool is part of the last result.
  bool no_user_after_result = false;
  // Messages of a user that follow each other are one.
  bool one_user = false;
  // Messages of the assistant that follow each other are one, up to the first with calls.
  bool one_assistant = false;

  friend bool operator==(const TurnRules&, const TurnRules&) = default;

  // Of the template that `render` renders, found out with chats of a few words. Of a template that
  // cannot render the simplest ones nothing is known, and so nothing adapted.
  static TurnRules Of(ChatProbe::Render render);

  // The messages as PrepareMessages makes them, adapted. Texts that become one have a blank line
  // between them. A message whose thoughts are no text stays one of its own.
  jinja::Value Adapt(const jinja::Value& messages) const;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_TURN_RULES_H_

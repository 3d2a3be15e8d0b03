// What the handle of a chat holds.
#ifndef INLAY_GEMMA_LIKE_C_API_CHAT_HANDLE_H_
#define INLAY_GEMMA_LIKE_C_API_CHAT_HANDLE_H_

#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/inlay_c.h"
#include "io/template/value.h"

// Immutable.
struct inlay_chat {
  inlay::RenderedChat rendered;
  inlay::jinja::Value tools;  // as given, for the types of arguments
  bool has_tools;
};

#endif  // INLAY_GEMMA_LIKE_C_API_CHAT_HANDLE_H_

// The conversation of inlay chat with its user: lines, commands and answers, whoever answers.
#ifndef INLAY_TOOLS_CHAT_LOOP_H_
#define INLAY_TOOLS_CHAT_LOOP_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemma_like/generation/generate.h"
#include "tools/answer_printer.h"
#include "tools/line_reader.h"
#include "tools/output.h"

namespace inlay {

// A line that begins with a slash.
struct ChatCommand {
  std::string name;              // "/fork"
  std::optional<size_t> number;  // its argument: a number
  std::string file;              // or a file
};

// Who answers.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  // Answers `text`, or the last message once more, and shows the answer. On an error the
  // conversation is as it was. Cancelled when it was interrupted before the answer began.
  virtual absl::Status Say(const std::string& text, AnswerPrinter& printer,
                           const CancelCheck& cancel) = 0;
  virtual absl::Status Regenerate(AnswerPrinter& printer, const CancelCheck& cancel) = 0;

  // Runs another command than those of the loop (/help, /regen, /exit, /quit), which may ask for
  // more. The note to show; nothing where there is no such command.
  virtual absl::StatusOr<std::optional<std::string>> Run(const ChatCommand& command,
                                                         LineReader& reader) = 0;
};

// What /help shows.
extern const char kChatHelp[];

// Reads lines, has messages answered and runs commands until the user ends the chat. Where no user
// can react, the first error ends it.
absl::Status RunChatLoop(ChatPartner& partner);

}  // namespace inlay

#endif  // INLAY_TOOLS_CHAT_LOOP_H_

// The conversation of inlay chat with its user: lines, commands and answers, whoever answers.
#ifndef INLAY_TOOLS_CHAT_LOOP_H_
#define INLAY_TOOLS_CHAT_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/generation/generate.h"
#include "tools/answer_printer.h"
#include "tools/completion.h"
#include "tools/line_reader.h"
#include "tools/output.h"

namespace inlay {

// A line that begins with a slash.
struct ChatCommand {
  std::string name;                     // "/fork"
  std::optional<uint64_t> number = {};  // its argument: a whole number
  std::optional<float> value = {};      // or another one
  std::string text = {};                // or a text or file
};

// Who answers.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  // What is shown to a person before the first message: lines on who answers; "" for nothing.
  virtual std::string Opening() const { return ""; }

  // Answers `text`, or the last message once more, and shows the answer. On an error the
  // conversation is as it was. Cancelled when it was interrupted before the answer began.
  virtual absl::Status Say(const std::string& text, AnswerPrinter& printer,
                           const CancelCheck& cancel) = 0;
  virtual absl::Status Regenerate(AnswerPrinter& printer, const CancelCheck& cancel) = 0;

  // Runs another command than those of the loop (/help, /regen, /exit, /quit), which may ask for
  // more. The note to show.
  virtual absl::StatusOr<std::string> Run(const ChatCommand& command, LineReader& reader) = 0;

  // Whether the model runs in this process, so that its conversation can be forked and saved here.
  virtual bool RunsHere() const { return true; }

  // To be called when the chat ends: what is shown to a person then; "" for nothing.
  virtual std::string Closing() { return ""; }
};

// What /help shows: a line for each command that works where the model runs.
std::string ChatHelp(bool runs_here);

// What /system shows, and the system prompt that its text means: "" for two quotes.
std::string SystemText(absl::string_view system);
std::string SystemOf(absl::string_view text);

// What is shown of a turn.
std::string ShownTurn(absl::string_view user, absl::string_view answer);
// The text, or its first `bytes` bytes and dots where it is longer.
std::string Shortened(absl::string_view text, size_t bytes);

// What Tab completes in a chat: commands that work there, and what /save and /load name, by
// `names`.
Completions CompleteChatLine(absl::string_view line, bool runs_here,
                             const WordCompleter& names = CompletePath);

// Reads lines, has messages answered and runs commands until the user ends the chat. Where no user
// is there to read a note on an error, returns it.
absl::Status RunChatLoop(ChatPartner& partner, LineReader& reader);

}  // namespace inlay

#endif  // INLAY_TOOLS_CHAT_LOOP_H_

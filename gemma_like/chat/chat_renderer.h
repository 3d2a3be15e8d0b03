// The one way from a chat's messages to tokens: a chat template, rendered and encoded.
#ifndef INLAY_GEMMA_LIKE_CHAT_CHAT_RENDERER_H_
#define INLAY_GEMMA_LIKE_CHAT_CHAT_RENDERER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "configs/config.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/chat/chat_messages.h"
#include "gemma_like/chat/content_parts.h"
#include "gemma_like/chat/turn_rules.h"
#include "gemma_like/load_model.h"
#include "io/json/parse_json.h"
#include "io/template/jinja.h"
#include "io/template/text.h"
#include "io/template/value.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The key of a model file's template, and of the one that some files have for chats with tools.
inline constexpr absl::string_view kChatTemplateKey = "tokenizer.chat_template";
inline constexpr absl::string_view kToolUseTemplateKey = "tokenizer.chat_template.tool_use";

// Gives a template bos_token and eos_token, where the vocabulary has them.
void SetTokenTexts(const Tokenizer& tokenizer, jinja::DictRep& variables);

// What is rendered.
struct ChatInput {
  jinja::Value messages;                      // as for PrepareMessages
  jinja::Value tools = jinja::Value::None();  // a list of definitions, or none
  // Further variables as a dict, as {"enable_thinking": false}, or none. They are texts of a
  // message, and cannot replace those that the renderer sets.
  jinja::Value variables = jinja::Value::None();
  bool add_generation_prompt = true;  // up to where the assistant answers
  jinja::RenderOptions options;       // what the template may use, and the time that it is told

  bool has_tools() const;

  // From JSON in the shape of OpenAI's chat/completions. `tools` and `variables` may be "" for
  // none. InvalidArgument, naming which of the three is not what it should be.
  static absl::StatusOr<ChatInput> Parse(absl::string_view messages, absl::string_view tools = "",
                                         absl::string_view variables = "");
  // The same of JSON that was parsed, whose strings are UTF-8; `tools` and `variables` may be null.
  static absl::StatusOr<ChatInput> From(const Json& messages, const Json& tools,
                                        const Json& variables);
};

struct RenderedChat {
  jinja::Text text;
  std::vector<int32_t> tokens;  // of the text, BOS before it as the vocabulary says
  // How many of the tokens precede the generation prompt: those that the chat has without it too.
  // All of them where the template writes none.
  size_t generation_prompt = 0;
  // The generation prompt leaves the model amid its thoughts: the answer begins with them.
  bool in_thinking = false;
  AnswerFormat answer_format;  // of the template that was used
};

// Renders messages by a model file's own template, by a built-in one where the file has none, or by
// a template that the user gives. The order of roles and the contents are adapted to what the
// template takes (TurnRules, ContentParts). Safe to call from several threads; one chat that is
// rendered again and again must be given one time (ChatInput::options).
class ChatRenderer {
 public:
  // By the template of the model's file; where the file has one for tools, it is used for chats
  // with tools. The model must outlive the renderer. InvalidArgument or Unimplemented, with file
  // and line, for a template that cannot be run.
  static absl::StatusOr<ChatRenderer> Create(const LoadedModel& model);
  // The same of a file without its weights; `built_in` is for a file without a template.
  static absl::StatusOr<ChatRenderer> Create(const GgufFile& file, const Tokenizer& tokenizer,
                                             ChatTemplate built_in);
  // By this template, which messages call `name`. The tokenizer must outlive the renderer.
  static absl::StatusOr<ChatRenderer> CreateFrom(const Tokenizer& tokenizer,
                                                 absl::string_view source,
                                                 absl::string_view name = "the chat template");

  // FailedPrecondition with the template's own words when it refuses the chat, or when it leaves
  // out what users say; InvalidArgument for messages, tools or variables of the wrong shape;
  // OutOfRange when rendering takes too many steps or too much memory.
  absl::StatusOr<RenderedChat> Render(const ChatInput& input) const;

  // The two halves of Render.
  absl::StatusOr<jinja::Text> RenderText(const ChatInput& input) const;
  absl::StatusOr<std::vector<int32_t>> Encode(const jinja::Text& text) const;

  // Of the texts of its templates.
  uint64_t hash() const;

  // The format of answers in chats with tools, or without them.
  const AnswerFormat& answer_format(bool tools) const { return source(tools).format; }
  // What their templates differ in when they read messages, and what they do not take.
  const MessageStyle& message_style(bool tools) const { return source(tools).style; }
  const TurnRules& turn_rules(bool tools) const { return source(tools).rules; }
  const ContentParts& content_parts(bool tools) const { return source(tools).parts; }

 private:
  struct Source {
    std::string name;   // for messages
    uint64_t hash = 0;  // of its text
    jinja::Template parsed;
    AnswerFormat format;
    MessageStyle style;
    ContentParts parts;
    TurnRules rules;
  };

  ChatRenderer(const Tokenizer& tokenizer, Source source)
      : tokenizer_(&tokenizer), source_(std::move(source)) {}

  absl::StatusOr<RenderedChat> RenderBoth(const ChatInput& input) const;
  static absl::StatusOr<Source> Parse(const Tokenizer& tokenizer, absl::string_view text,
                                      std::string name);
  // `messages` as PrepareMessages makes them, in which contents are adapted; all else from `input`.
  static absl::StatusOr<jinja::Text> RenderMessages(const Tokenizer& tokenizer,
                                                    const Source& source,
                                                    const jinja::Value& messages,
                                                    const ChatInput& input);
  const Source& source(bool tools) const {
    return tools && tool_use_.has_value() ? *tool_use_ : source_;
  }

  const Tokenizer* tokenizer_;
  Source source_;
  std::optional<Source> tool_use_;
};

// Whether the model's file holds a template that is not empty.
bool HasChatTemplate(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CHAT_RENDERER_H_

#include "gemma_like/chat/builtin_templates.h"

namespace inlay {
namespace {

#define INLAY_REFUSE_TOOLS                                                                    \
  "{%- if tools %}{{ raise_exception('the model file has no chat template, and the built-in " \
  "one takes no tools') }}{% endif -%}"
#define INLAY_REFUSE_ROLE                                                                      \
  "{{ raise_exception('the model file has no chat template, and the built-in one has no role " \
  "' ~ message.role) }}"

// Gemma has no system role: instructions come first in the user's turn.
constexpr char kGemmaTurns[] = INLAY_REFUSE_TOOLS R"({{ bos_token }}
{%- set pending = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role in ['system', 'developer'] -%}
    {%- set pending.system = pending.system + message.content + '\n\n' -%}
  {%- elif message.role == 'user' -%}
    {{- '<start_of_turn>user\n' + pending.system + message.content | trim + '<end_of_turn>\n' -}}
    {%- set pending.system = '' -%}
  {%- elif message.role in ['assistant', 'model'] -%}
    {{- '<start_of_turn>model\n' + message.content + '<end_of_turn>\n' -}}
  {%- else -%}
    )" INLAY_REFUSE_ROLE R"(
  {%- endif -%}
{%- endfor -%}
{{- '<start_of_turn>model\n' if add_generation_prompt -}})";

// Gemma 4 thinks if the system turn says so, and does not see its earlier thoughts.
constexpr char kGemma4Turns[] = INLAY_REFUSE_TOOLS R"({{ bos_token }}
{#- Thoughts are between '<|channel>thought' and '<channel|>'. -#}
{%- set first = namespace(system='<|think|>\n' if enable_thinking else '') -%}
{%- for message in messages -%}
  {%- if message.role in ['system', 'developer'] -%}
    {%- set text = first.system + message.content | trim -%}
    {%- set first.system = '' -%}
    {{- '<|turn>system\n' + text + '<turn|>\n' -}}
  {%- elif message.role in ['user', 'assistant', 'model'] -%}
    {{- '<|turn>system\n' + first.system + '<turn|>\n' if first.system -}}
    {%- set first.system = '' -%}
    {%- if message.role == 'user' -%}
      {{- '<|turn>user\n' + message.content | trim + '<turn|>\n' -}}
    {%- else -%}
      {{- '<|turn>model\n' + message.content + '<turn|>\n' -}}
    {%- endif -%}
  {%- else -%}
    )" INLAY_REFUSE_ROLE R"(
  {%- endif -%}
{%- endfor -%}
{{- '<|turn>model\n' if add_generation_prompt -}})";

constexpr char kGraniteTurns[] = INLAY_REFUSE_TOOLS R"(
{%- for message in messages -%}
  {%- if message.role in ['system', 'user', 'assistant'] -%}
    {{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + message.content -}}
    {{- '<|end_of_text|>\n' -}}
  {%- else -%}
    )" INLAY_REFUSE_ROLE R"(
  {%- endif -%}
{%- endfor -%}
{{- '<|start_of_role|>assistant<|end_of_role|>' if add_generation_prompt -}})";

// Many models with these turns begin an answer with thoughts, which they do not see later.
constexpr char kChatMlTurns[] = INLAY_REFUSE_TOOLS R"(
{#- Thoughts are between '<think>' and '</think>'. -#}
{%- for message in messages -%}
  {%- if message.role in ['system', 'user', 'assistant'] -%}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
  {%- else -%}
    )" INLAY_REFUSE_ROLE R"(
  {%- endif -%}
{%- endfor -%}
{{- '<|im_start|>assistant\n' if add_generation_prompt -}})";

// An answer may have ended its line itself.
constexpr char kLines[] = INLAY_REFUSE_TOOLS R"(
{%- for message in messages -%}
  {{- message.content -}}
  {{- '' if message.role == 'assistant' and message.content.endswith('\n') else '\n' -}}
{%- endfor -%})";

#undef INLAY_REFUSE_TOOLS
#undef INLAY_REFUSE_ROLE

constexpr BuiltinChat kChats[] = {
    // https://ai.google.dev/gemma/docs/core/prompt-structure
    {ChatTemplate::kGemma, "gemma", kGemmaTurns},
    // The roles' names, system among them, between <|turn> and <turn|>.
    {ChatTemplate::kGemma4, "gemma4", kGemma4Turns},
    // https://www.ibm.com/granite/docs/use-cases/prompt-engineering
    {ChatTemplate::kGranite, "granite", kGraniteTurns},
    // The roles' names between <|im_start|> and <|im_end|>.
    {ChatTemplate::kChatMl, "chatml", kChatMlTurns},
    // No roles: each turn is a line, which the model continues.
    {ChatTemplate::kNone, "none", kLines},
};

}  // namespace

absl::Span<const BuiltinChat> BuiltinChats() { return kChats; }

absl::string_view BuiltinTemplate(ChatTemplate chat_template) {
  for (const BuiltinChat& chat : kChats) {
    if (chat.format == chat_template) return chat.jinja;
  }
  return kLines;
}

}  // namespace inlay

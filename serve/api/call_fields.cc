#include "serve/api/call_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace inlay::serve {
namespace {

// Sets `value`, which has the server's default, to the number of the field `key` where it is there.
void ReadFloat(FieldReader& body, absl::string_view key, double least, double most,
               std::optional<float>* value) {
  const std::optional<double> number = body.Number(key, least, most);
  if (number.has_value()) *value = static_cast<float>(*number);
}

// JSON's numbers go up to 2^64 - 1; -1 is how some clients say "any".
std::optional<uint64_t> ReadSeed(FieldReader& body) {
  const Json* const seed = body.Find("seed");
  if (seed == nullptr) return std::nullopt;
  if (seed->is_number_unsigned()) return seed->get<uint64_t>();
  if (seed->is_number_integer() && seed->get<int64_t>() == -1) return std::nullopt;
  if (seed->is_number_float()) {  // 1.0
    const double number = seed->get<double>();
    if (number >= 0 && number < 0x1p53 && number == std::floor(number))
      return static_cast<uint64_t>(number);
  }
  body.Fail("seed",
            absl::StrCat("must be a whole number from 0 to ", std::numeric_limits<uint64_t>::max(),
                         " or -1 for any, not ", seed->is_number() ? seed->dump() : KindOf(*seed)));
  return std::nullopt;
}

void ReadBiases(FieldReader& body, CallSampling* sampling) {
  const Json* const biases = body.Object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMostBiases) {
    body.Fail("logit_bias",
              absl::StrCat("has ", biases->size(), " tokens, more than ", kMostBiases));
    return;
  }
  FieldReader reader(*biases, body.Path("logit_bias"), body.error());
  for (const auto& [key, value] : biases->items()) {
    int32_t token = -1;
    if (!absl::SimpleAtoi(key, &token) || token < 0)
      reader.Fail(QuoteForMessage(key), "must be the number of a token");
    if (value.is_null()) reader.Fail(key, "must be a number from -100 to 100, not null");
    const std::optional<double> bias = reader.Number(key, -100, 100);
    sampling->logit_bias.emplace_back(token, static_cast<float>(bias.value_or(0)));
  }
}

constexpr char kUnseenImage[] = "[an image, which this model cannot see]";

// The text of one part of a content. `of_result`: of a tool's, which may have images.
std::string ReadPart(const Json& part, const std::string& path, bool of_result,
                     absl::Status* error) {
  FieldReader reader(part, path, error);
  const std::string type = reader.NeedText("type");
  std::string text;
  if (type == "text" || type == "input_text" || type == "output_text" || type == "reasoning_text" ||
      type == "summary_text") {
    text = reader.NeedText("text");
  } else if (type == "refusal") {  // what an assistant said instead of an answer
    text = reader.NeedText("refusal");
  } else if (of_result && (type == "image" || type == "image_url" || type == "input_image")) {
    text = kUnseenImage;
    reader.NoEffect({"source", "image_url", "file_id", "detail"});
  } else {
    reader.Fail("type", absl::StrCat("is ", QuoteForMessage(type), ", but this server reads only ",
                                     "text"));
  }
  // Marks for caches, where a text of an earlier answer came from, what OpenAI's client made of it,
  // and its place in a stream.
  reader.NoEffect({"cache_control", "prompt_cache_breakpoint", "annotations", "citations",
                   "logprobs", "parsed", "id", "index"});
  reader.Finish();
  return text;
}

bool IsFunctionName(absl::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

}  // namespace

void ReadSampling(FieldReader& body, Call* call) {
  CallSampling& sampling = call->sampling;
  ReadFloat(body, "temperature", 0, 2, &sampling.temperature);
  ReadFloat(body, "top_p", 0, 1, &sampling.top_p);
  // The most likely token alone, which any number above 0 keeps.
  if (sampling.top_p == 0.0f) sampling.top_p = std::numeric_limits<float>::min();
  ReadFloat(body, "min_p", 0, 1, &sampling.min_p);
  std::optional<float> repeat, repetition;
  ReadFloat(body, "repeat_penalty", 0.01, 100, &repeat);
  ReadFloat(body, "repetition_penalty", 0.01, 100, &repetition);
  if (repeat.has_value() && repetition.has_value() && *repeat != *repetition)
    body.Fail("repetition_penalty", "must equal repeat_penalty, which is another name for it");
  if (repeat.has_value() || repetition.has_value())
    sampling.repeat_penalty = repeat.has_value() ? repeat : repetition;
  // -1: all.
  constexpr int kMostTokens = std::numeric_limits<int>::max();
  const auto last_n = body.Integer("repeat_last_n", -1, kMostTokens);
  if (last_n.has_value())
    sampling.repeat_last_n = *last_n == -1 ? kMostTokens : static_cast<int>(*last_n);
  ReadFloat(body, "presence_penalty", -2, 2, &sampling.presence_penalty);
  ReadFloat(body, "frequency_penalty", -2, 2, &sampling.frequency_penalty);
  // -1 and 0 both say that there is no such limit.
  const auto top_k = body.Integer("top_k", -1, std::numeric_limits<int32_t>::max());
  if (top_k.has_value()) sampling.top_k = static_cast<int>(std::max<int64_t>(*top_k, 0));
  if (body.Find("seed") != nullptr) sampling.seed = ReadSeed(body);
  ReadBiases(body, &sampling);
}

void ReadStopTexts(FieldReader& body, absl::string_view key, Call* call) {
  const Json* const stop = body.Find(key);
  if (stop == nullptr) return;
  if (!stop->is_string() && !stop->is_array()) {
    body.Fail(key, absl::StrCat("must be a string or a list of strings, not ", KindOf(*stop)));
    return;
  }
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  if (list.size() > kMostStopTexts) {
    body.Fail(key, absl::StrCat("has ", list.size(), " texts, more than ", kMostStopTexts));
    return;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = stop->is_array() ? absl::StrCat(key, "[", i, "]") : std::string(key);
    if (!list[i].is_string()) {
      body.Fail(name, absl::StrCat("must be a string, not ", KindOf(list[i])));
      return;
    }
    const std::string text = list[i].get<std::string>();
    if (text.empty()) continue;  // how some clients say that there is none
    if (text.size() > kMostStopBytes)
      body.Fail(name, absl::StrCat("has ", text.size(), " bytes, more than ", kMostStopBytes));
    call->stop_texts.push_back(text);
  }
}

bool ReadMaxTokens(FieldReader& body, absl::string_view key, int64_t least, Call* call) {
  const Json* const json = body.Find(key);
  if (json == nullptr) return false;
  call->max_tokens.reset();
  if (*json == -1) return true;
  if (*json == 0 && least > 0) {
    body.Fail(key, absl::StrCat("must be a whole number of at least ", least,
                                ", or -1 for no limit, not 0"));
    return true;
  }
  const std::optional<int64_t> most = body.Integer(key, least, kMostMaxTokens);
  if (most.has_value()) call->max_tokens = static_cast<size_t>(*most);
  return true;
}

std::string ErrorResult(absl::string_view text) { return absl::StrCat("Error: ", text); }

void ReadStream(FieldReader& body, Call* call) {
  call->stream = body.Bool("stream").value_or(false);
  const Json* const json = body.Object("stream_options");
  if (json == nullptr) return;
  FieldReader options(*json, body.Path("stream_options"), body.error());
  call->stream_usage = options.Bool("include_usage").value_or(false);
  options.NoEffect({"include_obfuscation"});  // padding against who counts bytes on the way
  options.Refuse("continuous_usage_stats", "cannot be true: the usage comes once, at the end");
  options.Finish();
}

void ReadChoices(FieldReader& body, Call* call) {
  call->choices = static_cast<size_t>(body.Integer("n", 1, kMostChoices).value_or(1));
}

void ReadTemplateVariables(FieldReader& body, Call* call) {
  const Json* const variables = body.Object("chat_template_kwargs");
  if (variables == nullptr) return;
  for (absl::string_view reserved : {"messages", "tools", "add_generation_prompt", "bos_token",
                                     "eos_token", "continue_final_message"}) {
    if (variables->contains(std::string(reserved)))
      body.Fail(absl::StrCat("chat_template_kwargs.", reserved), "is set by this server alone");
  }
  call->template_variables->update(*variables);
}

void SetEffort(const std::optional<std::string>& effort, Call* call) {
  if (!effort.has_value()) return;
  // What the request sets by the template's own name comes first.
  if (*effort == "none") {
    call->template_variables->emplace("enable_thinking", false);
  } else {
    call->template_variables->emplace("reasoning_effort", *effort);
  }
}

void ReadOtherThinking(FieldReader& body, Call* call) {
  const auto set = [&](bool on) { call->template_variables->emplace("enable_thinking", on); };
  if (const auto on = body.Bool("enable_thinking"); on.has_value()) set(*on);
  if (const Json* const json = body.Object("thinking"); json != nullptr) {
    FieldReader thinking(*json, body.Path("thinking"), body.error());
    const auto type = thinking.Choice("type", {"enabled", "adaptive", "disabled"});
    if (type.has_value()) set(*type != "disabled");
    thinking.Finish();
  }
  if (const Json* const json = body.Object("reasoning"); json != nullptr) {
    FieldReader reasoning(*json, body.Path("reasoning"), body.error());
    if (const auto on = reasoning.Bool("enabled"); on.has_value()) set(*on);
    SetEffort(ReadEffort(reasoning, "effort"), call);
    reasoning.Finish();
  }
}

std::optional<std::string> ReadEffort(FieldReader& body, absl::string_view key) {
  return body.Choice(key, {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
}

void SetVerbosity(const std::optional<std::string>& verbosity, Call* call) {
  if (verbosity.has_value()) call->template_variables->emplace("verbosity", *verbosity);
}

void AcceptBookkeeping(FieldReader& body) {
  body.NoEffect({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention", "prompt_cache_options", "cache_prompt",
                 "timings_per_token"});
}

namespace {

// The name in {"type": "function", "name"} or {"type": "function", "function": {"name"}}.
std::string ReadFunctionChoice(FieldReader& choice) {
  const Json* const nested = choice.Object("function");
  if (nested == nullptr) return choice.NeedText("name");
  FieldReader function(*nested, choice.Path("function"), choice.error());
  std::string name = function.NeedText("name");
  function.Finish();
  return name;
}

// {"mode": "auto" | "required", "tools": [...]}.
void ReadAllowedTools(FieldReader& allowed, ToolChoice* choice) {
  choice->must_call = allowed.Choice("mode", {"auto", "required"}) == "required";
  const Json* const list = allowed.NeedList("tools");
  choice->only.emplace();
  for (size_t i = 0; list != nullptr && i < list->size() && allowed.error()->ok(); ++i) {
    FieldReader tool((*list)[i], absl::StrCat(allowed.Path("tools"), "[", i, "]"), allowed.error());
    if (const std::string type = tool.NeedText("type"); type != "function")
      tool.Fail("type", absl::StrCat("must be function, not ", QuoteForMessage(type)));
    choice->only->push_back(ReadFunctionChoice(tool));
    tool.Finish();
  }
}

}  // namespace

ToolChoice ReadToolChoice(FieldReader& body, Call* call) {
  const Json* const json = body.Find("tool_choice");
  ToolChoice choice;
  if (json == nullptr || *json == "auto") return choice;
  choice.may_call = *json != "none";
  choice.must_call = *json == "required";
  if (!choice.may_call || choice.must_call) return choice;
  if (!json->is_object()) {
    body.Fail("tool_choice",
              absl::StrCat(
                  "must be auto, none, required or an object, not ",
                  json->is_string() ? QuoteForMessage(json->get<std::string>()) : KindOf(*json)));
    return choice;
  }
  FieldReader reader(*json, body.Path("tool_choice"), body.error());
  const std::string type = reader.NeedText("type");
  if (type == "function") {
    choice.must_call = call->one_call = true;
    choice.only = {ReadFunctionChoice(reader)};
  } else if (type == "allowed_tools") {
    if (const Json* const nested = reader.Object("allowed_tools"); nested != nullptr) {
      FieldReader allowed(*nested, reader.Path("allowed_tools"), body.error());
      ReadAllowedTools(allowed, &choice);
      allowed.Finish();
    } else {
      ReadAllowedTools(reader, &choice);
    }
  } else {
    reader.Fail("type",
                absl::StrCat("is ", QuoteForMessage(type), ", not function or allowed_tools"));
  }
  reader.Finish();
  return choice;
}

namespace {

void ReadSchema(FieldReader& schema, Call* call) {
  schema.NoEffect({"name", "description"});
  const Json* const source = schema.Find("schema");
  if (source == nullptr) return schema.Fail("schema", "must be given");
  call->shape = AnswerShape{.kind = AnswerShape::Kind::kJsonSchema,
                            .source = DumpJson(*source),
                            .in_order = schema.Bool("strict").value_or(false)};
  schema.Finish();
}

}  // namespace

void ReadFormat(FieldReader& format, const char* nested, Call* call) {
  const std::string type = format.NeedText("type");
  if (type == "json_object") {
    // A schema is an addition of llama.cpp's server and others.
    const Json* const schema = format.Find("schema");
    call->shape =
        AnswerShape{.source = schema != nullptr ? DumpJson(*schema) : R"({"type":"object"})"};
  } else if (type == "json_schema" && nested != nullptr) {
    const Json* const json = format.Object(nested);
    if (json == nullptr) return format.Fail(nested, "must be given");
    FieldReader schema(*json, format.Path(nested), format.error());
    ReadSchema(schema, call);
  } else if (type == "json_schema") {
    return ReadSchema(format, call);
  } else if (type != "text") {
    return format.Fail("type", absl::StrCat("is ", QuoteForMessage(type),
                                            ", not text, json_object or json_schema"));
  }
  format.Finish();
}

void ReadGrammar(FieldReader& body, Call* call) {
  const std::optional<std::string> grammar = body.Text("grammar");
  if (!grammar.has_value()) return;
  if (call->shape.has_value()) return body.Fail("grammar", "cannot be combined with a schema");
  call->shape = AnswerShape{.kind = AnswerShape::Kind::kGbnf, .source = *grammar};
}

namespace {

std::string ReadParts(const Json& content, const std::string& path, bool of_result,
                      absl::Status* error) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) {
    Complain(error,
             absl::StrCat(path, " must be a string or a list of parts, not ", KindOf(content)));
    return text;
  }
  for (size_t i = 0; i < content.size() && error->ok(); ++i) {
    if (i > 0) text += '\n';
    text += ReadPart(content[i], absl::StrCat(path, "[", i, "]"), of_result, error);
  }
  return text;
}

}  // namespace

std::string ReadTexts(const Json& content, const std::string& path, absl::Status* error) {
  return ReadParts(content, path, /*of_result=*/false, error);
}

std::string ReadResultTexts(const Json& content, const std::string& path, absl::Status* error) {
  return ReadParts(content, path, /*of_result=*/true, error);
}

ToolList::Strict ToolList::StrictOf(FieldReader& tool, Strict otherwise) {
  const std::optional<bool> strict = tool.Bool("strict");
  if (!strict.has_value()) return otherwise;
  return *strict ? Strict::kYes : Strict::kNo;
}

void ToolList::Add(const std::string& path, const std::string& name,
                   const std::optional<std::string>& description, const Json* parameters,
                   Strict strict) {
  if (!IsFunctionName(name)) {
    Complain(error_, absl::StrCat(path, " is ", QuoteForMessage(name),
                                  ", not 1 to 128 of the characters A-Z, a-z, 0-9, _, . and -"));
  } else if (!names_.insert(name).second) {
    Complain(error_,
             absl::StrCat(path, " is ", QuoteForMessage(name), ", as that of a tool before it"));
  }
  if (strict == Strict::kYes) strict_.insert(name);
  if (strict == Strict::kIfPossible) strict_if_possible_.insert(name);
  JsonDocument function(Json{{"name", name}});
  if (description.has_value()) (*function)["description"] = *description;
  Json& schema = (*function)["parameters"];
  schema = parameters != nullptr ? *JsonDocument(*parameters)
                                 : Json{{"type", "object"}, {"properties", Json::object()}};
  tools_->push_back({{"type", "function"}, {"function", *std::move(function)}});
}

void ToolList::Finish(ToolChoice choice) {
  if (choice.must_call && (tools_->empty() || (choice.only.has_value() && choice.only->empty())))
    Complain(error_, "tool_choice demands a call of a tool, but there is none to be called");
  if (choice.only.has_value()) {
    for (const std::string& name : *choice.only) {
      if (names_.contains(name)) continue;
      Complain(error_, absl::StrCat("tool_choice names ", QuoteForMessage(name),
                                    ", which is none of the tools"));
    }
    if (choice.only->empty()) choice.may_call = false;
  }
  if (tools_->empty() || !choice.may_call) return;
  call_->tools = std::move(tools_);
  call_->parse_calls = true;
  call_->tool_choice = std::move(choice);
  call_->strict_tools = std::move(strict_);
  call_->strict_if_possible = std::move(strict_if_possible_);
}

}  // namespace inlay::serve

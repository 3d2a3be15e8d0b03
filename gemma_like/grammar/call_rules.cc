#include "gemma_like/grammar/call_rules.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

// By the values of their enumerations.
constexpr absl::string_view kSyntaxes[] = {"json", "tagged", "named_json"};
constexpr absl::string_view kOtherwise[] = {"nothing", "text", "schema"};

// Throws nlohmann's exceptions, also for a name that is none of `names`.
template <class Enum, size_t kNames>
Enum EnumOf(const Json& name, const absl::string_view (&names)[kNames]) {
  Json values;
  for (size_t i = 0; i < kNames; ++i) values[std::string(names[i])] = i;
  return static_cast<Enum>(values.at(name.get<std::string>()).get<size_t>());
}

// Throws nlohmann's exceptions.
CallRules RulesOf(const Json& json) {
  CallRules rules;
  rules.syntax = EnumOf<CallRules::Syntax>(json.at("syntax"), kSyntaxes);
  rules.begin = json.at("begin").get<std::string>();
  rules.end = json.at("end").get<std::string>();
  rules.think_begin = json.at("think_begin").get<std::string>();
  rules.think_end = json.at("think_end").get<std::string>();
  for (const Json& tool : json.at("tools")) {
    rules.tools.push_back({.name = tool.at("name").get<std::string>()});
    if (const auto at = tool.find("parameters"); at != tool.end())
      rules.tools.back().parameters.emplace(*at);
    rules.tools.back().in_order = tool.at("in_order").get<bool>();
  }
  rules.one_call = json.at("one_call").get<bool>();
  rules.otherwise = EnumOf<CallRules::Otherwise>(json.at("otherwise"), kOtherwise);
  rules.schema = JsonDocument(json.at("schema"));
  rules.schema_in_order = json.at("schema_in_order").get<bool>();
  return rules;
}

}  // namespace

std::string CallRulesJson(const CallRules& rules) {
  Json tools = Json::array();
  for (const CallRules::Tool& tool : rules.tools) {
    tools.push_back({{"name", tool.name}, {"in_order", tool.in_order}});
    if (tool.parameters.has_value()) tools.back()["parameters"] = **tool.parameters;
  }
  const auto name = [](absl::string_view text) { return std::string(text); };
  return DumpJson({{"syntax", name(kSyntaxes[static_cast<size_t>(rules.syntax)])},
                   {"begin", rules.begin},
                   {"end", rules.end},
                   {"think_begin", rules.think_begin},
                   {"think_end", rules.think_end},
                   {"tools", std::move(tools)},
                   {"one_call", rules.one_call},
                   {"otherwise", name(kOtherwise[static_cast<size_t>(rules.otherwise)])},
                   {"schema", *rules.schema},
                   {"schema_in_order", rules.schema_in_order}});
}

absl::StatusOr<CallRules> ParseCallRules(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseJson("the rules of calls", text));
  try {
    return RulesOf(*json);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rules of calls are not as they should be: ", error.what()));
  }
}

}  // namespace inlay

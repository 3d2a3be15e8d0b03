#include "serve/batch_job/job_identity.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/xxh64.h"

namespace inlay::serve {
namespace {

// How a sentence names a member, and what makes it the same again: a flag or variable that ends in
// a space or '=' goes before the member's value, another text stands for itself.
struct MemberText {
  const char* key;
  absl::string_view name;
  absl::string_view remedy;
};

// The fingerprint comes last: others of these are in it, too, and say what differs.
constexpr MemberText kMembers[] = {
    {"input", "file of requests", "that file"},
    {"weights", "hash of the weights", "that model"},
    {"instruction_set", "instruction set", "INLAY_TARGET="},
    {"cache_type", "type of stored rows", "--cache-type "},
    {"model", "model's name", "--alias "},
    {"chat_template", "chat template", "that --chat-template"},
    {"defaults", "set of defaults", "the same flags of sampling, -n and --chat-template-kwargs"},
    {"context", "context", "-c "},
    {"time", "time", "--time "},
    {"fingerprint", "fingerprint", "the same program and model"}};

std::string ValueText(const Json& value) {
  return value.is_string() ? PrintableName(JsonString(value)) : DumpJson(value);
}

std::string QuotedValue(const Json& value) {
  return value.is_string() ? absl::StrCat("\"", ValueText(value), "\"") : ValueText(value);
}

std::string Remedy(const MemberText& member, const Json& value) {
  const bool has_value = absl::EndsWith(member.remedy, " ") || absl::EndsWith(member.remedy, "=");
  return absl::StrCat(member.remedy, has_value ? ValueText(value) : "");
}

}  // namespace

Json ToJson(const JobIdentity& identity) {
  return {{"input", identity.input},
          {"weights", identity.weights},
          {"instruction_set", identity.instruction_set},
          {"cache_type", identity.cache_type},
          {"model", identity.model},
          {"chat_template", identity.chat_template},
          {"defaults", identity.defaults},
          {"context", identity.context},
          {"time", identity.time},
          {"fingerprint", identity.fingerprint}};
}

JobIdentity IdentityOf(const Json& json) {
  const auto text = [&](const char* key) { return JsonString(JsonMember(json, key)); };
  const auto number = [&](const char* key) {
    const Json& value = JsonMember(json, key);
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  };
  return {.input = text("input"),
          .weights = text("weights"),
          .instruction_set = text("instruction_set"),
          .cache_type = text("cache_type"),
          .model = text("model"),
          .chat_template = text("chat_template"),
          .defaults = text("defaults"),
          .context = static_cast<size_t>(number("context")),
          .time = number("time"),
          .fingerprint = text("fingerprint")};
}

absl::Status CheckSameJob(const std::string& path, const JobIdentity& kept,
                          const JobIdentity& identity) {
  const Json before = ToJson(kept), now = ToJson(identity);
  for (const MemberText& member : kMembers) {
    const Json& value = before[member.key];
    if (value == now[member.key]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has results of another job: its ", member.name, " is ", QuotedValue(value),
        " and not ", QuotedValue(now[member.key]), "; with ", Remedy(member, value),
        " in every run and shard the job goes on, and --restart discards these results"));
  }
  return absl::OkStatus();
}

std::string ReplyId(const JobIdentity& identity, const BatchRequest& request) {
  const std::string text =
      DumpJson(Json::array({identity.weights, request.custom_id, request.url, request.body}));
  return Format("%016x%016x", Xxh64Of(text.data(), text.size(), /*seed=*/0),
                Xxh64Of(text.data(), text.size(), /*seed=*/1));
}

}  // namespace inlay::serve

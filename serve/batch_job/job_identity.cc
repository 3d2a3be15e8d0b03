#include "serve/batch_job/job_identity.h"

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/xxh64.h"

namespace inlay::serve {

// The fingerprint comes last: others of these are in it, too, and say what differs.
Json ToJson(const JobIdentity& identity) {
  return {{"input", identity.input},
          {"model", identity.model},
          {"chat_template", identity.chat_template},
          {"context", identity.context},
          {"time", identity.time},
          {"fingerprint", identity.fingerprint}};
}

absl::Status CheckSameJob(const std::string& path, const Json& kept, const JobIdentity& identity) {
  const Json wanted = ToJson(identity);
  for (const auto& [key, now] : wanted.items()) {
    const Json before = kept.is_object() ? kept.value(key, Json()) : Json();
    if (before == now) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has results of another job: its ", key, " is ", PrintableName(DumpJson(before)),
        " and not ", PrintableName(DumpJson(now)), "; --restart discards them"));
  }
  return absl::OkStatus();
}

std::string ReplyId(const JobIdentity& identity, const BatchRequest& request) {
  Json all = ToJson(identity);
  all.erase("input");
  all["request"] = {request.custom_id, request.url, request.body};
  const std::string text = DumpJson(all);
  return Format("%016x%016x", Xxh64Of(text.data(), text.size(), /*seed=*/0),
                Xxh64Of(text.data(), text.size(), /*seed=*/1));
}

}  // namespace inlay::serve

#include "serve/api/reply_choices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/api/sse.h"

namespace inlay::serve {

Json ChoicesWriter::Frame(absl::string_view object) const {
  return {{"id", absl::StrCat(names_.id_prefix, header_.id)},
          {"object", std::string(object)},
          {"created", header_.created},
          {"model", header_.model},
          {"system_fingerprint", header_.system_fingerprint},
          {"seed", header_.seed},
          {"choices", Json::array()}};
}

std::string ChoicesWriter::ChunkOf(Json change) const {
  if (!call_.stream) return "";
  Json chunk = Frame(names_.chunk_object);
  chunk["choices"].push_back(std::move(change));
  if (call_.stream_usage) chunk["usage"] = nullptr;
  return SseData(chunk);
}

std::string ChoicesWriter::Finish() {
  if (!call_.stream) {
    Json reply = Frame(names_.whole_object);
    for (size_t choice = 0; choice < choices_; ++choice)
      reply["choices"].push_back(WholeChoice(choice));
    reply["usage"] = usage_.ToJson();
    return DumpJson(reply);
  }
  std::string out;
  if (call_.stream_usage) {
    Json chunk = Frame(names_.chunk_object);
    chunk["usage"] = usage_.ToJson();
    out = SseData(chunk);
  }
  return absl::StrCat(out, kSseDone);
}

std::string ChoicesWriter::Ping() { return call_.stream ? std::string(kSsePing) : ""; }

std::string ChoicesWriter::Fail(const absl::Status& status) {
  return call_.stream ? SseData(OpenAiError(status)) : ErrorBody(names_.protocol, status);
}

}  // namespace inlay::serve

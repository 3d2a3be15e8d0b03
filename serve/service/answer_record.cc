#include "serve/service/answer_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
#include "serve/api/call_fields.h"
#include "serve/api/document_reader.h"
#include "serve/api/options_json.h"

namespace inlay::serve {
namespace {

AnswerRecord RecordOf(const Json& document, absl::Status* error) {
  const DocumentReader json(document, "", error);
  AnswerRecord record;
  record.id = json.Text("id");
  record.time = json.Text("time");
  record.client = json.Text("client");
  record.engine_fingerprint = json.Text("fingerprint");
  record.prompt = json.Integers<int32_t>("prompt");
  record.options = OptionsOf(json);
  // Records of earlier versions have none.
  const bool is_shaped = document.is_object() && document.contains("shape");
  if (is_shaped && !json.Any("shape").is_null()) record.shape = ShapeOf(json.Part("shape"));
  record.tokens = json.Integers<int32_t>("tokens");
  record.reason = StopReasonOf(json, "reason");
  return record;
}

}  // namespace

std::string RecordLine(const AnswerRecord& record) {
  Json json = {{"id", record.id},
               {"time", record.time},
               {"client", record.client},
               {"fingerprint", record.engine_fingerprint},
               {"prompt", record.prompt}};
  json.update(OptionsJson(record.options));
  json["shape"] = record.shape.has_value() ? ShapeJson(*record.shape) : Json();
  json["tokens"] = record.tokens;
  json["reason"] = std::string(StopReasonName(record.reason));
  return DumpJson(json) + "\n";
}

absl::StatusOr<AnswerRecord> ParseRecord(absl::string_view line) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseJson("the record", line));
  return OrOutOfMemory("this record", [&]() -> absl::StatusOr<AnswerRecord> {
    absl::Status error;
    AnswerRecord record = RecordOf(*json, &error);
    if (error.ok()) return record;
    return absl::InvalidArgumentError(
        absl::StrCat("the record is none of an answer: ", error.message()));
  });
}

std::optional<AnswerDifference> Compare(const std::vector<int32_t>& expected,
                                        const std::vector<int32_t>& recomputed) {
  const auto [at, other] =
      std::mismatch(expected.begin(), expected.end(), recomputed.begin(), recomputed.end());
  if (at == expected.end() && other == recomputed.end()) return std::nullopt;
  AnswerDifference difference{.token = static_cast<size_t>(at - expected.begin()),
                              .expected = std::nullopt,
                              .recomputed = std::nullopt};
  if (at != expected.end()) difference.expected = *at;
  if (other != recomputed.end()) difference.recomputed = *other;
  return difference;
}

absl::StatusOr<GenerateOptions> ReplayOptions(const AnswerRecord& record,
                                              AnswerGrammars& grammars) {
  GenerateOptions options = record.options;
  // The limits of the requests that are logged: a longer list would cost every other client time.
  if (options.stop_texts.size() > kMostStopTexts) {
    return absl::InvalidArgumentError(absl::StrCat("the record has ", options.stop_texts.size(),
                                                   " stop texts, more than ", kMostStopTexts));
  }
  for (const std::string& text : options.stop_texts) {
    if (text.size() > kMostStopBytes) {
      return absl::InvalidArgumentError(absl::StrCat("a stop text of the record has ", text.size(),
                                                     " bytes, more than ", kMostStopBytes));
    }
  }
  if (options.sampling.logit_bias.size() > kMostBiases) {
    return absl::InvalidArgumentError(absl::StrCat("the record biases ",
                                                   options.sampling.logit_bias.size(),
                                                   " tokens, more than ", kMostBiases));
  }
  if (record.shape.has_value()) {
    INLAY_ASSIGN_OR_RETURN(options.grammar, grammars.Get(*record.shape));
  }
  // Neither the reader nor the length of the server's context is in the record.
  if (record.reason == StopReason::kCancelled || record.reason == StopReason::kContextFull)
    options.max_tokens = record.tokens.size();
  return options;
}

}  // namespace inlay::serve

#include "serve/service/answer_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"
#include "nlohmann/json.hpp"
#include "serve/api/call_fields.h"
#include "serve/api/options_json.h"

namespace inlay::serve {
namespace {

AnswerRecord RecordOf(const Json& json) {
  AnswerRecord record;
  record.id = json.at("id").get<std::string>();
  record.time = json.at("time").get<std::string>();
  record.client = json.at("client").get<std::string>();
  record.fingerprint = json.at("fingerprint").get<std::string>();
  record.prompt = json.at("prompt").get<std::vector<int32_t>>();
  record.options = OptionsOf(json);
  // Records of earlier versions have none.
  if (const auto shape = json.find("shape"); shape != json.end() && !shape->is_null())
    record.shape = ShapeOf(*shape);
  record.tokens = json.at("tokens").get<std::vector<int32_t>>();
  record.reason = StopReasonOf(json.at("reason"));
  return record;
}

}  // namespace

std::string RecordLine(const AnswerRecord& record) {
  Json json = {{"id", record.id},
               {"time", record.time},
               {"client", record.client},
               {"fingerprint", record.fingerprint},
               {"prompt", record.prompt}};
  json.update(OptionsJson(record.options));
  json["shape"] = record.shape.has_value() ? ShapeJson(*record.shape) : Json();
  json["tokens"] = record.tokens;
  json["reason"] = std::string(StopReasonName(record.reason));
  return DumpJson(json) + "\n";
}

absl::StatusOr<AnswerRecord> ParseRecord(absl::string_view line) {
  INLAY_ASSIGN_OR_RETURN(const Json json, ParseJson("the record", line));
  return OrOutOfMemory("this record", [&]() -> absl::StatusOr<AnswerRecord> {
    try {
      return RecordOf(json);
    } catch (const nlohmann::json::exception& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("the record is none of an answer: ", error.what()));
    }
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

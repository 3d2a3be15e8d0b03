#include "serve/service/answer_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "serve/api/json_body.h"

namespace inlay::serve {
namespace {

constexpr StopReason kReasons[] = {StopReason::kMaxTokens, StopReason::kEndOfGeneration,
                                   StopReason::kStopText, StopReason::kContextFull,
                                   StopReason::kCancelled};

Json SamplingJson(const SamplingOptions& sampling) {
  Json bias = Json::array();
  for (const auto& [token, value] : sampling.logit_bias) bias.push_back({token, value});
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"repeat_last_n", sampling.repeat_last_n},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"logit_bias", std::move(bias)},
          {"seed", sampling.seed},
          {"choice", sampling.choice}};
}

// Throws nlohmann's exceptions.
SamplingOptions SamplingOf(const Json& json) {
  SamplingOptions sampling;
  sampling.temperature = json.at("temperature").get<float>();
  sampling.top_k = json.at("top_k").get<int>();
  sampling.top_p = json.at("top_p").get<float>();
  sampling.min_p = json.at("min_p").get<float>();
  sampling.repeat_penalty = json.at("repeat_penalty").get<float>();
  sampling.repeat_last_n = json.at("repeat_last_n").get<int>();
  sampling.presence_penalty = json.at("presence_penalty").get<float>();
  sampling.frequency_penalty = json.at("frequency_penalty").get<float>();
  for (const Json& pair : json.at("logit_bias")) {
    sampling.logit_bias.emplace_back(pair.at(0).get<int32_t>(), pair.at(1).get<float>());
  }
  sampling.seed = json.at("seed").get<uint64_t>();
  sampling.choice = json.at("choice").get<uint32_t>();
  return sampling;
}

AnswerRecord RecordOf(const Json& json) {
  AnswerRecord record;
  record.id = json.at("id").get<std::string>();
  record.time = json.at("time").get<std::string>();
  record.client = json.at("client").get<std::string>();
  record.fingerprint = json.at("fingerprint").get<std::string>();
  record.prompt = json.at("prompt").get<std::vector<int32_t>>();
  record.options.sampling = SamplingOf(json.at("sampling"));
  if (const Json& most = json.at("max_tokens"); !most.is_null())
    record.options.max_tokens = most.get<size_t>();
  record.options.stop_texts = json.at("stop").get<std::vector<std::string>>();
  record.options.ignore_eos = json.at("ignore_eos").get<bool>();
  record.options.shown_control = json.at("shown_control").get<std::vector<int32_t>>();
  record.tokens = json.at("tokens").get<std::vector<int32_t>>();
  const std::string reason = json.at("reason").get<std::string>();
  const auto known = std::find_if(std::begin(kReasons), std::end(kReasons),
                                  [&](StopReason r) { return StopReasonName(r) == reason; });
  if (known == std::end(kReasons)) json.at("reason").get<bool>();  // throws
  record.reason = *known;
  return record;
}

}  // namespace

std::string RecordLine(const AnswerRecord& record) {
  const GenerateOptions& options = record.options;
  Json json = {{"id", record.id},
               {"time", record.time},
               {"client", record.client},
               {"fingerprint", record.fingerprint},
               {"prompt", record.prompt},
               {"sampling", SamplingJson(options.sampling)},
               {"max_tokens", nullptr},
               {"stop", options.stop_texts},
               {"ignore_eos", options.ignore_eos},
               {"shown_control", options.shown_control},
               {"tokens", record.tokens},
               {"reason", std::string(StopReasonName(record.reason))}};
  if (options.max_tokens != std::numeric_limits<size_t>::max())
    json["max_tokens"] = options.max_tokens;
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

GenerateOptions ReplayOptions(const AnswerRecord& record) {
  GenerateOptions options = record.options;
  if (record.reason == StopReason::kCancelled) options.max_tokens = record.tokens.size();
  return options;
}

absl::StatusOr<std::unique_ptr<AnswerLog>> AnswerLog::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return std::unique_ptr<AnswerLog>(new AnswerLog(path, fd));
}

AnswerLog::~AnswerLog() { close(fd_); }

absl::Status AnswerLog::Append(const AnswerRecord& record) {
  const std::string line = RecordLine(record);
  const ssize_t written = write(fd_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  if (written < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
  return absl::ResourceExhaustedError(absl::StrCat(path_, ": the disk is full"));
}

}  // namespace inlay::serve

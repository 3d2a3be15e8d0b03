// Answers written down so that they can be computed again and compared.
#ifndef INLAY_SERVE_SERVICE_ANSWER_RECORD_H_
#define INLAY_SERVE_SERVICE_ANSWER_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay::serve {

// One answer, with all that determines it.
struct AnswerRecord {
  std::string id;                  // of the request
  std::string time;                // RFC 3339
  std::string client;              // the name of its key
  std::string engine_fingerprint;  // see Fingerprints; "fingerprint" in JSON
  std::vector<int32_t> prompt;
  GenerateOptions options;                          // without a grammar
  std::optional<AnswerShape> shape = std::nullopt;  // what the grammar is compiled from
  std::vector<int32_t> tokens;
  StopReason reason = StopReason::kEndOfGeneration;
};

// A record as one line of JSON, which ends with a newline, and back. InvalidArgument, naming the
// part, for what is no record.
std::string RecordLine(const AnswerRecord& record);
absl::StatusOr<AnswerRecord> ParseRecord(absl::string_view line);

// Where a recomputed answer parts from the recorded one.
struct AnswerDifference {
  size_t token;                     // index in the answer
  std::optional<int32_t> expected;  // none: the answer ended
  std::optional<int32_t> recomputed;
};

// The first difference between two answers' tokens; none where they are the same.
std::optional<AnswerDifference> Compare(const std::vector<int32_t>& expected,
                                        const std::vector<int32_t>& recomputed);

// The options to compute a recorded answer again with: an answer that was cut short, because its
// reader had enough or the context was full, is computed as far as it went. InvalidArgument where
// its stop texts or biases are more or longer than a request may have; the errors of
// AnswerGrammars::Get for an answer that had a shape.
absl::StatusOr<GenerateOptions> ReplayOptions(const AnswerRecord& record, AnswerGrammars& grammars);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_RECORD_H_

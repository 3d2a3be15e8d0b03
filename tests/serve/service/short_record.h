// A record of an answer log.
#ifndef INLAY_TESTS_SERVE_SERVICE_SHORT_RECORD_H_
#define INLAY_TESTS_SERVE_SERVICE_SHORT_RECORD_H_

#include <string>

#include "serve/service/answer_record.h"

namespace inlay::serve {

inline AnswerRecord ShortRecord(const std::string& id = "r-1") {
  return {.id = id,
          .time = "2026-11-22T12:00:00Z",
          .client = "alice",
          .engine_fingerprint = "inlay-1/AVX2",
          .prompt = {1, 2, 3},
          .options = {},
          .tokens = {7, 8},
          .reason = StopReason::kStopText};
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SERVICE_SHORT_RECORD_H_

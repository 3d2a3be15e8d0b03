// Any bytes as a record of an answer, which clients send to /v1/replay and an answer log has a line
// each of: refused with a sentence in UTF-8, or a record that is written as it was read, and
// options whose lists have the lengths that requests may have.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "serve/api/call_fields.h"
#include "serve/service/answer_record.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/refusal.h"
#include "tests/io/tokenizer/test_vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  using namespace inlay::serve;
  static const auto* const tokenizer = SpmBase().Load()->release();
  static auto* const grammars = new AnswerGrammars(*tokenizer);
  const absl::StatusOr<AnswerRecord> record =
      ParseRecord({reinterpret_cast<const char*>(data), size});
  if (!IsRead(record)) return 0;
  const std::string line = RecordLine(*record);
  INLAY_FUZZ_CHECK(line.find('\n') == line.size() - 1);
  const absl::StatusOr<AnswerRecord> again = ParseRecord(line);
  INLAY_FUZZ_CHECK(again.ok() && RecordLine(*again) == line);
  const absl::StatusOr<GenerateOptions> options = ReplayOptions(*record, *grammars);
  if (!IsRead(options)) return 0;
  INLAY_FUZZ_CHECK(options->stop_texts.size() <= kMostStopTexts);
  INLAY_FUZZ_CHECK((options->grammar != nullptr) == record->shape.has_value());
  INLAY_FUZZ_CHECK(!Compare(record->tokens, again->tokens).has_value());
  return 0;
}

#include "serve/service/answer_log.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kRecordBegin = "{\"id\"";

// Whether a server may have written this as the first line of a log: as a record, or as part of one
// when it was killed or found the disk full.
bool MayBeginLog(absl::string_view line) {
  if (ParseRecord(line).ok()) return true;
  const bool begins = absl::StartsWith(line, kRecordBegin) || absl::StartsWith(kRecordBegin, line);
  return begins && !line.empty() && !ParseJson("the line", line).ok();
}

constexpr LineLog::Kind kAnswers = {.log = "log of answers",
                                    .line = "the record of an answer",
                                    .what = "answers",
                                    .may_begin_with = MayBeginLog};

// What a record takes while it waits, about.
size_t MemoryOf(const AnswerRecord& record) {
  size_t bytes = sizeof(record) + (record.prompt.size() + record.tokens.size()) * sizeof(int32_t);
  for (const std::string& text : record.options.stop_texts) bytes += text.size();
  if (record.shape.has_value()) bytes += record.shape->source.size();
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AnswerLog>> AnswerLog::Open(const std::string& path,
                                                           LineLogOptions options) {
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<LineLog> lines,
                         LineLog::Open(path, kAnswers, std::move(options)));
  return std::unique_ptr<AnswerLog>(new AnswerLog(std::move(lines)));
}

void AnswerLog::Append(absl::FunctionRef<AnswerRecord()> make) {
  lines_->Append([&]() -> LineLog::Line {
    const auto record = std::make_shared<const AnswerRecord>(make());
    return {.make = [record] { return RecordLine(*record); }, .bytes = MemoryOf(*record)};
  });
}

}  // namespace inlay::serve

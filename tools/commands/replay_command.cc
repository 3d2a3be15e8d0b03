// inlay replay: computes logged answers again and compares.
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/about.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/fingerprint.h"
#include "gemma_like/generation/generate.h"
#include "io/file/line_source.h"
#include "nlohmann/json.hpp"
#include "serve/service/answer_record.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

using serve::AnswerDifference;
using serve::AnswerRecord;

struct ReplayFlags {
  ModelFlags model;
  std::string log;
  bool json = false;
};

// 0 where it is not known: of a pipe.
uint64_t BytesOf(const std::string& path) {
  struct stat info;
  const bool known = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  return known ? static_cast<uint64_t>(info.st_size) : 0;
}

struct Tally {
  size_t answers = 0, same = 0, other_server = 0;
  std::vector<size_t> bad_lines;  // numbers of those that are no record
};

// Where the recomputed answer differs; none where it is the same.
absl::StatusOr<std::optional<AnswerDifference>> Recompute(const LoadedModel& model,
                                                          const ModelFlags& flags,
                                                          const AnswerRecord& record,
                                                          AnswerGrammars& grammars,
                                                          const CancelCheck& cancel) {
  INLAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<KVCache> cache,
      CreateCache(
          flags, *model.engine,
          flags.context.value_or(0) == 0 ? model.engine->info().context_length : *flags.context));
  INLAY_ASSIGN_OR_RETURN(const GenerateOptions options, serve::ReplayOptions(record, grammars));
  const absl::StatusOr<GenerateResult> result =
      Generate(*model.engine, *model.tokenizer, *cache, record.prompt, options, nullptr, cancel);
  if (cancel()) return InterruptedError("interrupted");
  INLAY_RETURN_IF_ERROR(result.status());
  return serve::Compare(record.tokens, result->tokens);
}

std::string DifferenceText(const AnswerDifference& difference) {
  const auto token = [](std::optional<int32_t> id) {
    return id.has_value() ? absl::StrCat("token ", *id) : std::string("the end");
  };
  return absl::StrCat("differs at token ", difference.token, ": ", token(difference.expected),
                      " was recorded, ", token(difference.recomputed), " is computed now");
}

std::string BadLinesText(const Tally& tally) {
  return absl::StrCat(Plural(tally.bad_lines.size(), "line"),
                      tally.bad_lines.size() == 1 ? " is" : " are", " no record of an answer");
}

void WriteSummary(const ReplayFlags& flags, const Tally& tally, const std::string& fingerprint,
                  Output& out) {
  if (flags.json) {
    return out.Write(JsonText({{"answers", tally.answers},
                               {"same", tally.same},
                               {"other_fingerprint", tally.other_server},
                               {"bad_lines", tally.bad_lines},
                               {"fingerprint", fingerprint}}));
  }
  out.Write(absl::StrCat(
      tally.same, " of ", Plural(tally.answers, "answer"), tally.answers == 1 ? " is" : " are",
      " the same", tally.bad_lines.empty() ? "" : absl::StrCat("; ", BadLinesText(tally)), "\n"));
}

absl::Status Verdict(const Tally& tally) {
  std::vector<std::string> wrong;
  if (tally.same < tally.answers) {
    wrong.push_back(
        absl::StrCat(Plural(tally.answers - tally.same, "answer"), " could not be reproduced"));
  }
  if (!tally.bad_lines.empty()) wrong.push_back(BadLinesText(tally));
  if (wrong.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrJoin(wrong, ", and "));
}

absl::Status Run(const ReplayFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.log));
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model));
  INLAY_ASSIGN_OR_RETURN(const std::string fingerprint,
                         MakeFingerprint(*model.engine, CacheType(flags.model)));
  AnswerGrammars grammars(*model.tokenizer);
  const InterruptWatch interrupt;
  Output out;
  Tally tally;
  // A log grows without a bound: one line at a time is in memory.
  LineSource lines([&input] { return input.Next(); }, input.name(), kLongestInput);
  ProgressBar bar(absl::StrCat("replaying ", flags.log), BytesOf(flags.log), ProgressUnit::kBytes);
  // Each finding is seen when it is made: the rest of the log may take hours.
  const auto write = [&](const std::string& finding) {
    bar.Clear();
    out.Write(finding);
    out.Flush();
  };
  absl::Status failed;  // ends the work early; what was found before it is shown all the same
  while (true) {
    const absl::StatusOr<std::optional<LineSource::Line>> next = lines.Next();
    if (!next.ok()) failed = next.status();
    if (!next.ok() || !next->has_value()) break;
    const LineSource::Line& line = **next;
    if (line.text.empty()) continue;
    bar.Update(line.offset + line.text.size() + (line.ended ? 1 : 0));
    const std::string where = absl::StrCat(input.name(), ":", lines.number());
    const absl::StatusOr<AnswerRecord> record = serve::ParseRecord(line.text);
    // A server that was killed or found the disk full leaves part of a record.
    if (absl::IsInvalidArgument(record.status())) {
      tally.bad_lines.push_back(lines.number());
      if (!flags.json) write(absl::StrCat(where, ": ", record.status().message(), "\n"));
      continue;
    }
    if (!record.ok()) {
      failed = About(where, record.status());
      break;
    }
    const auto difference = Recompute(model, flags.model, *record, grammars,
                                      [&] { return interrupt.requested() || !out.ok(); });
    if (!difference.ok()) {
      failed = About(where, difference.status());
      break;
    }
    ++tally.answers;
    tally.same += !difference->has_value();
    tally.other_server += record->engine_fingerprint != fingerprint;
    if (!difference->has_value() || flags.json) continue;
    std::string finding = absl::StrCat(where, ": request ", PrintableName(record->id), " ",
                                       DifferenceText(**difference), "\n");
    if (record->engine_fingerprint != fingerprint) {
      absl::StrAppend(&finding, "  it was answered by ", PrintableName(record->engine_fingerprint),
                      ", and this is ", fingerprint, "\n");
    }
    write(finding);
  }
  bar.Clear();
  if (failed.ok() || tally.answers > 0) WriteSummary(flags, tally, fingerprint, out);
  INLAY_RETURN_IF_ERROR(out.Finish());
  return failed.ok() ? Verdict(tally) : failed;
}

}  // namespace

void AddReplay(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ReplayFlags>();
  CLI::App& command = *app.add_subcommand(
      "replay", "Computes the answers in a server's log again, and says where one differs.");
  AddEngineFlags(command, flags->model);
  command
      .add_option("-c,--ctx-size", flags->model.context,
                  "context size of the server (default, and 0: the model's trained length)")
      ->check(Between(0, std::numeric_limits<int32_t>::max()));
  AddCacheTypeFlag(command, flags->model);
  AddFormatFlag(command, flags->json);
  command.add_option("log", flags->log, "the file of inlay serve --answer-log; -: standard input")
      ->type_name("FILE")
      ->required();
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

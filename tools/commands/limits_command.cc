// inlay limits: what this machine offers to the kernels.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "ops/cpu/cpu_target.h"
#include "ops/cpu/machine_limits.h"
#include "ops/team.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/json_text.h"
#include "tools/output.h"

namespace inlay {
namespace {

struct LimitsFlags {
  ModelFlags model;  // its threads
  bool no_measure = false;
  bool json = false;
};

// Of a number of threads together.
struct Peaks {
  double read;  // bytes per second
  DotPeaks dots;
};

Peaks MeasurePeaks(size_t threads) {
  Team team(threads);
  return {.read = MeasureReadBandwidth(team), .dots = MeasureDotPeaks(threads)};
}

struct Measured {
  size_t threads;
  Peaks one_thread, all_threads;
  std::string dot_target;  // whichever is in use
};

Measured Measure(size_t threads) {
  const Peaks one = MeasurePeaks(1);
  return {.threads = threads,
          .one_thread = one,
          .all_threads = threads == 1 ? one : MeasurePeaks(threads),
          .dot_target = RunnableTargets().front()};
}

nlohmann::ordered_json TargetsJson() {
  const std::string forced = ForcedTarget();
  return {{"compiled", CompiledTargets()},
          {"runnable", RunnableTargets()},
          {"chosen", ChosenTarget()},
          {"forced", forced.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(forced)}};
}

nlohmann::ordered_json DotsJson(const DotPeaks& dots) {
  return {{"int8", dots.int8}, {"bf16", dots.bf16}, {"f32", dots.f32}};
}

nlohmann::ordered_json MeasuredJson(const Measured& m) {
  return {{"threads", m.threads},
          {"read_bytes_per_second_1_thread", m.one_thread.read},
          {"read_bytes_per_second", m.all_threads.read},
          {"dot_target", m.dot_target},
          {"dot_ops_per_second_1_thread", DotsJson(m.one_thread.dots)},
          {"dot_ops_per_second", DotsJson(m.all_threads.dots)}};
}

std::string PeaksText(size_t threads, const Measured& m, const Peaks& peaks) {
  const std::string by = absl::StrCat(", ", Plural(threads, "thread"));
  return Format("%-30s%.1f GB/s\n%-30sint8 %.0f, bf16 %.0f, f32 %.0f Gop/s by %s\n",
                "reading memory" + by, peaks.read / 1e9, "dot products" + by, peaks.dots.int8 / 1e9,
                peaks.dots.bf16 / 1e9, peaks.dots.f32 / 1e9, m.dot_target);
}

std::string MeasuredText(const Measured& m) {
  std::string text = PeaksText(1, m, m.one_thread);
  if (m.threads > 1) text += PeaksText(m.threads, m, m.all_threads);
  return text;
}

absl::Status Run(const LimitsFlags& flags) {
  std::optional<Measured> measured;
  if (!flags.no_measure) measured = Measure(flags.model.threads);
  if (measured.has_value() && measured->all_threads.read == 0)
    return absl::ResourceExhaustedError(
        "there is not enough memory to measure how fast it is read");
  Output out;
  if (flags.json) {
    nlohmann::ordered_json json = {{"targets", TargetsJson()}};
    if (measured.has_value()) json["measured"] = MeasuredJson(*measured);
    out.Write(JsonText(json));
  } else {
    out.Write(absl::StrCat("instruction sets compiled in  ", absl::StrJoin(CompiledTargets(), " "),
                           "\nof these, this CPU runs       ",
                           absl::StrJoin(RunnableTargets(), " "),
                           "\nin use                        ", ChosenTarget(),
                           ForcedTarget().empty() ? "" : ", forced by INLAY_TARGET", "\n"));
    if (measured.has_value()) out.Write(MeasuredText(*measured));
  }
  return out.Finish();
}

}  // namespace

void AddLimits(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<LimitsFlags>();
  CLI::App& command = *app.add_subcommand(
      "limits", "Measures this machine's limits and lists its instruction sets.");
  AddThreadsFlag(command, flags->model);
  command.add_flag("--no-measure", flags->no_measure, "list the instruction sets only");
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

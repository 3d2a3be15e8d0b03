// inlay limits: what this machine offers to the kernels.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
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

struct Measured {
  size_t threads;
  double one_thread;   // bytes read per second
  double all_threads;  // likewise
  DotPeaks dots;
};

Measured Measure(size_t threads) {
  Team one(1);
  Team all(threads);
  return {.threads = threads,
          .one_thread = MeasureReadBandwidth(one),
          .all_threads = MeasureReadBandwidth(all),
          .dots = MeasureDotPeaks()};
}

nlohmann::ordered_json TargetsJson() {
  const std::string forced = ForcedTarget();
  return {{"compiled", CompiledTargets()},
          {"runnable", RunnableTargets()},
          {"chosen", ChosenTarget()},
          {"forced", forced.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(forced)}};
}

nlohmann::ordered_json MeasuredJson(const Measured& m) {
  return {{"threads", m.threads},
          {"read_bytes_per_second_1_thread", m.one_thread},
          {"read_bytes_per_second", m.all_threads},
          {"dot_ops_per_second_per_core",
           {{"int8", m.dots.int8}, {"bf16", m.dots.bf16}, {"f32", m.dots.f32}}}};
}

std::string MeasuredText(const Measured& m) {
  return Format(
      "reading memory                %.1f GB/s with 1 thread, %.1f GB/s with %d\n"
      "dot products, a core          int8 %.0f, bf16 %.0f, f32 %.0f Gop/s\n",
      m.one_thread / 1e9, m.all_threads / 1e9, m.threads, m.dots.int8 / 1e9, m.dots.bf16 / 1e9,
      m.dots.f32 / 1e9);
}

absl::Status Run(const LimitsFlags& flags) {
  std::optional<Measured> measured;
  if (!flags.no_measure) measured = Measure(flags.model.threads);
  if (measured.has_value() && measured->all_threads == 0)
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

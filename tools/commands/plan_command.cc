// inlay plan: what a model's speed would be on several machines that compute it together.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/rank_share.h"
#include "base/status_macros.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/unwritten_model.h"
#include "gemma_like/model/description.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/registry.h"
#include "gemma_like/token_work.h"
#include "io/gguf/gguf.h"
#include "ops/cpu/cpu_target.h"
#include "ops/cpu/machine_limits.h"
#include "ops/team.h"
#include "tools/bench_results.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/format.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/rank_plan.h"

namespace inlay {
namespace {

struct PlanFlags {
  ModelFlags model;
  std::string config;
  std::string type = "Q8_0";
  size_t machines = 16;
  std::vector<std::string> networks;
  size_t conversations = 1;
  size_t depth = 0;
  size_t prompt = 512;
  std::optional<double> read_bandwidth;  // GB/s
  std::optional<double> ops;             // Gop/s
  double decode_share = 100 * PlannedMachine().decode_share;
  std::optional<double> prefill_share;
  double copying = PlannedMachine().copying / 1e9;  // GB/s
  bool json = false;
};

// One number of machines.
struct PlanRow {
  PlannedGroup group;
  size_t memory = 0;  // bytes, of the machine that needs most
};

struct Plan {
  std::string config;
  std::string types;
  uint64_t file_bytes = 0;
  Dot dot = Dot::kInt8;
  PlannedMachine machine;
  std::vector<PlanRow> rows;
};

// What one network makes of the rows.
struct PlanOnNetwork {
  std::vector<PlannedSpeed> decode;
  std::vector<PlannedSpeed> prefill;
};

// 1, 2, 4, 8 and so on, and the number itself.
std::vector<size_t> GroupSizes(size_t machines) {
  std::vector<size_t> sizes;
  for (size_t n = 1; n < machines; n *= 2) sizes.push_back(n);
  sizes.push_back(machines);
  return sizes;
}

absl::StatusOr<std::vector<PlannedNetwork>> Networks(const PlanFlags& flags) {
  std::vector<PlannedNetwork> networks;
  for (const std::string& name : flags.networks) {
    INLAY_ASSIGN_OR_RETURN(PlannedNetwork network, AsUsageError(ParseNetwork(name)));
    networks.push_back(std::move(network));
  }
  if (networks.empty()) {
    networks.assign(PublishedNetworks().begin(), PublishedNetworks().end());
  }
  return networks;
}

// The percentage of the dot peak that prefill reaches. The products of AMX are so fast that scales,
// packing and all that is beside them take most of the time (docs/machines/xeon-amx.md).
double PrefillShare(const PlanFlags& flags, Dot dot) {
  if (flags.prefill_share.has_value()) return *flags.prefill_share;
  const bool measured_here = !flags.ops.has_value();
  if (measured_here && ChosenExtension() == Extension::kAmx && dot != Dot::kF32)
    return dot == Dot::kInt8 ? 8 : 20;
  return 100 * PlannedMachine().prefill_share;
}

// A machine as the flags describe it, and for what they leave out, this one.
absl::StatusOr<PlannedMachine> Machine(const PlanFlags& flags, const BenchModel& model) {
  constexpr uint64_t kMost = uint64_t{1} << 29;
  PlannedMachine machine = {.read_bandwidth = 0,
                            .ops = 0,
                            .decode_share = flags.decode_share / 100,
                            .prefill_share = PrefillShare(flags, model.dot) / 100,
                            .copying = 1e9 * flags.copying};
  if (flags.read_bandwidth.has_value()) {
    machine.read_bandwidth = 1e9 * *flags.read_bandwidth;
  } else {
    Team team(flags.model.threads);
    machine.read_bandwidth = MeasureReadBandwidth(team, std::min(model.file_bytes, kMost));
    if (machine.read_bandwidth == 0) {
      return absl::ResourceExhaustedError(
          "there is not enough memory to measure how fast it is read");
    }
  }
  machine.ops = flags.ops.has_value()
                    ? 1e9 * *flags.ops
                    : MeasureDotPeaks(flags.model.threads, ChosenTarget()).Of(model.dot);
  return machine;
}

absl::StatusOr<PlanRow> MakeRow(const PlanFlags& flags, const GgufFile& file,
                                const ConfigEntry& entry, size_t machines) {
  std::vector<PlannedWork> ranks;
  for (size_t rank = 0; rank < machines; ++rank) {
    INLAY_ASSIGN_OR_RETURN(const PlannedWork work, entry.work(file, {rank, machines}, flags.depth));
    ranks.push_back(work);
  }
  PlanRow row = {.group = {.machines = machines,
                           .layers = entry.describe(CacheType(flags.model)).layers.size(),
                           .work = SlowestOf(ranks)}};
  const size_t scratch = entry.memory(file, {.threads = flags.model.threads}).scratch;
  row.memory = scratch +
               static_cast<size_t>(row.group.work.weights +
                                   static_cast<double>(flags.conversations) * row.group.work.cache);
  return row;
}

absl::StatusOr<Plan> CalculatePlan(const PlanFlags& flags, const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry, FindConfig(file));
  INLAY_RETURN_IF_ERROR(entry->packed_tensors(file).status());
  const BenchModel model(file, *entry);
  Plan plan = {.config = std::string(entry->name),
               .types = model.types,
               .file_bytes = model.file_bytes,
               .dot = model.dot,
               .machine = {},
               .rows = {}};
  INLAY_ASSIGN_OR_RETURN(plan.machine, Machine(flags, model));
  for (const size_t machines : GroupSizes(flags.machines)) {
    INLAY_ASSIGN_OR_RETURN(PlanRow row, MakeRow(flags, file, *entry, machines));
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

absl::StatusOr<Plan> CalculatePlan(const PlanFlags& flags) {
  if (flags.config.empty()) {
    INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
    INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
    INLAY_ASSIGN_OR_RETURN(Plan plan, CalculatePlan(flags, file));
    INLAY_RETURN_IF_ERROR(file.CheckWhole());
    return plan;
  }
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry,
                         AsUsageError(FindConfig(absl::string_view(flags.config))));
  INLAY_ASSIGN_OR_RETURN(const Quantization quantization,
                         AsUsageError(Quantization::Parse(flags.type)));
  INLAY_ASSIGN_OR_RETURN(const UnwrittenModel model,
                         UnwrittenModel::Create(entry->synth(), quantization, entry->name));
  return CalculatePlan(flags, model.file());
}

PlanOnNetwork OnNetwork(const PlanFlags& flags, const Plan& plan, const PlannedNetwork& network) {
  PlanOnNetwork result;
  for (const PlanRow& row : plan.rows) {
    const size_t machines = row.group.machines;
    result.decode.push_back(
        {machines, TimeOfDecode(row.group, flags.conversations, plan.machine, network)});
    result.prefill.push_back(
        {machines,
         TimeOfPrefill(row.group, flags.prompt, EngineOptions().max_batch, plan.machine, network)});
  }
  return result;
}

double TokensPerSecond(size_t tokens, const PlannedTime& time) {
  return static_cast<double>(tokens) / time.Seconds();
}

// Milliseconds with three digits, as in columns of 9.
std::string Milliseconds(double seconds) {
  const double ms = 1e3 * seconds;
  return Format("%9.*f", ms >= 100 ? 0 : ms >= 10 ? 1 : 2, ms);
}

std::string TimeText(size_t machines, size_t tokens, const PlannedTime& time) {
  return Format("%8d %10.1f %s %s %s %s %s %s\n", machines, TokensPerSecond(tokens, time),
                Milliseconds(time.Seconds()), Milliseconds(time.reading),
                Milliseconds(time.computing), Milliseconds(time.latency),
                Milliseconds(time.transfer), Milliseconds(time.copying));
}

std::string SpeedsText(const std::string& what, size_t tokens,
                       const std::vector<PlannedSpeed>& speeds) {
  std::string text = Format(
      "\n  %s\nmachines   tokens/s        ms   reading computing   latency  transfer   copying\n",
      what);
  for (const PlannedSpeed& speed : speeds) text += TimeText(speed.machines, tokens, speed.time);
  return text;
}

std::string DecodeTitle(const PlanFlags& flags) {
  return absl::StrCat("decode of ", Plural(flags.conversations, "conversation"), " at ",
                      Plural(flags.depth, "token"));
}

std::string PrefillTitle(const PlanFlags& flags) {
  return absl::StrCat("prefill of ", Plural(flags.prompt, "token"));
}

// What the memory in a plan is for.
std::string MemoryTitle(const PlanFlags& flags) {
  return absl::StrCat("memory with ", Plural(flags.conversations, "conversation"), " of ",
                      Plural(flags.depth, "token"));
}

std::string OneMachineSpeedText(const std::string& what, size_t tokens, const PlannedTime& time) {
  const auto milliseconds = [](double seconds) {
    return absl::StrCat(absl::StripLeadingAsciiWhitespace(Milliseconds(seconds)), " ms");
  };
  return absl::StrCat(what, ": ", Format("%.1f tokens/s, ", TokensPerSecond(tokens, time)),
                      milliseconds(time.Seconds()), "; reading takes ", milliseconds(time.reading),
                      ", and at the same time computing ", milliseconds(time.computing), "\n");
}

// Without what only several machines have: a network, gathers, and a number of machines that is the
// fastest.
std::string OneMachineText(const PlanFlags& flags, const Plan& plan) {
  const PlanRow& row = plan.rows.front();
  const PlanOnNetwork speeds = OnNetwork(flags, plan, PlannedNetwork());
  return absl::StrCat(
      Format("the machine reads %.1f GB/s, of which decode reaches %.0f %%, and makes %.0f Gop/s "
             "(%s), of which prefill reaches %.0f %%\n\n",
             plan.machine.read_bandwidth / 1e9, 100 * plan.machine.decode_share,
             plan.machine.ops / 1e9, DotName(plan.dot), 100 * plan.machine.prefill_share),
      MemoryTitle(flags), ": ", ByteCount(row.memory), "\n",
      OneMachineSpeedText(DecodeTitle(flags), flags.conversations, speeds.decode.front().time),
      flags.prompt == 0
          ? ""
          : OneMachineSpeedText(PrefillTitle(flags), flags.prompt, speeds.prefill.front().time));
}

std::string SeveralMachinesText(const PlanFlags& flags, const Plan& plan,
                                const std::vector<PlannedNetwork>& networks) {
  std::string text = absl::StrCat(
      Format("each machine reads %.1f GB/s, of which decode reaches %.0f %%, and makes %.0f Gop/s "
             "(%s), of which prefill reaches %.0f %%;\nit copies what is gathered at %.1f GB/s\n",
             plan.machine.read_bandwidth / 1e9, 100 * plan.machine.decode_share,
             plan.machine.ops / 1e9, DotName(plan.dot), 100 * plan.machine.prefill_share,
             plan.machine.copying / 1e9),
      "\n", MemoryTitle(flags),
      ", and what is gathered\nmachines  memory of each  gathers  bytes gathered for a token\n");
  for (const PlanRow& row : plan.rows) {
    const PlannedWork& work = row.group.work;
    AppendFormat(&text, "%8d  %14s  %7d  %26s\n", row.group.machines, ByteCount(row.memory),
                 work.layers.collectives + work.output.collectives,
                 ByteCount(static_cast<uint64_t>(work.layers.gathered + work.output.gathered)));
  }
  for (const PlannedNetwork& network : networks) {
    const PlanOnNetwork speeds = OnNetwork(flags, plan, network);
    AppendFormat(&text, "\nnetwork %s: %.3g us, %.3g GB/s\n", network.name, 1e6 * network.latency,
                 network.bandwidth / 1e9);
    text += SpeedsText(DecodeTitle(flags), flags.conversations, speeds.decode);
    text += ScalingSentence("Decode", speeds.decode);
    if (flags.prompt == 0) continue;
    text += SpeedsText(PrefillTitle(flags), flags.prompt, speeds.prefill);
    text += ScalingSentence("Prefill", speeds.prefill);
  }
  return text;
}

std::string PlanText(const PlanFlags& flags, const Plan& plan,
                     const std::vector<PlannedNetwork>& networks) {
  return absl::StrCat(plan.config, " ", plan.types, ", ", ByteCount(plan.file_bytes),
                      ": calculated, not measured (docs/ranks.md)\n",
                      plan.rows.size() == 1 ? OneMachineText(flags, plan)
                                            : SeveralMachinesText(flags, plan, networks));
}

nlohmann::ordered_json SpeedsJson(size_t tokens, const std::vector<PlannedSpeed>& speeds) {
  auto groups = nlohmann::ordered_json::array();
  for (const PlannedSpeed& speed : speeds) {
    const PlannedTime& time = speed.time;
    groups.push_back({{"machines", speed.machines},
                      {"tokens_per_second", TokensPerSecond(tokens, time)},
                      {"seconds", time.Seconds()},
                      {"reading_seconds", time.reading},
                      {"computing_seconds", time.computing},
                      {"latency_seconds", time.latency},
                      {"transfer_seconds", time.transfer},
                      {"copying_seconds", time.copying},
                      {"largest_part", std::string(time.LargestPart())}});
  }
  return {{"fastest_machines", speeds[FastestOf(speeds)].machines}, {"groups", std::move(groups)}};
}

nlohmann::ordered_json PlanJson(const PlanFlags& flags, const Plan& plan,
                                const std::vector<PlannedNetwork>& networks) {
  nlohmann::ordered_json json = {{"config", plan.config},
                                 {"types", plan.types},
                                 {"file_bytes", plan.file_bytes},
                                 {"machine",
                                  {{"read_bytes_per_second", plan.machine.read_bandwidth},
                                   {"decode_share", plan.machine.decode_share},
                                   {"ops_per_second", plan.machine.ops},
                                   {"dot", DotName(plan.dot)},
                                   {"prefill_share", plan.machine.prefill_share},
                                   {"copied_bytes_per_second", plan.machine.copying}}},
                                 {"conversations", flags.conversations},
                                 {"depth", flags.depth},
                                 {"prompt", flags.prompt}};
  json["groups"] = nlohmann::ordered_json::array();
  for (const PlanRow& row : plan.rows) {
    const PlannedWork& work = row.group.work;
    json["groups"].push_back({{"machines", row.group.machines},
                              {"memory_bytes", row.memory},
                              {"weight_bytes", work.weights},
                              {"gathers", work.layers.collectives + work.output.collectives},
                              {"gathered_bytes_per_token", work.layers.gathered},
                              {"gathered_bytes_per_output", work.output.gathered}});
  }
  json["networks"] = nlohmann::ordered_json::array();
  for (const PlannedNetwork& network : networks) {
    const PlanOnNetwork speeds = OnNetwork(flags, plan, network);
    nlohmann::ordered_json one = {{"name", network.name},
                                  {"latency_seconds", network.latency},
                                  {"bytes_per_second", network.bandwidth},
                                  {"decode", SpeedsJson(flags.conversations, speeds.decode)}};
    if (flags.prompt > 0) one["prefill"] = SpeedsJson(flags.prompt, speeds.prefill);
    json["networks"].push_back(std::move(one));
  }
  return json;
}

absl::Status Run(const PlanFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<PlannedNetwork> networks, Networks(flags));
  INLAY_ASSIGN_OR_RETURN(const Plan plan, CalculatePlan(flags));
  Output out;
  out.Write(flags.json ? JsonText(PlanJson(flags, plan, networks))
                       : PlanText(flags, plan, networks));
  return out.Finish();
}

// --config, --type, and the file that they stand for otherwise.
void AddPlannedModelFlags(CLI::App& command, PlanFlags& flags) {
  CLI::Option* const model = AddModelFlag(command, flags.model);
  AddModelArgument(command, model, flags.model);
  CLI::Option* const config =
      command
          .add_option("--config", flags.config,
                      "instead of a model: the file that `inlay synth` would write for this config")
          ->type_name("CONFIG")
          ->excludes(model)
          ->excludes(command.get_option("MODEL"))
          ->excludes(command.get_option("--sandbox"));
  if (flags.model.hub_option != nullptr) config->excludes(flags.model.hub_option);
  command.add_option("--type", flags.type, "the type of its matrices (default: Q8_0)")
      ->type_name("TYPE")
      ->needs(config);
}

void AddMachineFlags(CLI::App& command, PlanFlags& flags) {
  constexpr double kMost = 1e9;
  AddThreadsFlag(command, flags.model);
  command
      .add_option("--read-bandwidth", flags.read_bandwidth,
                  "GB/s that all threads of a machine read (default: measured here)")
      ->check(Above(0, kMost));
  command
      .add_option("--ops", flags.ops,
                  "Gop/s of all threads' dot products, as `inlay limits` measures them (default: "
                  "measured here)")
      ->check(Above(0, kMost));
  command
      .add_option("--decode-share", flags.decode_share,
                  "percent of that bandwidth which decode reaches (default: 85)")
      ->check(Above(0, 100));
  command
      .add_option(
          "--prefill-share", flags.prefill_share,
          "percent of these operations which prefill reaches (default: 60, but where AMX is "
          "measured here 8 for int8 and 20 for bfloat16; give these for another machine with AMX, "
          "beside its --ops)")
      ->check(Above(0, 100));
  command
      .add_option("--copying", flags.copying,
                  absl::StrCat("GB/s at which a machine copies what is gathered (default: ",
                               PlannedMachine().copying / 1e9, ")"))
      ->check(Above(0, kMost));
}

}  // namespace

void AddPlan(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App& command = *app.add_subcommand(
      "plan", "Calculates a model's speed on several machines that compute it together.");
  AddPlannedModelFlags(command, *flags);
  command.add_option("--machines", flags->machines, "the most machines (default: 16)")
      ->check(Between(1, 256));
  command
      .add_option("--network", flags->networks,
                  "10gbe, 100gbe-rdma, shared-memory, or a latency and a bandwidth: 12us,1.1GB/s; "
                  "may be repeated (default: the three)")
      ->type_name("10gbe|100gbe-rdma|shared-memory|TEXT")
      ->expected(1)
      ->take_all();
  command
      .add_option("-b,--batch", flags->conversations, "conversations decoded together (default: 1)")
      ->check(Between(1, static_cast<double>(EngineOptions().max_batch)));
  command
      .add_option("-d,--n-depth", flags->depth,
                  "tokens that each has already (default: 0); the memory includes them")
      ->check(Between(0, 10'000'000));
  command.add_option("-p,--n-prompt", flags->prompt, "tokens of prefill (default: 512); 0: none")
      ->check(Between(0, 1'000'000));
  AddMachineFlags(command, *flags);
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

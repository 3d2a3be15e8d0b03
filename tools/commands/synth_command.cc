// inlay synth and inlay quantize: the commands that write model files.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/files/made_up_vocabulary.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_value.h"
#include "ops/quant/weight_type.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/format.h"
#include "tools/output.h"
#include "tools/overwrite.h"
#include "tools/progress.h"

namespace inlay {
namespace {

struct SynthFlags {
  std::string config;
  std::string output;
  std::string type = "Q8_0";
  uint64_t seed = 1;
  bool vocabulary = false;
  bool force = false;
};

absl::Status Synth(const SynthFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry,
                         AsUsageError(FindConfig(absl::string_view(flags.config))));
  INLAY_ASSIGN_OR_RETURN(const Quantization quantization,
                         AsUsageError(Quantization::Parse(flags.type)));
  INLAY_ASSIGN_OR_RETURN(const Replace replace,
                         MayReplace(flags.output, FileKind::kModel, flags.force));
  SynthModel model = entry->synth();
  if (flags.vocabulary) INLAY_RETURN_IF_ERROR(AddMadeUpVocabulary(model));
  return WriteSynth(std::move(model), quantization, flags.seed, flags.output, replace,
                    ShowProgress(absl::StrCat("writing ", flags.output), ProgressUnit::kBytes));
}

struct QuantizeFlags {
  std::string input;
  std::string output;
  std::string type;
  bool force = false;
  ModelFlags model;  // its threads
};

std::string NameOf(WeightType type) { return std::string(GetWeightTypeInfo(type).name); }

std::string Matrices(size_t count) {
  return absl::StrCat(count, count == 1 ? " matrix" : " matrices");
}

// Says what has become of the file, and what a person may not expect of that.
absl::Status NotePlan(const GgufFile& file, const Quantization& quantization) {
  INLAY_ASSIGN_OR_RETURN(const QuantizationPlan plan, PlanQuantization(file, quantization));
  const std::string type = NameOf(quantization.type);
  std::string text = absl::StrCat(PrintableName(file.name()), ": ", ByteCount(plan.bytes_before),
                                  " of weights are now ", ByteCount(plan.bytes_after), "\n");
  for (const QuantizationPlan::Fallback& fallback : plan.fallbacks) {
    absl::StrAppend(&text, Matrices(fallback.matrices), " as ", NameOf(fallback.stored),
                    ": rows of ", fallback.cols, " elements are not whole blocks of ",
                    NameOf(fallback.wanted), "\n");
  }
  for (const auto& [from, matrices] : plan.requantized) {
    absl::StrAppend(&text, "the source is already ", NameOf(from), " in ", Matrices(matrices),
                    ": what that type has lost is lost here, too\n");
  }
  if (!quantization.mix && (type == "Q4_K" || type == "Q5_K")) {
    absl::StrAppend(&text, type, " is the type of all matrices; what llama-quantize calls ", type,
                    " is ", type, "_M here\n");
  }
  WriteNote(text);
  return absl::OkStatus();
}

absl::Status Quantize(const QuantizeFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const Quantization quantization,
                         AsUsageError(Quantization::Parse(flags.type)));
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(flags.input));
  INLAY_ASSIGN_OR_RETURN(const Replace replace,
                         MayReplace(flags.output, FileKind::kModel, flags.force));
  INLAY_RETURN_IF_ERROR(
      Requantize(file, quantization, flags.output, replace, flags.model.threads,
                 ShowProgress(absl::StrCat("quantizing ", flags.input), ProgressUnit::kBytes)));
  return NotePlan(file, quantization);
}

// A seed; CLI11 would accept -1 as the largest one.
std::string SeedFault(const std::string& text) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return "";
  return absl::StrCat(QuoteForMessage(text), " is not a whole number from 0 to ",
                      std::numeric_limits<uint64_t>::max());
}

constexpr char kTypes[] =
    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, MXFP4, Q2_K to Q6_K (all "
    "matrices in that type), Q4_K_M or Q5_K_M (mixes, which llama-quantize also calls Q4_K and "
    "Q5_K)";

}  // namespace

void AddSynth(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<SynthFlags>();
  CLI::App& command = *app.add_subcommand(
      "synth", "Writes a model file with random weights in a config's real shape.");
  command.add_option("config", flags->config, "a config that `inlay configs` lists")
      ->type_name("CONFIG")
      ->required();
  command.add_option("-o,--output", flags->output, "the file to write")
      ->type_name("FILE")
      ->required();
  command.add_option("--type", flags->type, std::string(kTypes) + " (default: Q8_0)")
      ->type_name("TYPE");
  command.add_option("-s,--seed", flags->seed, "the same seed gives the same weights (default: 1)")
      ->check(SeedFault);
  command.add_flag("--vocabulary", flags->vocabulary,
                   "with made-up words as tokens, for programs that need some, as servers do");
  AddForceFlag(command, flags->force);
  command.callback([flags, &action] { action = [flags] { return Synth(*flags); }; });
}

void AddQuantize(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<QuantizeFlags>();
  CLI::App& command =
      *app.add_subcommand("quantize", "Writes a model file's matrices in another type.");
  command.add_option("input", flags->input, "the file to read")->type_name("MODEL")->required();
  command.add_option("output", flags->output, "the file to write")->type_name("FILE")->required();
  command.add_option("type", flags->type, kTypes)->type_name("TYPE")->required();
  AddForceFlag(command, flags->force);
  AddThreadsFlag(command, flags->model);
  command.callback([flags, &action] { action = [flags] { return Quantize(*flags); }; });
}

}  // namespace inlay

#include "tools/flags/sampling_flags.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/printable.h"
#include "tools/flags/validators.h"

namespace inlay {
namespace {

constexpr double kMostInt = std::numeric_limits<int>::max();

constexpr char kNewSeed[] = "-1";

// CLI11 would take a number beyond its type's for the nearest one.
std::string SamplingSeedFault(const std::string& value) {
  if (std::string octal = NotOctal(value); !octal.empty()) return octal;
  uint64_t seed = 0;
  if (value == kNewSeed || absl::SimpleAtoi(value, &seed)) return "";
  return absl::StrCat(QuoteForMessage(value), " is not a whole number from 0 to ",
                      std::numeric_limits<uint64_t>::max(), ", nor -1 for a new seed");
}

// llama.cpp's programs take -1 for all there are.
CLI::Validator MinusOneIs(const std::string& all) {
  return CLI::Validator(
      [all](std::string& value) {
        if (value == "-1") value = all;
        return std::string();
      },
      "");
}

void Add(CLI::App& command, const std::string& group, const std::string& new_seed,
         SamplingFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->group(group);
  };
  const auto set_seed = [&flags](const std::string& value) {
    uint64_t seed = 0;
    flags.seed = absl::SimpleAtoi(value, &seed) ? std::optional(seed) : std::nullopt;
  };
  command
      .add_option_function<std::string>(
          "-s,--seed", set_seed,
          absl::StrCat("the same seed gives the same text (default and -1: ", new_seed, ")"))
      ->type_name("INT")
      ->group(group)
      ->check(SamplingSeedFault);
  add("--temp", flags.temperature, "temperature; 0: always the most likely token")
      ->check(Between(0, 100));
  add("--top-k", flags.top_k, "choose among the k most likely tokens; 0 or -1: all")
      ->transform(MinusOneIs("0"))
      ->check(Between(0, kMostInt));
  add("--top-p", flags.top_p, "of these, the most likely whose probabilities add up to this")
      ->check(Above(0, 1));
  add("--min-p", flags.min_p, "drop tokens below this share of the largest probability")
      ->check(Between(0, 1));
  add("--repeat-penalty", flags.repeat_penalty, "make recent tokens less likely; 1: off")
      ->check(Between(0.01, 100));
  add("--repeat-last-n", flags.repeat_last_n, "how many last tokens count as recent; -1: all")
      ->transform(MinusOneIs(Format("%.0f", kMostInt)))
      ->check(Between(0, kMostInt));
  add("--presence-penalty", flags.presence_penalty,
      "subtract this from the logit of each token that is in the answer (default: 0)")
      ->check(Between(-100, 100));
  add("--frequency-penalty", flags.frequency_penalty, "the same, as often as it is there")
      ->check(Between(-100, 100));
}

}  // namespace

void AddSamplingFlags(CLI::App& command, SamplingFlags& flags, absl::string_view shown) {
  Add(command, "Sampling (defaults: the model's)", absl::StrCat("a new seed, ", shown), flags);
}

void AddDefaultSamplingFlags(CLI::App& command, SamplingFlags& flags) {
  Add(command, "Sampling where a request does not say (defaults: the model's)",
      "a new seed for each", flags);
}

SamplingOptions ResolveSampling(const SamplingFlags& flags, const SamplingDefaults& defaults) {
  SamplingOptions options = SamplingOptions::From(defaults);
  options.temperature = flags.temperature.value_or(options.temperature);
  options.top_k = flags.top_k.value_or(options.top_k);
  options.top_p = flags.top_p.value_or(options.top_p);
  options.min_p = flags.min_p.value_or(options.min_p);
  options.repeat_penalty = flags.repeat_penalty.value_or(options.repeat_penalty);
  options.repeat_last_n = flags.repeat_last_n.value_or(options.repeat_last_n);
  options.presence_penalty = flags.presence_penalty.value_or(options.presence_penalty);
  options.frequency_penalty = flags.frequency_penalty.value_or(options.frequency_penalty);
  options.seed = flags.seed.has_value() ? *flags.seed : uint64_t{std::random_device()()};
  return options;
}

}  // namespace inlay

#include "tools/flags/spellings.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/flags/option_names.h"
#include "tools/flags/usage_error.h"

namespace inlay {
namespace {

enum class Meaning {
  kSame,      // text: the command's own name
  kSameFile,  // the same, whose value is then @FILE
  kNone,      // text: why it changes nothing
  kOther      // text: what there is instead
};

// How many arguments after an option are its value.
enum class Values { kNone, kOne, kOnOff };  // the last one only if it is on, off, auto, 0 or 1

struct Spelling {
  absl::string_view name;
  Meaning meaning;
  Values values;
  absl::string_view text;
  absl::string_view command = "";  // the only one to which it applies; "": all
};

constexpr Meaning kSame = Meaning::kSame, kSameFile = Meaning::kSameFile, kNone = Meaning::kNone,
                  kOther = Meaning::kOther;
constexpr Values kNo = Values::kNone, kOne = Values::kOne, kOnOff = Values::kOnOff;

constexpr absl::string_view kCpuOnly = "everything is computed on the CPU";
constexpr absl::string_view kBatches = "the size of batches changes neither text nor memory";
constexpr absl::string_view kMapped = "the file is always mapped";
constexpr absl::string_view kThreads = "one number of threads (-t) serves prompts and answers";
constexpr absl::string_view kPlaced = "the operating system places the threads";
constexpr absl::string_view kExact = "attention is always computed block by block, and exactly";
constexpr absl::string_view kLogs = "there is no log; the few notes go to standard error";
constexpr absl::string_view kColours =
    "colours are used on a terminal, unless NO_COLOR is set or TERM is dumb";
constexpr absl::string_view kRows = "--cache-type sets the row type of keys and values";
constexpr absl::string_view kInFile = "the model file says how positions are encoded";
constexpr absl::string_view kMerge = "merge it into the model file first";
constexpr absl::string_view kSamplers =
    "the samplers are --repeat-penalty, --presence-penalty, --frequency-penalty, --top-k, --top-p, "
    "--min-p and --temp, in this order";
constexpr absl::string_view kLearned =
    "how far a draft model drafts is learned from what is accepted";
constexpr absl::string_view kSameForDrafts = "a draft model runs as the model does";
constexpr absl::string_view kSession = "--session FILE keeps a conversation and goes on with it";
constexpr absl::string_view kFirstMessage =
    "--system TEXT gives instructions, echo TEXT | inlay chat has a message answered";
constexpr absl::string_view kConverse = "inlay chat converses";
constexpr absl::string_view kAlwaysTemplate = "a chat always uses the model's own template";

constexpr Spelling kSpellings[] = {
    {"-hf", kSame, kOne, "--hf-repo"},
    {"-hfr", kSame, kOne, "--hf-repo"},
    {"--n-predict", kSame, kOne, "--predict"},
    {"--temperature", kSame, kOne, "--temp"},
    {"--repetition-penalty", kSame, kOne, "--repeat-penalty"},
    {"-sys", kSame, kOne, "--system"},
    {"--system-prompt", kSame, kOne, "--system"},
    {"-sysf", kSame, kOne, "--system-file"},
    {"--system-prompt-file", kSame, kOne, "--system-file"},
    {"-j", kSame, kOne, "--schema"},
    {"-jf", kSameFile, kOne, "--schema"},
    {"--json-schema-file", kSameFile, kOne, "--schema"},
    {"--grammar-file", kSameFile, kOne, "--grammar"},
    {"--chat-template-file", kSame, kOne, "--chat-template"},
    {"--no-display-prompt", kSame, kNo, "--no-echo"},
    {"-bf", kSame, kOne, "--file"},
    {"--binary-file", kSame, kOne, "--file"},
    {"-np", kSame, kOne, "--parallel"},
    {"-a", kSame, kOne, "--alias"},
    {"-md", kSame, kOne, "--draft-model"},
    {"--model-draft", kSame, kOne, "--draft-model"},
    {"--spec-draft-model", kSame, kOne, "--draft-model"},
    {"--draft-max", kSame, kOne, "--draft"},
    {"--draft-n", kSame, kOne, "--draft"},
    {"--spec-draft-n-max", kSame, kOne, "--draft"},

    {"-ngl", kNone, kOne, kCpuOnly},
    {"--gpu-layers", kNone, kOne, kCpuOnly},
    {"--n-gpu-layers", kNone, kOne, kCpuOnly},
    {"-sm", kNone, kOne, kCpuOnly},
    {"--split-mode", kNone, kOne, kCpuOnly},
    {"-ts", kNone, kOne, kCpuOnly},
    {"--tensor-split", kNone, kOne, kCpuOnly},
    {"-mg", kNone, kOne, kCpuOnly},
    {"--main-gpu", kNone, kOne, kCpuOnly},
    {"-dev", kNone, kOne, kCpuOnly},
    {"--device", kNone, kOne, kCpuOnly},
    {"-ot", kNone, kOne, kCpuOnly},
    {"--override-tensor", kNone, kOne, kCpuOnly},
    {"-cmoe", kNone, kNo, kCpuOnly},
    {"--cpu-moe", kNone, kNo, kCpuOnly},
    {"-ncmoe", kNone, kOne, kCpuOnly},
    {"--n-cpu-moe", kNone, kOne, kCpuOnly},
    {"-nkvo", kNone, kNo, kCpuOnly},
    {"--no-kv-offload", kNone, kNo, kCpuOnly},
    {"--no-op-offload", kNone, kNo, kCpuOnly},
    {"-b", kNone, kOne, kBatches},
    {"--batch-size", kNone, kOne, kBatches},
    {"-ub", kNone, kOne, kBatches},
    {"--ubatch-size", kNone, kOne, kBatches},
    {"-tb", kNone, kOne, kThreads},
    {"--threads-batch", kNone, kOne, kThreads},
    {"-C", kNone, kOne, kPlaced},
    {"--cpu-mask", kNone, kOne, kPlaced},
    {"-Cr", kNone, kOne, kPlaced},
    {"--cpu-range", kNone, kOne, kPlaced},
    {"--cpu-strict", kNone, kOne, kPlaced},
    {"--prio", kNone, kOne, kPlaced},
    {"--poll", kNone, kOne, kPlaced},
    {"--numa", kNone, kOne, kPlaced},
    {"-fa", kNone, kOnOff, kExact},
    {"--flash-attn", kNone, kOnOff, kExact},
    {"--mmap", kNone, kNo, kMapped},
    {"--no-mmap", kNone, kNo, kMapped},
    {"--mlock", kNone, kNo, kMapped},
    {"-mmp", kNone, kOne, kMapped},
    {"-nr", kNone, kNo, "matrices are always stored as the kernels read them"},
    {"--no-repack", kNone, kNo, "matrices are always stored as the kernels read them"},
    {"--warmup", kNone, kNo, "nothing needs to be warmed up"},
    {"--no-warmup", kNone, kNo, "nothing needs to be warmed up"},
    {"--no-context-shift", kNone, kNo, "no context is ever shifted"},
    {"-no-cnv", kNone, kNo, "inlay generate continues a text", "generate"},
    {"--no-conversation", kNone, kNo, "inlay generate continues a text", "generate"},
    {"-cnv", kNone, kNo, kConverse, "chat"},
    {"--conversation", kNone, kNo, kConverse, "chat"},
    {"-i", kNone, kNo, kConverse, "chat"},
    {"--interactive", kNone, kNo, kConverse, "chat"},
    {"--jinja", kNone, kNo, kAlwaysTemplate},
    {"-co", kNone, kOnOff, kColours},
    {"--color", kNone, kOnOff, kColours},
    {"--log-colors", kNone, kOnOff, kColours},
    {"--simple-io", kNone, kNo, kColours},
    {"--no-escape", kNone, kNo, "-e alone reads \\n and the like"},
    {"-v", kNone, kNo, kLogs},
    {"--verbose", kNone, kNo, kLogs},
    {"-lv", kNone, kOne, kLogs},
    {"--log-verbosity", kNone, kOne, kLogs},
    {"--verbosity", kNone, kOne, kLogs},
    {"--verbose-prompt", kNone, kNo, "inlay tokenize shows a text's tokens"},
    {"--log-disable", kNone, kNo, kLogs},
    {"--log-file", kNone, kOne, kLogs},
    {"--log-prefix", kNone, kNo, kLogs},
    {"--log-timestamps", kNone, kNo, kLogs},
    {"--perf", kNone, kNo, "the timings are always on standard error"},
    {"--no-perf", kNone, kNo, "2>/dev/null hides the timings, which go to standard error"},
    {"-cb", kNone, kNo, "answers are always computed together"},
    {"--cont-batching", kNone, kNo, "answers are always computed together"},
    {"--metrics", kNone, kNo, "/metrics always answers", "serve"},

    {"-p", kOther, kOne, kFirstMessage, "chat"},
    {"--prompt", kOther, kOne, kFirstMessage, "chat"},
    {"--session", kOther, kOne, "--continue goes on with the last chat, /save and /load with any",
     "chat"},
    {"-ctk", kOther, kOne, kRows},
    {"--cache-type-k", kOther, kOne, kRows},
    {"-ctv", kOther, kOne, kRows},
    {"--cache-type-v", kOther, kOne, kRows},
    {"-cnv", kOther, kNo, kConverse},
    {"--conversation", kOther, kNo, kConverse},
    {"-i", kOther, kNo, kConverse},
    {"--interactive", kOther, kNo, kConverse},
    {"-no-cnv", kOther, kNo, "inlay generate continues a text"},
    {"--no-conversation", kOther, kNo, "inlay generate continues a text"},
    {"-st", kOther, kNo, "echo TEXT | inlay chat answers once"},
    {"--single-turn", kOther, kNo, "echo TEXT | inlay chat answers once"},
    {"-mli", kOther, kNo, "in a chat, \"\"\" begins and ends a message of several lines"},
    {"--multiline-input", kOther, kNo,
     "in a chat, \"\"\" begins and ends a message of several lines"},
    {"--context-shift", kOther, kNo, "in a chat, --on-full trim makes room in a full context"},
    {"--keep", kOther, kOne,
     "in a chat, --on-full trim keeps the system prompt and the newest turns"},
    {"-r", kOther, kOne, "--stop TEXT ends an answer before that text"},
    {"--reverse-prompt", kOther, kOne, "--stop TEXT ends an answer before that text"},
    {"-sp", kOther, kNo, "control tokens are never part of the text"},
    {"--special", kOther, kNo, "control tokens are never part of the text"},
    {"--prompt-cache", kOther, kOne, kSession},
    {"--prompt-cache-all", kOther, kNo, kSession},
    {"--prompt-cache-ro", kOther, kNo, kSession},
    {"--samplers", kOther, kOne, kSamplers},
    {"--sampling-seq", kOther, kOne, kSamplers},
    {"--typical", kOther, kOne, kSamplers},
    {"--mirostat", kOther, kOne, kSamplers},
    {"--mirostat-lr", kOther, kOne, kSamplers},
    {"--mirostat-ent", kOther, kOne, kSamplers},
    {"--xtc-probability", kOther, kOne, kSamplers},
    {"--xtc-threshold", kOther, kOne, kSamplers},
    {"--top-nsigma", kOther, kOne, kSamplers},
    {"--dynatemp-range", kOther, kOne, kSamplers},
    {"--dynatemp-exp", kOther, kOne, kSamplers},
    {"--dry-multiplier", kOther, kOne, kSamplers},
    {"--dry-base", kOther, kOne, kSamplers},
    {"--dry-allowed-length", kOther, kOne, kSamplers},
    {"--dry-penalty-last-n", kOther, kOne, kSamplers},
    {"--dry-sequence-breaker", kOther, kOne, kSamplers},
    {"-l", kOther, kOne, "a server's requests can have a logit_bias"},
    {"--logit-bias", kOther, kOne, "a server's requests can have a logit_bias"},
    {"--rope-scaling", kOther, kOne, kInFile},
    {"--rope-scale", kOther, kOne, kInFile},
    {"--rope-freq-base", kOther, kOne, kInFile},
    {"--rope-freq-scale", kOther, kOne, kInFile},
    {"--yarn-orig-ctx", kOther, kOne, kInFile},
    {"--yarn-ext-factor", kOther, kOne, kInFile},
    {"--yarn-attn-factor", kOther, kOne, kInFile},
    {"--override-kv", kOther, kOne, "a model is run as its file's metadata says"},
    {"--lora", kOther, kOne, kMerge},
    {"--lora-scaled", kOther, kOne, kMerge},
    {"--control-vector", kOther, kOne, kMerge},
    {"--mmproj", kOther, kOne, "models read and write text alone"},
    {"--draft-min", kNone, kOne, kLearned},
    {"--draft-n-min", kNone, kOne, kLearned},
    {"--draft-p-min", kNone, kOne, kLearned},
    {"-td", kNone, kOne, kSameForDrafts},
    {"--threads-draft", kNone, kOne, kSameForDrafts},
    {"-cd", kNone, kOne, kSameForDrafts},
    {"--ctx-size-draft", kNone, kOne, kSameForDrafts},
    {"-ngld", kNone, kOne, kCpuOnly},
    {"--n-gpu-layers-draft", kNone, kOne, kCpuOnly},
    {"--reasoning-budget", kOther, kOne, "--no-think has the model answer without thinking"},
    {"--api-key", kOther, kOne, "--api-key-file FILE or $INLAY_API_KEY give the key"},
};

// What `name` means to this command; null where nothing is known.
const Spelling* FindSpelling(const CLI::App& command, absl::string_view name) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name != name) continue;
    if (spelling.command.empty() || spelling.command == command.get_name()) return &spelling;
  }
  return nullptr;
}

bool IsOnOff(absl::string_view word) {
  return word == "on" || word == "off" || word == "auto" || word == "0" || word == "1";
}

// An option with what belongs to it.
struct Occurrence {
  absl::string_view name;                  // "-ngl"
  std::optional<absl::string_view> value;  // its value
  size_t arguments = 1;                    // that make it up
};

Occurrence OccurrenceOf(const Spelling& spelling, absl::Span<const std::string> arguments) {
  const absl::string_view word = arguments[0];
  const size_t equals = word.find('=');
  Occurrence found{.name = word.substr(0, equals), .value = std::nullopt};
  if (equals != absl::string_view::npos) {
    found.value = word.substr(equals + 1);
  } else if (arguments.size() > 1 &&
             (spelling.values == kOne || (spelling.values == kOnOff && IsOnOff(arguments[1])))) {
    found.value = arguments[1];
    found.arguments = 2;
  }
  return found;
}

// The line about an option that is left out.
std::string NoEffect(const Occurrence& found, absl::string_view why) {
  const std::string value =
      found.value.has_value() ? absl::StrCat(" ", PrintableName(*found.value)) : "";
  return absl::StrCat("inlay: ", found.name, value, " has no effect: ", why, "\n");
}

}  // namespace

absl::StatusOr<std::string> TranslateSpellings(const CLI::App& command,
                                               std::vector<std::string>& arguments) {
  std::string notes;
  const bool runs_model = FindOption(command, "--model") != nullptr;
  std::vector<std::string> translated;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& word = arguments[i];
    if (word == "--") {
      translated.insert(translated.end(), arguments.begin() + static_cast<ptrdiff_t>(i),
                        arguments.end());
      break;
    }
    const absl::string_view name = absl::string_view(word).substr(0, word.find('='));
    const Spelling* const spelling =
        FindOption(command, name) != nullptr ? nullptr : FindSpelling(command, name);
    const bool is_same =
        spelling != nullptr && (spelling->meaning == kSame || spelling->meaning == kSameFile);
    const bool is_there = is_same ? FindOption(command, spelling->text) != nullptr : runs_model;
    if (spelling == nullptr || !is_there) {
      const size_t count = ValueFollows(command, word) ? 2 : 1;
      // CLI11 would read "-hf" as -h, and give help instead of an error.
      const bool is_misread = is_same && word.size() > 2 && word[1] != '-';
      translated.push_back(is_misread ? std::string(spelling->text) : word);
      if (count == 2 && i + 1 < arguments.size()) translated.push_back(arguments[i + 1]);
      i += count;
      continue;
    }
    const Occurrence found = OccurrenceOf(*spelling, absl::MakeConstSpan(arguments).subspan(i));
    if (spelling->meaning == kOther)
      return UsageError(absl::StrCat(found.name, " is not available: ", spelling->text));
    if (spelling->values == kOne && !found.value.has_value())
      return UsageError(absl::StrCat(found.name, " needs a value"));
    if (is_same) {
      translated.emplace_back(spelling->text);
      if (found.value.has_value())
        translated.push_back(absl::StrCat(spelling->meaning == kSameFile ? "@" : "", *found.value));
    } else {
      notes += NoEffect(found, spelling->text);
    }
    i += found.arguments;
  }
  arguments = std::move(translated);
  return notes;
}

std::vector<std::string> SpellingsOf(absl::string_view option) {
  std::vector<std::string> names;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.text == option && spelling.values == kOne) names.emplace_back(spelling.name);
  }
  return names;
}

}  // namespace inlay

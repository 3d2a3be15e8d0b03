#include "tools/flags/spellings.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/flags/llama_options.h"
#include "tools/flags/option_names.h"
#include "tools/flags/usage_error.h"

namespace inlay {
namespace {

enum class Meaning {
  kSame,      // text: the command's own name
  kSameFile,  // the same, whose value is then @FILE
  kNone,      // text: why it changes nothing
  kOther,     // text: what there is instead
  kKeyRows,   // the row type of keys
  kValueRows  // the row type of values
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
constexpr Meaning kKeyRows = Meaning::kKeyRows, kValueRows = Meaning::kValueRows;
constexpr Values kNo = Values::kNone, kOne = Values::kOne, kOnOff = Values::kOnOff;

constexpr absl::string_view kCpuOnly = "everything is computed on the CPU";
constexpr absl::string_view kBatches = "the size of batches changes neither text nor memory";
constexpr absl::string_view kMapped =
    "the matrices of a GGUF file are copied into memory as the kernels read them, a packed file is "
    "mapped";
constexpr absl::string_view kThreads = "one number of threads (-t) serves prompts and answers";
constexpr absl::string_view kPlaced = "the operating system places the threads";
constexpr absl::string_view kExact = "attention is always computed block by block, and exactly";
constexpr absl::string_view kLogs =
    "notes are few and go to standard error; inlay serve has --access-log and --answer-log";
constexpr absl::string_view kColours =
    "colours are used on a terminal, unless NO_COLOR is set or TERM is dumb";
constexpr absl::string_view kRows = "--cache-type sets the row type of both keys and values";
constexpr absl::string_view kInstructions =
    "inlay chat takes instructions; here the prompt is the whole text";
constexpr absl::string_view kControl = "the control tokens of an answer are not printed";
constexpr absl::string_view kSlots = "there are no slots; /metrics tells what the server does";
constexpr absl::string_view kOnePool = "conversations always share one pool of memory";
constexpr absl::string_view kLimit =
    "--cache-limit MIB bounds the memory for conversations and stored prefixes";
constexpr absl::string_view kSnapshots = "snapshots are taken by themselves, at the ends of turns";
constexpr absl::string_view kEmbeds = "a model that embeds texts always answers /v1/embeddings";
constexpr absl::string_view kTextAlone = "models read and write text alone";
constexpr absl::string_view kTls = "TLS is for a proxy in front of the server";
constexpr absl::string_view kOneModel = "a server has one model, which -m names";
constexpr absl::string_view kNoThoughts =
    "--chat-template-kwargs '{\"enable_thinking\": false}' has the model answer without thinking";
constexpr absl::string_view kThoughtsOfChats =
    "inlay chat --no-think has the model answer without thinking";
constexpr absl::string_view kToken = "HF_TOKEN in the environment is the token";
constexpr absl::string_view kFile = "-hf USER/REPO:FILE names a file of a repository";
constexpr absl::string_view kUrl = "-hf USER/REPO[:TYPE] pulls a model of Hugging Face";
constexpr absl::string_view kDraftFile =
    "--draft-model FILE names the model that drafts, which inlay pull gets";
constexpr absl::string_view kRepacked = "matrices are always stored as the kernels read them";
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
constexpr absl::string_view kTypesOfMixes =
    "Q4_K_M and Q5_K_M store the embedding and the output as Q6_K, other types store all alike";
constexpr absl::string_view kTextsOfLines =
    "echo TEXT | inlay tokenize reads a text from standard input, inlay tokenize FILE a file";
constexpr absl::string_view kAlwaysTemplate = "a chat always uses the model's own template";

constexpr Spelling kSpellings[] = {
    {"-hf", kSame, kOne, "--hf-repo"},
    {"-hfr", kSame, kOne, "--hf-repo"},
    {"--n-predict", kSame, kOne, "--predict"},
    {"--temperature", kSame, kOne, "--temp"},
    {"--repetition-penalty", kSame, kOne, "--repeat-penalty"},
    {"-sys", kOther, kOne, kInstructions, "generate"},
    {"--system", kOther, kOne, kInstructions, "generate"},
    {"--system-prompt", kOther, kOne, kInstructions, "generate"},
    {"-sysf", kOther, kOne, kInstructions, "generate"},
    {"--system-file", kOther, kOne, kInstructions, "generate"},
    {"--system-prompt-file", kOther, kOne, kInstructions, "generate"},
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
    {"--no-webui", kSame, kNo, "--no-page"},
    {"--no-ui", kSame, kNo, "--no-page"},
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
    {"-kvo", kNone, kNo, kCpuOnly},
    {"--kv-offload", kNone, kNo, kCpuOnly},
    {"--op-offload", kNone, kNo, kCpuOnly},
    {"--no-op-offload", kNone, kNo, kCpuOnly},
    {"--no-host", kNone, kNo, kCpuOnly},
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
    {"-Cb", kNone, kOne, kPlaced},
    {"--cpu-mask-batch", kNone, kOne, kPlaced},
    {"-Crb", kNone, kOne, kPlaced},
    {"--cpu-range-batch", kNone, kOne, kPlaced},
    {"--cpu-strict-batch", kNone, kOne, kPlaced},
    {"--prio-batch", kNone, kOne, kPlaced},
    {"--poll-batch", kNone, kOne, kPlaced},
    {"--numa", kNone, kOne, kPlaced},
    {"-fa", kNone, kOnOff, kExact},
    {"--flash-attn", kNone, kOnOff, kExact},
    {"--mmap", kNone, kNo, kMapped},
    {"--no-mmap", kNone, kNo, kMapped},
    {"--mlock", kNone, kNo, "no memory is locked against swapping"},
    {"-dio", kNone, kNo, kMapped},
    {"--direct-io", kNone, kNo, kMapped},
    {"-lm", kNone, kOne, kMapped},
    {"--load-mode", kNone, kOne, kMapped},
    {"-mmp", kNone, kOne, kMapped},
    {"-nr", kNone, kNo, kRepacked},
    {"--no-repack", kNone, kNo, kRepacked},
    {"--repack", kNone, kNo, kRepacked},
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
    {"--no-log-prefix", kNone, kNo, kLogs},
    {"--no-log-timestamps", kNone, kNo, kLogs},
    {"--perf", kNone, kNo, "the timings are always on standard error"},
    {"--no-perf", kNone, kNo, "2>/dev/null hides the timings, which go to standard error"},
    {"-cb", kNone, kNo, "answers are always computed together"},
    {"--cont-batching", kNone, kNo, "answers are always computed together"},
    {"--metrics", kNone, kNo, "/metrics always answers", "serve"},

    {"--imatrix", kOther, kOne, "types are chosen without an importance matrix", "quantize"},
    {"--allow-requantize", kNone, kNo, "matrices that are quantized are converted, too",
     "quantize"},
    {"--pure", kOther, kNo, "Q4_K or Q5_K in place of Q4_K_M or Q5_K_M stores all matrices alike",
     "quantize"},
    {"--leave-output-tensor", kOther, kNo, kTypesOfMixes, "quantize"},
    {"--output-tensor-type", kOther, kOne, kTypesOfMixes, "quantize"},
    {"--token-embedding-type", kOther, kOne, kTypesOfMixes, "quantize"},
    {"--tensor-type", kOther, kOne, kTypesOfMixes, "quantize"},
    {"-p", kOther, kOne, kTextsOfLines, "tokenize"},
    {"--prompt", kOther, kOne, kTextsOfLines, "tokenize"},
    {"-f", kOther, kOne, "the file stands without a flag: inlay tokenize FILE", "tokenize"},
    {"--file", kOther, kOne, "the file stands without a flag: inlay tokenize FILE", "tokenize"},
    {"--stdin", kNone, kNo, "without a FILE standard input is read", "tokenize"},
    {"--ids", kNone, kNo, "ids are all that is printed", "tokenize"},
    {"--no-parse-special", kNone, kNo, "--special alone reads control tokens", "tokenize"},
    {"-p", kOther, kOne, "the texts stand without a flag: inlay embed TEXT", "embed"},
    {"--prompt", kOther, kOne, "the texts stand without a flag: inlay embed TEXT", "embed"},
    {"-f", kOther, kOne, "inlay embed - < FILE embeds each line", "embed"},
    {"--file", kOther, kOne, "inlay embed - < FILE embeds each line", "embed"},
    {"-c", kNone, kOne, "a text may be as long as the model takes", "embed"},
    {"--ctx-size", kNone, kOne, "a text may be as long as the model takes", "embed"},
    {"-pg", kOther, kOne, "-p, -n and -d measure prefill, decode and decode after a text", "bench"},
    {"-p", kOther, kOne, kFirstMessage, "chat"},
    {"--prompt", kOther, kOne, kFirstMessage, "chat"},
    {"--session", kOther, kOne, "--continue goes on with the last chat, /save and /load with any",
     "chat"},
    {"-ctk", kKeyRows, kOne, "--cache-type"},
    {"--cache-type-k", kKeyRows, kOne, "--cache-type"},
    {"-ctv", kValueRows, kOne, "--cache-type"},
    {"--cache-type-v", kValueRows, kOne, "--cache-type"},
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
    {"-sp", kOther, kNo,
     "the control tokens of an answer are not printed; --special reads those of a prompt",
     "generate"},
    {"-sp", kOther, kNo, kControl},
    {"--special", kOther, kNo, kControl},
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
    {"--top-n-sigma", kOther, kOne, kSamplers},
    {"--typical-p", kOther, kOne, kSamplers},
    {"--sampler-seq", kOther, kOne, kSamplers},
    {"--adaptive-target", kOther, kOne, kSamplers},
    {"--adaptive-decay", kOther, kOne, kSamplers},
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
    {"-mm", kOther, kOne, kTextAlone},
    {"--mmproj", kOther, kOne, kTextAlone},
    {"-mmu", kOther, kOne, kTextAlone},
    {"--mmproj-url", kOther, kOne, kTextAlone},
    {"--image", kOther, kOne, kTextAlone},
    {"--audio", kOther, kOne, kTextAlone},
    {"--no-mmproj", kNone, kNo, kTextAlone},
    {"--no-mmproj-auto", kNone, kNo, kTextAlone},
    {"--mmproj-auto", kNone, kNo, kTextAlone},
    {"--mmproj-offload", kNone, kNo, kTextAlone},
    {"--no-mmproj-offload", kNone, kNo, kTextAlone},
    {"--draft-min", kNone, kOne, kLearned},
    {"--draft-n-min", kNone, kOne, kLearned},
    {"--draft-p-min", kNone, kOne, kLearned},
    {"-td", kNone, kOne, kSameForDrafts},
    {"--threads-draft", kNone, kOne, kSameForDrafts},
    {"-cd", kNone, kOne, kSameForDrafts},
    {"--ctx-size-draft", kNone, kOne, kSameForDrafts},
    {"-ngld", kNone, kOne, kCpuOnly},
    {"--n-gpu-layers-draft", kNone, kOne, kCpuOnly},
    {"-hfd", kOther, kOne, kDraftFile},
    {"-hfrd", kOther, kOne, kDraftFile},
    {"--hf-repo-draft", kOther, kOne, kDraftFile},
    {"--spec-draft-hf", kOther, kOne, kDraftFile},
    {"--spec-draft-n-min", kNone, kOne, kLearned},
    {"--spec-draft-p-min", kNone, kOne, kLearned},
    {"--spec-draft-threads", kNone, kOne, kSameForDrafts},
    {"--spec-draft-ngl", kNone, kOne, kCpuOnly},
    {"--spec-draft-device", kNone, kOne, kCpuOnly},
    {"--spec-type", kOther, kOne, "--draft N drafts from the text, --draft-model FILE by a model"},
    {"-ctkd", kNone, kOne, kSameForDrafts},
    {"--cache-type-k-draft", kNone, kOne, kSameForDrafts},
    {"--spec-draft-type-k", kNone, kOne, kSameForDrafts},
    {"-ctvd", kNone, kOne, kSameForDrafts},
    {"--cache-type-v-draft", kNone, kOne, kSameForDrafts},
    {"--spec-draft-type-v", kNone, kOne, kSameForDrafts},

    {"--reasoning-budget", kOther, kOne, kNoThoughts, "serve"},
    {"--reasoning-budget", kOther, kOne, kNoThoughts, "batch"},
    {"--reasoning-budget", kOther, kOne, kThoughtsOfChats},
    {"-rea", kOther, kOne, kNoThoughts, "serve"},
    {"--reasoning", kOther, kOne, kNoThoughts, "serve"},
    {"-rea", kOther, kOne, kThoughtsOfChats},
    {"--reasoning", kOther, kOne, kThoughtsOfChats},
    {"--reasoning-format", kNone, kOne, "thoughts are always told apart from the answer"},
    {"--chat-template-kwargs", kOther, kOne, "--think and --no-think set enable_thinking", "chat"},
    {"--no-jinja", kNone, kNo, kAlwaysTemplate},

    {"-hff", kOther, kOne, kFile},
    {"--hf-file", kOther, kOne, kFile},
    {"-hft", kOther, kOne, kToken},
    {"--hf-token", kOther, kOne, kToken},
    {"-mu", kOther, kOne, kUrl},
    {"--model-url", kOther, kOne, kUrl},
    {"--offline", kOther, kNo, "HF_HUB_OFFLINE=1 in the environment keeps it from the network"},

    {"--embedding", kNone, kNo, kEmbeds, "serve"},
    {"--embeddings", kNone, kNo, kEmbeds, "serve"},
    {"--pooling", kNone, kOne, "the model's config says how texts are pooled"},
    {"--slots", kNone, kNo, kSlots, "serve"},
    {"--no-slots", kNone, kNo, kSlots, "serve"},
    {"-sps", kNone, kOne, kSlots, "serve"},
    {"--slot-prompt-similarity", kNone, kOne, kSlots, "serve"},
    {"--slot-save-path", kOther, kOne, "--sessions FOLDER keeps conversations", "serve"},
    {"--props", kNone, kNo, "/v1/models tells of the model, and no request changes the server",
     "serve"},
    {"--webui", kNone, kNo, "the page is at / unless --no-page is given", "serve"},
    {"--ui", kNone, kNo, "the page is at / unless --no-page is given", "serve"},
    {"--cache-prompt", kNone, kNo, "prefixes of prompts are always reused"},
    {"--cache-reuse", kNone, kOne, "prefixes are reused as far as they are the same", "serve"},
    {"-cram", kNone, kOne, kLimit},
    {"--cache-ram", kNone, kOne, kLimit},
    {"-ctxcp", kNone, kOne, kSnapshots},
    {"--ctx-checkpoints", kNone, kOne, kSnapshots},
    {"--swa-checkpoints", kNone, kOne, kSnapshots},
    {"-kvu", kNone, kNo, kOnePool},
    {"--kv-unified", kNone, kNo, kOnePool},
    {"-no-kvu", kNone, kNo, kOnePool},
    {"--no-kv-unified", kNone, kNo, kOnePool},
    {"--swa-full", kNone, kNo, "layers with a window always store what they need"},
    {"-fit", kNone, kOnOff, kCpuOnly},
    {"--fit", kNone, kOnOff, kCpuOnly},
    {"-fitt", kNone, kOne, kCpuOnly},
    {"--fit-target", kNone, kOne, kCpuOnly},
    {"-fitc", kNone, kOne, kCpuOnly},
    {"--fit-ctx", kNone, kOne, kCpuOnly},
    {"-nocb", kOther, kNo, "--parallel 1 computes one answer at a time", "serve"},
    {"--no-cont-batching", kOther, kNo, "--parallel 1 computes one answer at a time", "serve"},
    {"--threads-http", kNone, kOne, "connections need no threads of their own", "serve"},
    {"-to", kOther, kOne, "--timeout SECONDS bounds a whole answer", "serve"},
    {"--ssl-key-file", kOther, kOne, kTls, "serve"},
    {"--ssl-cert-file", kOther, kOne, kTls, "serve"},
    {"--models-dir", kOther, kOne, kOneModel, "serve"},
    {"--models-max", kOther, kOne, kOneModel, "serve"},
    {"--models-preset", kOther, kOne, kOneModel, "serve"},
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

// -ctk and -ctv, which Inlay has as one option.
struct RowTypes {
  std::optional<Occurrence> keys, values;
};

// What --cache-type calls a row type; nothing for those that there are not.
std::optional<absl::string_view> CacheTypeOf(absl::string_view type) {
  if (type == "q8_0") return "q8";
  for (absl::string_view same : {"f32", "f16", "bf16", "q8"}) {
    if (type == same) return same;
  }
  return std::nullopt;
}

// The type that both stand for; one that is left out is f16, as in llama.cpp.
absl::StatusOr<absl::string_view> OneRowType(const RowTypes& rows) {
  absl::string_view types[] = {"f16", "f16"};
  for (const auto& [found, type] : {std::pair(&rows.keys, &types[0]), {&rows.values, &types[1]}}) {
    if (!found->has_value()) continue;
    const std::optional<absl::string_view> known = CacheTypeOf(*(*found)->value);
    if (!known.has_value()) {
      return UsageError(absl::StrCat((*found)->name, " ", PrintableName(*(*found)->value),
                                     " is not available: rows are stored as f32, f16, bf16 or "
                                     "q8, which is the smallest (--cache-type q8)"));
    }
    *type = *known;
  }
  if (types[0] == types[1]) return types[0];
  return UsageError(absl::StrCat((rows.keys.has_value() ? rows.keys : rows.values)->name,
                                 " is not available: ", kRows, ", which would be ", types[0],
                                 " and ", types[1]));
}

// "--top-k" for "--top_k", which llama.cpp reads as the same; "" for a name that the command knows,
// or that is none with hyphens either.
std::string WithHyphens(const CLI::App& command, absl::string_view name) {
  if (!absl::StartsWith(name, "--") || !absl::StrContains(name, '_')) return "";
  if (FindOption(command, name) != nullptr) return "";
  std::string plain = absl::StrReplaceAll(name, {{"_", "-"}});
  const bool known =
      FindOption(command, plain) != nullptr || FindSpelling(command, plain) != nullptr;
  return known ? plain : "";
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
  RowTypes rows;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& word = arguments[i];
    if (word == "--") {
      translated.insert(translated.end(), arguments.begin() + static_cast<ptrdiff_t>(i),
                        arguments.end());
      break;
    }
    const absl::string_view name = absl::string_view(word).substr(0, word.find('='));
    if (const std::string plain = WithHyphens(command, name); !plain.empty()) {
      arguments[i].replace(0, name.size(), plain);
      continue;
    }
    const Spelling* const spelling =
        FindOption(command, name) != nullptr ? nullptr : FindSpelling(command, name);
    const bool is_rows =
        spelling != nullptr && (spelling->meaning == kKeyRows || spelling->meaning == kValueRows);
    const bool is_same =
        spelling != nullptr && (spelling->meaning == kSame || spelling->meaning == kSameFile);
    const bool is_there = is_same || is_rows
                              ? FindOption(command, spelling->text) != nullptr
                              : runs_model || (spelling != nullptr && !spelling->command.empty());
    if (spelling == nullptr || !is_there) {
      const size_t count = ValueFollows(command, word) ? 2 : 1;
      translated.push_back(word);
      if (count == 2 && i + 1 < arguments.size()) translated.push_back(arguments[i + 1]);
      i += count;
      continue;
    }
    const Occurrence found = OccurrenceOf(*spelling, absl::MakeConstSpan(arguments).subspan(i));
    if (spelling->meaning == kOther)
      return UsageError(absl::StrCat(found.name, " is not available: ", spelling->text));
    if (spelling->values == kOne && !found.value.has_value())
      return UsageError(absl::StrCat(found.name, " needs a value"));
    if (is_rows) {
      (spelling->meaning == kKeyRows ? rows.keys : rows.values) = found;
    } else if (is_same) {
      translated.emplace_back(spelling->text);
      if (found.value.has_value())
        translated.push_back(absl::StrCat(spelling->meaning == kSameFile ? "@" : "", *found.value));
    } else {
      notes += NoEffect(found, spelling->text);
    }
    i += found.arguments;
  }
  if (rows.keys.has_value() || rows.values.has_value()) {
    INLAY_ASSIGN_OR_RETURN(const absl::string_view type, OneRowType(rows));
    translated.insert(translated.begin(), {"--cache-type", std::string(type)});
  }
  arguments = std::move(translated);
  return notes;
}

absl::Status RefuseForeignOptions(const CLI::App& command,
                                  const std::vector<std::string>& arguments) {
  const bool runs_model = FindOption(command, "--model") != nullptr;
  const std::string help = absl::StrCat("; see inlay ", command.get_name(), " --help");
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const absl::string_view word = arguments[i];
    const absl::string_view name = word.substr(0, word.find('='));
    const bool is_option = word.size() > 1 && word[0] == '-' &&
                           !absl::ascii_isdigit(static_cast<unsigned char>(word[1]));
    if (is_option && FindOption(command, name) == nullptr) {
      // First: "-hf" could be "-h" and "-f", too, and would give help instead of an error.
      if (runs_model && IsLlamaOption(name)) {
        return UsageError(absl::StrCat(name, " is an option of llama.cpp that inlay ",
                                       command.get_name(), " does not have", help));
      }
      if (word.size() > 2 && word[1] != '-' && !IsShortOptions(command, word))
        return UsageError(absl::StrCat("unknown argument ", PrintableName(word), help));
    }
    i += is_option && ValueFollows(command, word) ? 1 : 0;
  }
  return absl::OkStatus();
}

std::vector<std::string> SpellingsOf(absl::string_view option) {
  std::vector<std::string> names;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.text == option && spelling.values == kOne) names.emplace_back(spelling.name);
  }
  return names;
}

}  // namespace inlay

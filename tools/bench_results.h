// What a benchmark measured, and its report.
#ifndef INLAY_TOOLS_BENCH_RESULTS_H_
#define INLAY_TOOLS_BENCH_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "ops/cpu/machine_limits.h"

namespace inlay {

// The model that was run.
struct BenchModel {
  BenchModel(const GgufFile& file, const ConfigEntry& config);

  std::string name;
  std::string types;     // with a twentieth of the tensors' bytes or more, the largest first
  Dot dot = Dot::kInt8;  // of the type that holds most
  uint64_t file_bytes;
  uint64_t parameters = 0;  // each once, also where a packed file repeats the embedding as output
};

// What was measured with one number of threads, beside the rows.
struct BenchTurn {
  size_t threads = 0;
  double load_seconds = 0;
  double first_token_seconds = 0;       // from the start of loading to the logits after one token
  std::optional<uint64_t> peak_memory;  // bytes resident, mapped files included
  double read_limit = 0;                // bytes per second, right before or right after
  double ops_limit = 0;                 // operations per second of BenchModel::dot, likewise
};

// One kind of work at one depth.
struct BenchRow {
  bool decode = false;
  size_t tokens = 0;  // of each conversation
  size_t depth = 0;   // tokens already in the conversations
  size_t batch = 1;   // conversations
  std::vector<double> seconds;
  // Read at least: weights and cache rows for decode, weights for prefill. Of a mixture of experts,
  // each pass is taken to read those that one token uses.
  double bytes = 0;
  // Of the products of all tokens with the weights that they use; not what attention and recurrent
  // layers compute beside the weights.
  double ops = 0;

  std::string Name() const;
  double Seconds() const;    // the median
  double Rate() const;       // tokens per second, of the median
  double Deviation() const;  // of the rates, around their mean
};

// Everything, in the order in which it was measured.
struct BenchResults {
  struct Rows {
    BenchTurn turn;
    std::vector<BenchRow> rows;
  };
  BenchModel model;
  std::vector<Rows> turns;
};

// `format` is md, csv, json or jsonl.
std::string BenchText(const BenchResults& results, const std::string& format);

}  // namespace inlay

#endif  // INLAY_TOOLS_BENCH_RESULTS_H_

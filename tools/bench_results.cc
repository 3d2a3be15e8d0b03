#include "tools/bench_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/strings.h"
#include "io/gguf/tensor_form.h"
#include "ops/cpu/cpu_target.h"
#include "ops/quant/weight_type.h"
#include "tools/json_text.h"

namespace inlay {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kOutput = "output.weight";

std::string Megabytes(std::optional<uint64_t> bytes) {
  return bytes.has_value() ? Format("%.1f", static_cast<double>(*bytes) / 1e6) : "unknown";
}

// A row with the figures that follow from it.
struct Figures {
  Figures(const BenchRow& row, const BenchTurn& turn)
      : bytes(row.bytes / row.Seconds()),
        read_share(100 * bytes / turn.read_limit),
        ops(row.ops / row.Seconds()),
        peak_share(100 * ops / turn.ops_limit) {}

  double bytes, read_share, ops, peak_share;
};

Json RowJson(const BenchModel& model, const BenchTurn& turn, const BenchRow& row) {
  const Figures figures(row, turn);
  Json json = {{"model", model.name},
               {"types", model.types},
               {"file_bytes", model.file_bytes},
               {"parameters", model.parameters},
               {"target", ChosenTarget()},
               {"threads", turn.threads},
               {"test", row.decode ? "tg" : "pp"},
               {"tokens", row.tokens},
               {"depth", row.depth},
               {"batch", row.batch},
               {"tokens_per_second", row.Rate()},
               {"deviation", row.Deviation()},
               {"seconds", row.seconds},
               {"bytes_per_second", figures.bytes},
               {"percent_of_read_bandwidth", figures.read_share},
               {"ops_per_second", figures.ops},
               {"percent_of_peak", figures.peak_share},
               {"peak", DotName(model.dot)},
               {"limit_bytes_per_second", turn.read_limit},
               {"limit_ops_per_second", turn.ops_limit},
               {"load_seconds", turn.load_seconds},
               {"first_token_seconds", turn.first_token_seconds},
               {"peak_memory_bytes", nullptr}};
  if (turn.peak_memory.has_value()) json["peak_memory_bytes"] = *turn.peak_memory;
  return json;
}

std::string Table(const BenchResults& results) {
  const BenchModel& model = results.model;
  std::string text = Format(
      "| model | types | size, MB | parameters, M | threads | test | tokens/s | GB/s (%% of read) "
      "| Gop/s (%% of %s) |\n|---|---|---:|---:|---:|---|---:|---:|---:|\n",
      DotName(model.dot));
  for (const auto& [turn, rows] : results.turns) {
    for (const BenchRow& row : rows) {
      const Figures figures(row, turn);
      AppendFormat(&text,
                   "| %s | %s | %s | %.1f | %d | %s | %.2f ± %.2f | %.1f (%.0f %%) | %.0f "
                   "(%.0f %%) |\n",
                   model.name, model.types, Megabytes(model.file_bytes),
                   static_cast<double>(model.parameters) / 1e6, turn.threads, row.Name(),
                   row.Rate(), row.Deviation(), figures.bytes / 1e9, figures.read_share,
                   figures.ops / 1e9, figures.peak_share);
    }
  }
  AppendFormat(&text,
               "\n| threads | loaded, s | first token, s | peak memory, MB | of the file | "
               "read limit, GB/s | %s limit, Gop/s |\n|---:|---:|---:|---:|---:|---:|---:|\n",
               DotName(model.dot));
  for (const auto& [turn, rows] : results.turns) {
    const std::string share = turn.peak_memory.has_value()
                                  ? Format("%.2f ×", static_cast<double>(*turn.peak_memory) /
                                                         static_cast<double>(model.file_bytes))
                                  : "unknown";
    AppendFormat(&text, "| %d | %.3f | %.3f | %s | %s | %.1f | %.0f |\n", turn.threads,
                 turn.load_seconds, turn.first_token_seconds, Megabytes(turn.peak_memory), share,
                 turn.read_limit / 1e9, turn.ops_limit / 1e9);
  }
  return text;
}

// Every field of the JSON that is not an array, in its order.
std::string CsvLines(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows) {
    std::vector<std::string> keys, values;
    for (const auto& [key, value] : row.items()) {
      if (value.is_array()) continue;
      keys.push_back(key);
      values.push_back(value.dump());
    }
    if (text.empty()) text = absl::StrJoin(keys, ",") + "\n";
    absl::StrAppend(&text, absl::StrJoin(values, ","), "\n");
  }
  return text;
}

// Whether a packed file's tensor is the embedding once more, as the output: such a one follows it
// (gemma_like/files/pack.cc), and models of the config have no output of their own.
bool RepeatsEmbedding(const GgufFile& file, const GgufTensor& tensor, const ConfigEntry& config) {
  if (!tensor.packed || tensor.name != kOutput || &tensor == &file.tensors().front()) return false;
  const GgufTensor& before = *(&tensor - 1);
  if (before.name != "token_embd.weight" || before.type != tensor.type ||
      before.dims != tensor.dims) {
    return false;
  }
  const std::vector<SynthTensor> usual = config.synth().tensors;
  return std::none_of(usual.begin(), usual.end(),
                      [](const SynthTensor& own) { return own.name == kOutput; });
}

}  // namespace

BenchModel::BenchModel(const GgufFile& file, const ConfigEntry& config)
    : name(config.name), file_bytes(file.file_size()) {
  std::map<WeightType, uint64_t> bytes;
  uint64_t all = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.name == kPackedTokenizerTensor) continue;  // no weights
    if (!RepeatsEmbedding(file, tensor, config)) parameters += tensor.num_elements();
    bytes[tensor.type] += tensor.data.size();
    all += tensor.data.size();
  }
  std::vector<std::pair<uint64_t, WeightType>> largest;
  for (const auto& [type, size] : bytes) largest.emplace_back(size, type);
  std::sort(largest.rbegin(), largest.rend());
  if (!largest.empty()) dot = DotOf(largest.front().second);
  for (const auto& [size, type] : largest) {
    if (size < all / 20) break;
    absl::StrAppend(&types, types.empty() ? "" : " + ", ToAbsl(GetWeightTypeInfo(type).name));
  }
}

std::string BenchRow::Name() const {
  return absl::StrCat(decode ? "tg" : "pp", tokens, batch > 1 ? absl::StrCat(" x ", batch) : "",
                      depth > 0 ? absl::StrCat(" @ d", depth) : "");
}

double BenchRow::Seconds() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double BenchRow::Rate() const { return static_cast<double>(tokens * batch) / Seconds(); }

double BenchRow::Deviation() const {
  if (seconds.size() < 2) return 0;
  const double all = static_cast<double>(tokens * batch);
  double sum = 0, squares = 0;
  for (double s : seconds) sum += all / s;
  const double mean = sum / static_cast<double>(seconds.size());
  for (double s : seconds) squares += (all / s - mean) * (all / s - mean);
  return std::sqrt(squares / static_cast<double>(seconds.size() - 1));
}

std::string BenchText(const BenchResults& results, const std::string& format) {
  if (format == "md") return Table(results);
  std::vector<Json> rows;
  for (const auto& [turn, of_turn] : results.turns) {
    for (const BenchRow& row : of_turn) rows.push_back(RowJson(results.model, turn, row));
  }
  if (format == "csv") return CsvLines(rows);
  if (format == "json") return JsonText(Json(rows));
  std::string text;
  for (const Json& row : rows) absl::StrAppend(&text, JsonText(row, -1));
  return text;
}

}  // namespace inlay

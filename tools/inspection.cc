#include "tools/inspection.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/printable.h"
#include "cache/kv_blocks.h"
#include "gemma_like/strings.h"
#include "io/gguf/model_license.h"
#include "ops/quant/weight_type.h"
#include "tools/format.h"

namespace inlay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kUnknownContext = 4096;  // tokens; where a file does not say its own length

Json NumberJson(const GgufValue& value, size_t i) {
  if (const auto x = value.IntAt(i)) return *x;
  if (const auto x = value.UintAt(i)) return *x;
  if (const auto x = value.FloatAt(i)) return *x;
  if (const auto x = value.BoolAt(i)) return *x;
  return nullptr;
}

void WriteValue(const GgufValue& value, JsonWriter& json) {
  if (value.is_array()) json.BeginArray();
  if (value.element_type() == GgufType::kString) {
    for (const absl::string_view text : value.strings()) json.Value(std::string(text));
  } else {
    for (size_t i = 0; i < value.size(); ++i) json.Value(NumberJson(value, i));
  }
  if (value.is_array()) json.End();
}

// Bytes that a token adds to a long conversation.
size_t BytesPerToken(const CacheBytes& cache) { return cache.per_block / kKvBlockRows; }

}  // namespace

MemoryPlan MakePlan(const ModelFlags& flags, const GgufFile& file, const ConfigEntry& entry) {
  const auto trained = file.GetUint(absl::StrCat(entry.architecture, ".context_length"));
  return {.model = entry.memory(file, {}),
          .description = entry.describe(CacheType(flags)),
          .cache_type = flags.cache_type,
          .context =
              ContextSize(flags, trained.ok() ? static_cast<size_t>(*trained) : kUnknownContext)};
}

void WriteFile(const GgufFile& file, JsonWriter& json) {
  const auto member = [&](absl::string_view key, const Json& value) {
    json.Key(key);
    json.Value(value);
  };
  member("file", file.name());
  member("files", file.num_files());
  member("file_bytes", file.file_size());
  member("version", file.version());
  const ModelLicense license = LicenseOf(file);
  const auto stated = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  member(
      "license",
      {{"id", stated(license.id)}, {"name", stated(license.name)}, {"link", stated(license.link)}});
  json.Key("metadata");
  json.BeginObject();
  for (const GgufEntry& entry : file.metadata()) {
    json.Key(entry.key());
    WriteValue(entry.value, json);
  }
  json.End();
  json.Key("tensors");
  json.BeginArray();
  for (const GgufTensor& tensor : file.tensors()) {
    Json description = {
        {"name", std::string(tensor.name)},
        {"shape", std::vector<uint64_t>(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims)},
        {"type", std::string(GetWeightTypeInfo(tensor.type).name)},
        {"bytes", tensor.data.size()}};
    if (tensor.packed) description["packed"] = true;
    json.Value(description);
  }
  json.End();
}

void WriteFile(const GgufFile& file, Output& out) {
  const std::string size = file.num_files() == 1 ? ByteCount(file.file_size())
                                                 : absl::StrCat(ByteCount(file.file_size()), " in ",
                                                                Plural(file.num_files(), "file"));
  out.Write(Format("%s: GGUF version %d, %s\nlicense: %s\n\nmetadata (%s)\n",
                   PrintableName(file.name()), file.version(), size, LicenseOf(file).ToString(),
                   Plural(file.metadata().size(), "key")));
  for (const GgufEntry& entry : file.metadata()) {
    out.Write(Format("  %-44s %-16s %s\n", PrintableName(entry.key()), entry.value.TypeName(),
                     entry.value.ToString()));
  }
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) bytes += tensor.data.size();
  out.Write(Format("\ntensors (%d, %s)\n", file.tensors().size(), ByteCount(bytes)));
  for (const GgufTensor& tensor : file.tensors()) {
    out.Write(Format(
        "  %-44s %-16s %-13s %12d bytes\n", PrintableName(tensor.name), tensor.ShapeString(),
        absl::StrCat(ToAbsl(GetWeightTypeInfo(tensor.type).name), tensor.packed ? " packed" : ""),
        tensor.data.size()));
  }
}

Json IgnoredJson(const Ignored& ignored) {
  Json tensors = Json::array();
  for (const IgnoredTensors& group : ignored.tensors) {
    tensors.push_back(
        {{"what", std::string(group.what)},
         {"prefixes", std::vector<std::string>(group.prefixes.begin(), group.prefixes.end())},
         {"count", group.count},
         {"bytes", group.bytes}});
  }
  return {{"tensors", tensors}, {"keys", ignored.keys}};
}

std::string IgnoredText(const Ignored& ignored) {
  if (ignored.empty()) return "";
  std::string text = "\nignored\n";
  for (const IgnoredTensors& group : ignored.tensors) {
    const Ignored one{.tensors = {group}, .keys = {}};
    AppendFormat(&text, "  %-44s %12d bytes  %s\n", one.ToString(), group.bytes,
                 ByteCount(group.bytes));
  }
  for (const std::string& key : ignored.keys) absl::StrAppend(&text, "  the key ", key, "\n");
  return text;
}

std::string NotesText(const std::vector<std::string>& notes) {
  std::string text = notes.empty() ? "" : "\nnotes\n";
  for (const std::string& note : notes) absl::StrAppend(&text, "  ", note, "\n");
  return text;
}

Json ConfigJson(const ConfigEntry& entry, const MemoryPlan& plan) {
  Json layers = Json::array();
  for (const LayerDescription& layer : plan.description.layers) {
    layers.push_back({{"mixer", layer.mixer},
                      {"mlp", layer.mlp},
                      {"bytes_per_token", BytesPerToken(layer.cache)},
                      {"bytes_constant", layer.cache.constant}});
  }
  return {{"name", std::string(entry.name)},
          {"architecture", std::string(entry.architecture)},
          {"layers", layers}};
}

Json SamplingJson(const SamplingDefaults& sampling) {
  // 0.95 and not the digits of the double that the float is.
  const auto shown = [](float x) {
    double number = 0;
    const bool parsed = absl::SimpleAtod(absl::StrCat(x), &number);
    return parsed ? number : x;
  };
  return {{"temperature", shown(sampling.temperature)},
          {"top_k", sampling.top_k},
          {"top_p", shown(sampling.top_p)},
          {"min_p", shown(sampling.min_p)},
          {"repeat_penalty", shown(sampling.repeat_penalty)},
          {"repeat_last_n", sampling.repeat_last_n}};
}

std::string SamplingText(const SamplingDefaults& sampling) {
  return absl::StrCat("\nsampling where nothing else is asked for\n  --temp ", sampling.temperature,
                      " --top-k ", sampling.top_k, " --top-p ", sampling.top_p, " --min-p ",
                      sampling.min_p, " --repeat-penalty ", sampling.repeat_penalty,
                      " --repeat-last-n ", sampling.repeat_last_n, "\n");
}

Json MemoryJson(const MemoryPlan& plan) {
  const CacheBytes& cache = plan.description.cache;
  return {{"bytes_of_weights", plan.model.weights},
          {"bytes_of_scratch", plan.model.scratch},
          {"cache_type", plan.cache_type},
          {"context", plan.context},
          {"bytes_per_token", BytesPerToken(cache)},
          {"bytes_constant", cache.constant},
          {"bytes_per_conversation", cache.At(plan.context)},
          {"bytes_per_open_append", cache.append},
          {"bytes_per_snapshot", cache.snapshot},
          {"bytes_per_kept_snapshot", cache.Kept()},
          {"bytes_per_trimmed_snapshot", cache.trimmed}};
}

std::string ConfigText(const ConfigEntry& entry, const MemoryPlan& plan) {
  std::string text =
      Format("\nconfig %s (%s)\n", entry.name, Plural(plan.description.layers.size(), "layer"));
  int index = 0;
  for (const LayerDescription& layer : plan.description.layers)
    AppendFormat(&text, "  %2d  %-56s %s\n", index++, layer.mixer, layer.mlp);
  const CacheBytes& cache = plan.description.cache;
  const auto line = [&](absl::string_view what, size_t bytes) {
    AppendFormat(&text, "  %-44s %12d bytes  %s\n", what, bytes, ByteCount(bytes));
  };
  absl::StrAppend(&text, "\nmemory of the model\n");
  line("weights", plan.model.weights);
  line("scratch", plan.model.scratch);
  absl::StrAppend(&text, "\nmemory of a conversation (rows as ", plan.cache_type, ")\n");
  line("per token", BytesPerToken(cache));
  line("constant, at most", cache.constant);
  line(absl::StrCat("whole, of ", Plural(plan.context, "token"), ", at most"),
       cache.At(plan.context));
  line("more during an append, at most", cache.append);
  line("copied by the first append after a fork", cache.snapshot);
  line("a snapshot's own, long after, at most", cache.Kept());
  line("of one that is trimmed, at most", cache.trimmed);
  return text;
}

}  // namespace inlay

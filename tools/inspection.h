// What a model file holds, as JSON and as text.
#ifndef INLAY_TOOLS_INSPECTION_H_
#define INLAY_TOOLS_INSPECTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "configs/text_defaults.h"
#include "gemma_like/model/description.h"
#include "gemma_like/model/ignored.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "nlohmann/json.hpp"
#include "tools/flags/model_flags.h"
#include "tools/json_writer.h"
#include "tools/output.h"

namespace inlay {

// The memory plan of a model and of conversations with it.
struct MemoryPlan {
  ModelMemory model;
  ConfigDescription description;
  std::string cache_type;  // "f32"
  size_t context = 0;      // tokens
};

// The plan for conversations as the flags have them: as long as ContextSize says, of the file's
// context_length or else of 4096 tokens. The file has the entry's architecture.
MemoryPlan MakePlan(const ModelFlags& flags, const GgufFile& file, const ConfigEntry& entry);

// Written one by one, since metadata can be large: the members of an object that the caller has
// begun, "file", "file_bytes", "version", "metadata": {key: value}, "tensors": [{"name", "shape",
// "type", "bytes"}]; shapes have the fastest dimension first, as in the file.
void WriteFile(const GgufFile& file, JsonWriter& json);
void WriteFile(const GgufFile& file, Output& out);

// {"tensors": [{"what", "prefixes", "count", "bytes"}], "keys": [text]}
nlohmann::ordered_json IgnoredJson(const Ignored& ignored);
// "" when nothing is.
std::string IgnoredText(const Ignored& ignored);
// Those of MetadataFit; "" when there are none.
std::string NotesText(const std::vector<std::string>& notes);

// How answers are sampled unless flags or requests say something else.
nlohmann::ordered_json SamplingJson(const SamplingDefaults& sampling);
std::string SamplingText(const SamplingDefaults& sampling);

// {"name", "architecture", "layers": [{"mixer", "mlp"}]}
nlohmann::ordered_json ConfigJson(const ConfigEntry& entry, const MemoryPlan& plan);
nlohmann::ordered_json MemoryJson(const MemoryPlan& plan);
// The config and its memory.
std::string ConfigText(const ConfigEntry& entry, const MemoryPlan& plan);

}  // namespace inlay

#endif  // INLAY_TOOLS_INSPECTION_H_

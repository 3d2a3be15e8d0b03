// The sampling settings that a model file recommends: general.sampling.*, which llama.cpp's
// converter writes from a checkpoint's generation_config.json.
#ifndef INLAY_GEMMA_LIKE_MODEL_FILE_SAMPLING_H_
#define INLAY_GEMMA_LIKE_MODEL_FILE_SAMPLING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "configs/text_defaults.h"

namespace inlay {

class GgufFile;

// What the keys of these settings begin with.
inline constexpr absl::string_view kFileSamplingPrefix = "general.sampling.";

struct FileSampling {
  SamplingDefaults defaults;  // those of the config where the file has none that can be used
  // The keys that were left out, each with its value or with what is wrong with it: settings of
  // samplers that Inlay does not have, unless they are off, and values out of their bounds.
  std::vector<std::string> ignored_keys;
};

FileSampling ReadFileSampling(const GgufFile& file, const SamplingDefaults& config);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_FILE_SAMPLING_H_

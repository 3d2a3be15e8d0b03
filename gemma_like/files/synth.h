// Model files with random weights in a config's real shape, for tests, benchmarks and comparisons.
#ifndef INLAY_GEMMA_LIKE_FILES_SYNTH_H_
#define INLAY_GEMMA_LIKE_FILES_SYNTH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/progress.h"
#include "configs/text_defaults.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/model/tensor_use.h"
#include "io/file/file_kind.h"
#include "io/gguf/gguf_writer.h"

namespace inlay {

struct SynthTensor {
  std::string name;
  std::vector<uint64_t> dims;  // fastest first
  TensorUse use = TensorUse::kMatrix;
  double scale = 1;                // the values are multiplied by it
  std::vector<float> values = {};  // what the config fixes; empty: they are random
};

// A file's metadata and tensors, before there are any values.
struct SynthModel {
  std::unique_ptr<GgufWriter> metadata = std::make_unique<GgufWriter>();
  std::vector<SynthTensor> tensors;
  size_t layers = 0;
  ChatTemplate chat_template = ChatTemplate::kNone;  // of the config
};

// What each token carries from layer to layer, and what every branch of a layer adds to.
struct ResidualStream {
  int model_dim = 0;
  double embedding_scale = 1;  // embeddings are multiplied by it
  double branch_scale = 1;     // and branches, if all by the same number
  int layers = 1;
};

// Sets the tensors' scales so that rounding errors stay small through many layers.
//
// If every branch added as much as the stream holds, each layer would amplify the rounding errors
// of the layers below, and after thirty layers two correct engines that round activations to 8 bits
// would differ by several 1e-3 of the logits. Hence all branches together add twice the variance of
// the embedding: each is scaled by one over the square root of their number, as in Radford et al.
// 2019 (GPT-2), section 2.3.
//
// Embeddings are half as large as other rows: they are most often the output matrix too, and in a
// stream that keeps much of the embedding the last token would be the most likely next one. Routers
// are four times as large: an expert chosen only by rounding errors then has little weight. Norms
// of keys whose products with queries are not divided by the root of a head's length are divided by
// it: otherwise the products' deviation would be 16 for heads of 256, attention would choose single
// tokens, and enlarge what was rounded before it.
void ScaleForStability(const ResidualStream& stream, std::vector<SynthTensor>& tensors);

// Describes the tensors of the file that WriteSynth writes, and that it has no vocabulary where the
// metadata names none.
absl::Status DescribeFile(const SynthModel& model, const Quantization& quantization,
                          GgufWriter& writer);

// Writes the file: matrices as `quantization` says, everything that is not a matrix as F32. The
// same seed gives the same values. Replaces an older file of that name only when all is written
// and `replace` allows it; see CheckReplace. `progress` counts bytes that are written.
absl::Status WriteSynth(SynthModel model, const Quantization& quantization, uint64_t seed,
                        const std::string& path, Replace replace = Replace::kSameKind,
                        const Progress& progress = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_SYNTH_H_

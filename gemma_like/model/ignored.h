// What a file holds that its text model is run without: tensors of other models, keys that are
// known to be wrong, and recommended sampling settings that Inlay does not have or that are out of
// bounds.
#ifndef INLAY_GEMMA_LIKE_MODEL_IGNORED_H_
#define INLAY_GEMMA_LIKE_MODEL_IGNORED_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

class GgufFile;

// The tensors of one such model.
struct IgnoredTensors {
  absl::string_view what;             // "vision"
  std::vector<std::string> prefixes;  // of their names, those that occur: "v.", "mm."
  size_t count = 0;
  uint64_t bytes = 0;  // in the file
};

struct Ignored {
  std::vector<IgnoredTensors> tensors;
  // With their values, or what is wrong with them: "gemma3.final_logit_softcapping (30)".
  std::vector<std::string> keys;

  bool empty() const { return tensors.empty() && keys.empty(); }
  // "439 tensors of vision (v., mm.) and the key gemma3.final_logit_softcapping (30)"; "" when
  // empty.
  std::string ToString() const;
};

// How many blocks at the end of the file's block_count are not the model's but draft tokens for it
// (multi-token prediction): the value of nextn_predict_layers.
int64_t DraftBlocks(const GgufFile& file);

// The tensors of a file that belong to vision, audio or multi-token prediction, which are in the
// same file as the text model where one program runs all of them.
class IgnoredNames {
 public:
  explicit IgnoredNames(const GgufFile& file);

  // Whether a tensor of this name is one of them.
  bool Has(absl::string_view tensor_name) const { return Find(tensor_name) != nullptr; }

 private:
  friend std::vector<IgnoredTensors> FindIgnoredTensors(const GgufFile& file);

  struct Prefix {
    std::string prefix;
    absl::string_view what;
  };
  const Prefix* Find(absl::string_view tensor_name) const;

  // The longer prefix first where one begins with another.
  std::vector<Prefix> prefixes_;
};

// Those tensors.
std::vector<IgnoredTensors> FindIgnoredTensors(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_IGNORED_H_

#include "gemma_like/model/companion_file.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "gemma_like/model/ignored.h"
#include "io/gguf/gguf.h"

namespace inlay {
namespace {

// The text of a key; "" if the file lacks it.
absl::string_view TextOf(const GgufFile& file, absl::string_view key) {
  return file.GetString(key).value_or("");
}

// Whether all layers in the file are those at its end that draft.
bool HasOnlyDrafts(const GgufFile& file) {
  if (DraftBlocks(file) == 0) return false;
  const IgnoredNames ignored(file);
  bool drafts = false, own = false;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!absl::StartsWith(tensor.name, "blk.")) continue;
    (ignored.Has(tensor.name) ? drafts : own) = true;
  }
  return drafts && !own;
}

}  // namespace

std::string DescribeCompanion(const GgufFile& file) {
  const absl::string_view type = TextOf(file, "general.type");
  const absl::string_view architecture = TextOf(file, "general.architecture");
  if (type == "adapter" || file.Find("adapter.type") != nullptr) {
    const absl::string_view kind = TextOf(file, "adapter.type");
    return absl::StrCat(kind.empty() ? "is an adapter"
                        : kind == "lora"
                            ? "is a LoRA adapter"
                            : absl::StrCat("is an adapter of type ", QuoteForMessage(kind)),
                        ", which is merged into its model first: llama.cpp's llama-export-lora "
                        "writes the merged file");
  }
  if (type == "imatrix" || file.Find("imatrix.chunk_count") != nullptr) {
    return "is an importance matrix, which guides the quantization of a model and is none";
  }
  if (architecture == "controlvector") {
    return "is a control vector, which is added to a model's activations and is no model; it is "
           "not supported";
  }
  if (architecture == "clip") {
    return "has architecture 'clip': it is the vision or audio part of a model, not the text model";
  }
  if (type == "mmproj") {
    return "has the type 'mmproj': it is the vision or audio part of a model, not the text model";
  }
  if (architecture == "gemma4-assistant") {
    return "has architecture 'gemma4-assistant': it drafts for a Gemma 4 model and is none by "
           "itself";
  }
  if (HasOnlyDrafts(file)) {
    return "has only the layers that draft for a model (multi-token prediction), not those of the "
           "model";
  }
  return "";
}

}  // namespace inlay

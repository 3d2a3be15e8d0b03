// Any bytes as a GGUF file: refused with a sentence, or every view into it can be read.
#include <string>

#include "base/printable.h"
#include "gemma_like/files/weights_hash.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay {
namespace {

uint64_t ReadEverything(const GgufFile& file) {
  uint64_t sum = WeightsHashOf(file);
  for (const GgufEntry& entry : file.metadata()) {
    INLAY_FUZZ_CHECK(file.Find(entry.key()) == &entry.value);
    for (const auto& wrong :
         {file.GetUint(entry.key()).status(), file.GetInt(entry.key()).status(),
          file.GetFloat(entry.key()).status(), file.GetBool(entry.key()).status(),
          file.GetInts(entry.key()).status(), file.GetFloats(entry.key()).status()}) {
      INLAY_FUZZ_CHECK(wrong.ok() || !wrong.message().empty());
    }
    if (const auto text = file.GetString(entry.key()); text.ok()) {
      sum += QuoteForMessage(*text).size();
    }
    if (const auto texts = file.GetStrings(entry.key()); texts.ok()) {
      for (const absl::string_view text : *texts) sum += text.empty() ? 0 : text.back();
    }
  }
  for (const GgufTensor& tensor : file.tensors()) {
    INLAY_FUZZ_CHECK(file.FindTensor(tensor.name) == &tensor);
    INLAY_FUZZ_CHECK(!tensor.data.empty() && tensor.num_elements() > 0);
    for (const uint8_t byte : tensor.data) sum += byte;
  }
  return sum;
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  const AlignedCopy copy(data, size);
  const auto file = GgufFile::Parse(copy.bytes(), "input");
  if (!file.ok()) {
    INLAY_FUZZ_CHECK(!file.status().message().empty());
    return 0;
  }
  INLAY_FUZZ_CHECK(ReadEverything(*file) == ReadEverything(*file));
  FindConfig(*file).IgnoreError();
  if (const auto tokenizer = LoadTokenizer(*file); tokenizer.ok()) {
    (*tokenizer)->Decode((*tokenizer)->Encode("a b").value_or(std::vector<int32_t>()));
  }
  return 0;
}

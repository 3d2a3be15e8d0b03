#include "io/tokenizer/tokenizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"

namespace inlay {

bool Tokenizer::IsEndOfGeneration(int32_t id) const {
  return std::binary_search(ends().begin(), ends().end(), id);
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text,
                                                       const EncodeOptions& options) const {
  if (text.size() > kLongestText) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text is ", text.size(), " bytes long, more than ", kLongestText));
  }
  return OrOutOfMemory("the tokens of this text", [&]() -> absl::StatusOr<std::vector<int32_t>> {
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<TokenStream> stream, StartEncoding(options));
    std::vector<int32_t> ids;
    INLAY_RETURN_IF_ERROR(stream->Push(text, &ids));
    INLAY_RETURN_IF_ERROR(stream->Finish(&ids));
    return ids;
  });
}

}  // namespace inlay

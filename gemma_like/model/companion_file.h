// Recognises GGUF files that hubs have beside a text model and that are none by themselves.
#ifndef INLAY_GEMMA_LIKE_MODEL_COMPANION_FILE_H_
#define INLAY_GEMMA_LIKE_MODEL_COMPANION_FILE_H_

#include <string>

namespace inlay {

class GgufFile;

// The rest of a sentence that begins with the file's name: "is a LoRA adapter, ...", with what to
// do about it. "" for all other files.
std::string DescribeCompanion(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_COMPANION_FILE_H_

// Metadata alone, as a file that configs are held against.
#ifndef INLAY_TESTS_GEMMA_LIKE_MODEL_METADATA_FILE_H_
#define INLAY_TESTS_GEMMA_LIKE_MODEL_METADATA_FILE_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/temp_folder.h"

namespace inlay {

inline std::string WriteFile(GgufWriter& writer) {
  const std::string path = TempPath("metadata_test.gguf");
  EXPECT_TRUE(writer.Open(path).ok());
  EXPECT_TRUE(writer.Finish().ok());
  return path;
}

inline absl::StatusOr<const ConfigEntry*> FindFor(GgufWriter& writer) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(WriteFile(writer));
  if (!file.ok()) return file.status();
  return FindConfig(*file);
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_MODEL_METADATA_FILE_H_

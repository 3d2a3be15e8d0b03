// Readers of tests/golden/vocab: texts with the ids that they must give.
#ifndef INLAY_TESTS_IO_VOCAB_DATA_H_
#define INLAY_TESTS_IO_VOCAB_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

namespace inlay {

struct TextWithIds {
  std::string text;
  std::vector<int32_t> ids;
};

// The whole file; a test failure and "" when it cannot be read.
std::string ReadFileOrFail(const std::string& path);

// The 3,000 texts of texts.bin with the ids of texts-NAME.u16.
std::vector<TextWithIds> ReadTexts(const std::string& name);

// NAME.inp with NAME.out.
std::vector<TextWithIds> ReadInpOut(const std::string& name);

}  // namespace inlay

#endif  // INLAY_TESTS_IO_VOCAB_DATA_H_

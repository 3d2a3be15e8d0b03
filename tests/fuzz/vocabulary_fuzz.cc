// Any vocabulary and any text: encoded, decoded, and the same text again.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/utf8_stream.h"
#include "io/tokenizer/nfc.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay {
namespace {

// Either a whole one that the input adds to, where every byte has a token, or none but the input's.
TestVocabulary MakeVocabulary(FuzzInput& input, bool* whole) {
  static const char* const kPre[] = {"gpt-2", "dbrx", "refact", "default", "olmo", "x"};
  const uint8_t shape = input.Byte();
  const bool spm = (shape & 1) != 0;
  *whole = (shape & 2) != 0;
  TestVocabulary vocabulary;
  if (*whole) {
    vocabulary = spm ? SpmBase() : BpeBase(kPre[input.UpTo(5)]);
  } else {
    vocabulary.model = spm ? "llama" : "gpt2";
    if ((shape & 4) != 0) vocabulary.scores.emplace();
    if ((shape & 8) != 0) vocabulary.merges.emplace();
    if ((shape & 16) != 0) vocabulary.pre = kPre[input.UpTo(5)];
    for (const char* id : {"bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id"}) {
      if (input.Byte() % 2 == 1) vocabulary.ids.emplace_back(id, input.Byte());
    }
  }
  if ((shape & 32) != 0) vocabulary.flags.emplace_back("add_space_prefix", (shape & 64) != 0);
  vocabulary.flags.emplace_back("add_bos_token", (shape & 128) != 0);
  for (size_t count = input.UpTo(40); count > 0; --count) {
    // User-defined tokens (4) are cut out of a text before anything else.
    const int32_t type = *whole ? (input.Byte() % 3 == 0 ? 4 : 1) : input.Byte() % 8;
    const float score = static_cast<float>(input.Byte()) - 128;
    const std::string text = input.Text(12);
    const bool raw = spm || type == 4 || !*whole;
    vocabulary.Add(raw ? text : ByteLevel(text), type, score);
  }
  if (vocabulary.merges.has_value()) {
    for (size_t count = input.UpTo(40); count > 0; --count) {
      const std::string left = input.Text(4), right = input.Text(4);
      vocabulary.merges->push_back(ByteLevel(left) + " " + ByteLevel(right));
    }
  }
  return vocabulary;
}

std::string WithoutSpaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

// Through a stream that looks for tokens after each few bytes.
std::vector<int32_t> EncodeInPieces(const Tokenizer& tokenizer, absl::string_view text,
                                    bool parse_special) {
  const auto stream =
      tokenizer.StartEncoding({.add_bos = false, .parse_special = parse_special}, /*piece=*/5);
  INLAY_FUZZ_CHECK(stream.ok());
  std::vector<int32_t> ids;
  while (!text.empty()) {
    const size_t n = std::min<size_t>(text.size(), 3);
    INLAY_FUZZ_CHECK((*stream)->Push(text.substr(0, n), &ids).ok());
    text.remove_prefix(n);
  }
  INLAY_FUZZ_CHECK((*stream)->Finish(&ids).ok());
  return ids;
}

std::string NfcOf(absl::string_view text) {
  NfcStream stream;
  std::string out;
  stream.Push(text, &out);
  stream.Finish(&out);
  return out;
}

// `whole`: every byte has a token. `normalizes`: texts become others that mean the same.
void Use(const Tokenizer& tokenizer, const std::string& text, bool whole, bool normalizes) {
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.Encode(text, {.add_bos = false, .parse_special = parse_special});
    INLAY_FUZZ_CHECK(ids.ok());
    INLAY_FUZZ_CHECK(EncodeInPieces(tokenizer, text, parse_special) == *ids);
    std::string pieces, characters;
    Utf8Stream stream;
    for (const int32_t id : *ids) {
      INLAY_FUZZ_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.size());
      INLAY_FUZZ_CHECK(parse_special || !tokenizer.IsControl(id) || tokenizer.unk() == id);
      const absl::string_view piece = tokenizer.Piece(id);
      pieces.append(piece.data(), piece.size());
      characters += stream.Push(piece);
    }
    characters += stream.Flush();
    const std::string decoded = tokenizer.Decode(*ids);
    // A part's first space may be the vocabulary's own.
    INLAY_FUZZ_CHECK(WithoutSpaces(pieces) == WithoutSpaces(decoded));
    if (whole && !parse_special) {
      INLAY_FUZZ_CHECK(normalizes ? NfcOf(decoded) == NfcOf(text) : decoded == text);
    }
    INLAY_FUZZ_CHECK(characters.size() <= 3 * pieces.size());
  }
  tokenizer.FindSpecial(text);
  const std::vector<int32_t> strange = {-1, INT32_MIN, INT32_MAX,
                                        static_cast<int32_t>(tokenizer.size())};
  INLAY_FUZZ_CHECK(tokenizer.Decode(strange).empty());
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  bool whole = false;
  const TestVocabulary vocabulary = MakeVocabulary(input, &whole);
  const auto tokenizer = vocabulary.Load();
  if (!tokenizer.ok()) {
    INLAY_FUZZ_CHECK(!tokenizer.status().message().empty());
    return 0;
  }
  Use(**tokenizer, input.Rest(), whole, vocabulary.pre == "olmo");
  return 0;
}

#include "io/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/tokenizer/merges.h"

namespace inlay {
namespace {

constexpr absl::string_view kPreKey = "tokenizer.ggml.pre";

// Printable Latin-1 characters stand for the byte of the same value.
bool StandsForItself(char32_t c) {
  return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD);
}

// The bytes that the characters from U+0100 on stand for: those that do not stand for themselves,
// in order.
std::vector<uint8_t> OtherBytes() {
  std::vector<uint8_t> bytes;
  for (char32_t c = 0; c < 0x100; ++c) {
    if (!StandsForItself(c)) bytes.push_back(static_cast<uint8_t>(c));
  }
  return bytes;
}

// The bytes that the text of a token or of one side of a merge stands for. Characters that stand
// for no byte are kept.
std::string ToBytes(absl::string_view text) {
  static const std::vector<uint8_t> other = OtherBytes();
  std::string out;
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (c.valid && StandsForItself(c.value)) {
      out.push_back(static_cast<char>(c.value));
    } else if (c.valid && c.value >= 0x100 && c.value < 0x100 + other.size()) {
      out.push_back(static_cast<char>(other[c.value - 0x100]));
    } else {
      out.append(text.data(), c.length);
    }
    text.remove_prefix(c.length);
  }
  return out;
}

size_t JoinIndex(char before, char after) {
  return static_cast<uint8_t>(before) * size_t{256} + static_cast<uint8_t>(after);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> BpeTokenizer::Load(const GgufFile& file) {
  absl::string_view pre_name = "default";  // what a missing key means
  if (file.Find(kPreKey) != nullptr) {
    INLAY_ASSIGN_OR_RETURN(pre_name, file.GetString(kPreKey));
  }
  const PreTokenizerInfo* pre = FindPreTokenizer(pre_name);
  if (pre == nullptr) {
    const auto append = [](std::string* out, const PreTokenizerInfo& info) {
      absl::StrAppend(out, info.name);
    };
    return absl::UnimplementedError(
        absl::StrCat(file.name(), ": key '", kPreKey, "' is ", QuoteForMessage(pre_name),
                     ", which is not one of the pre-tokenizers known here (",
                     absl::StrJoin(PreTokenizers(), ", ", append), ")"));
  }
  INLAY_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Load(file));
  StringPool pieces;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    switch (vocabulary.types[i]) {
      case TokenType::kControl:
      case TokenType::kUnknown:
        pieces.Add("");
        break;
      case TokenType::kUserDefined:
        pieces.Add(vocabulary.texts[i]);  // written as it stands in a text
        break;
      default:
        pieces.Add(ToBytes(vocabulary.texts[i]));
    }
  }
  const bool adds_bos = vocabulary.add_bos.value_or(pre->adds_bos);
  std::unique_ptr<BpeTokenizer> tokenizer(
      new BpeTokenizer(std::move(vocabulary), std::move(pieces), *pre, adds_bos));
  INLAY_RETURN_IF_ERROR(tokenizer->Init(file.name()));
  INLAY_RETURN_IF_ERROR(tokenizer->LoadMerges(file));
  return tokenizer;
}

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, StringPool pieces, const PreTokenizerInfo& pre,
                           bool adds_bos)
    : VocabularyTokenizer(std::move(vocabulary), std::move(pieces), adds_bos,
                          /*space_prefix=*/false),
      pre_(pre.rules),
      whole_words_first_(pre.whole_words_first),
      whole_(size()) {
  tokens_.Reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    const absl::string_view piece = this->pieces()[i];
    if (this->vocabulary().types[i] != TokenType::kNormal || piece.empty()) continue;
    tokens_.Insert(piece, static_cast<int32_t>(i));
  }
}

absl::Status BpeTokenizer::LoadMerges(const GgufFile& file) {
  std::unordered_map<std::string, int32_t> others;  // symbols that are no tokens
  const auto symbol_of = [&](const std::string& text) {
    if (const int32_t* token = tokens_.Find(text)) return *token;
    const int32_t next = static_cast<int32_t>(size() + others.size());
    return others.emplace(text, next).first->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    byte_symbols_[byte] = symbol_of(std::string(1, static_cast<char>(byte)));
  }
  INLAY_RETURN_IF_ERROR(LoadReplacement(file));
  INLAY_ASSIGN_OR_RETURN(const auto merges, file.GetStrings(kMergesKey));
  merges_.Reserve(merges.size());
  size_t i = 0;
  for (const absl::string_view merge : merges) {
    INLAY_ASSIGN_OR_RETURN(const MergeText text, SplitMerge(file, merge, i));
    const std::string left = ToBytes(text.left);
    const std::string right = ToBytes(text.right);
    joins_.set(JoinIndex(left.back(), right.front()));
    const uint64_t key = PairKey(symbol_of(left), symbol_of(right));
    // The first of equal pairs counts.
    merges_.Insert(key, Merge{static_cast<uint32_t>(i++), symbol_of(left + right)});
  }
  return absl::OkStatus();
}

absl::Status BpeTokenizer::LoadReplacement(const GgufFile& file) {
  const auto missing = std::find_if(byte_symbols_.begin(), byte_symbols_.end(),
                                    [this](int32_t symbol) { return !IsToken(symbol); });
  if (missing == byte_symbols_.end()) return absl::OkStatus();
  if (vocabulary().has_unknown()) {
    replacement_.push_back(*vocabulary().unk);
    return absl::OkStatus();
  }
  std::string text;
  AppendUtf8(kReplacementCharacter, &text);
  for (const char c : text) {
    const int32_t id = byte_symbols_[static_cast<uint8_t>(c)];
    if (!IsToken(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.name(), ": the vocabulary has neither a token for byte ",
                       missing - byte_symbols_.begin(), " nor an unknown token"));
    }
    replacement_.push_back(id);
  }
  return absl::OkStatus();
}

size_t BpeTokenizer::EncodeWords(absl::string_view text, bool last,
                                 std::vector<int32_t>* ids) const {
  SymbolMerger merger;
  return SplitWords(pre_, text, last,
                    [&](absl::string_view word) { EncodeWord(word, &merger, ids); });
}

void BpeTokenizer::EncodeWord(absl::string_view word, SymbolMerger* merger,
                              std::vector<int32_t>* ids) const {
  if (word.size() > Vocabulary::kLongestToken) return EncodeLongWord(word, merger, ids);
  const int32_t* const token = tokens_.Find(word);
  if (token != nullptr &&
      (whole_words_first_ || whole_[*token].load(std::memory_order_relaxed) == kYes)) {
    ids->push_back(*token);
    return;
  }
  const size_t before = ids->size();
  MergeBytes(word, merger, ids);
  if (token != nullptr) {
    const bool whole = ids->size() == before + 1 && ids->back() == *token;
    whole_[*token].store(whole ? kYes : kNo, std::memory_order_relaxed);
  }
}

// No token is this long, so no whole-word lookup is needed. No merge reaches across two adjacent
// bytes that no merge joins, so the stretches between such places are merged separately. Texts
// without spaces, in Chinese for instance, are words of any length.
void BpeTokenizer::EncodeLongWord(absl::string_view word, SymbolMerger* merger,
                                  std::vector<int32_t>* ids) const {
  size_t begin = 0;
  for (size_t i = 1; i <= word.size(); ++i) {
    if (i < word.size() && joins_[JoinIndex(word[i - 1], word[i])]) continue;
    MergeBytes(word.substr(begin, i - begin), merger, ids);
    begin = i;
  }
}

void BpeTokenizer::MergeBytes(absl::string_view word, SymbolMerger* merger,
                              std::vector<int32_t>* ids) const {
  merger->Clear(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    merger->Append(static_cast<uint32_t>(i), 1, byte_symbols_[static_cast<uint8_t>(word[i])]);
  }
  merger->Run([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const Merge* const merge = merges_.Find(PairKey(left.id, right.id));
    return merge == nullptr ? std::nullopt : std::optional<Merge>(*merge);
  });
  merger->ForEach([&](const Symbol& symbol) {
    if (IsToken(symbol.id)) {
      ids->push_back(symbol.id);
      return;
    }
    for (const char c : word.substr(symbol.begin, symbol.length)) {
      const int32_t id = byte_symbols_[static_cast<uint8_t>(c)];
      if (IsToken(id)) {
        ids->push_back(id);
      } else {
        ids->insert(ids->end(), replacement_.begin(), replacement_.end());
      }
    }
  });
}

}  // namespace inlay

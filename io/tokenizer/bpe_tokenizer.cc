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
#include "io/tokenizer/ready_arrays.h"

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

// The value of kPreKey, or what stands for it where the file does not say.
absl::StatusOr<absl::string_view> PreTokenizerName(const GgufFile& file) {
  absl::string_view name = kUnnamedPreTokenizer;
  if (file.Find(kPreKey) != nullptr) {
    INLAY_ASSIGN_OR_RETURN(name, file.GetString(kPreKey));
  }
  const GgufValue* const architecture = file.Find("general.architecture");
  if (name != kUnnamedPreTokenizer || architecture == nullptr || architecture->is_array())
    return name;
  return PreTokenizerOfFamily(architecture->StringAt(0).value_or(""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> BpeTokenizer::Load(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const absl::string_view pre_name, PreTokenizerName(file));
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
  Vocabulary vocabulary;
  StringTable pieces;
  Tables tables;
  if (file.packed()) {
    INLAY_RETURN_IF_ERROR(LoadReady(file, vocabulary, pieces, tables));
  } else {
    INLAY_ASSIGN_OR_RETURN(vocabulary, Vocabulary::Load(file));
    pieces = MakePieces(vocabulary);
    INLAY_RETURN_IF_ERROR(ReadMerges(file, vocabulary, pieces, &tables));
  }
  const bool adds_bos = vocabulary.add_bos.value_or(pre->adds_bos);
  std::unique_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(vocabulary), std::move(pieces),
                                                           std::move(tables), *pre, adds_bos));
  INLAY_RETURN_IF_ERROR(tokenizer->Init(file.name()));
  return tokenizer;
}

std::string BpeTokenizer::ReadyArrays() const {
  return WriteArrays(vocabulary(), pieces(), tables_);
}

bool BpeTokenizer::Tables::AreValid(const Vocabulary& vocabulary) const {
  const auto is_token = [&](int32_t id) { return vocabulary.Contains(id); };
  return tokens.IsValid() && byte_symbols.size() == 256 &&
         std::all_of(replacement.begin(), replacement.end(), is_token) &&
         (!replacement.empty() ||
          std::all_of(byte_symbols.begin(), byte_symbols.end(), is_token)) &&
         merges.IsValid() && joins.size() == kJoins / 64;
}

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, StringTable pieces, Tables tables,
                           const PreTokenizerInfo& pre, bool adds_bos)
    : VocabularyTokenizer(std::move(vocabulary), std::move(pieces), adds_bos,
                          /*space_prefix=*/false, pre.to_nfc),
      pre_(pre.rules),
      whole_words_first_(pre.whole_words_first),
      tables_(std::move(tables)),
      whole_(size()) {}

// What each token contributes to a text.
StringTable BpeTokenizer::MakePieces(const Vocabulary& vocabulary) {
  StringTable pieces;
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
  return pieces;
}

absl::Status BpeTokenizer::ReadMerges(const GgufFile& file, const Vocabulary& vocabulary,
                                      const StringTable& pieces, Tables* tables) {
  tables->tokens = TokenIndex(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (vocabulary.types[i] != TokenType::kNormal || pieces[i].empty()) continue;
    tables->tokens.Insert(pieces, static_cast<int32_t>(i));
    if (tables->tokens.IsCrowded()) return CrowdedTable(file.name());
  }
  std::unordered_map<std::string, int32_t> others;  // symbols that are no tokens
  const auto symbol_of = [&](const std::string& text) {
    if (const auto token = tables->tokens.Find(pieces, text)) return *token;
    const int32_t next = static_cast<int32_t>(pieces.size() + others.size());
    return others.emplace(text, next).first->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    tables->byte_symbols.push_back(symbol_of(std::string(1, static_cast<char>(byte))));
  }
  INLAY_RETURN_IF_ERROR(FindReplacement(file, vocabulary, tables));
  INLAY_ASSIGN_OR_RETURN(const GgufStrings merges, GetMerges(file));
  tables->merges = MergeTable(merges.size());
  tables->joins.resize(kJoins / 64);
  uint32_t rank = 0;
  for (const absl::string_view merge : merges) {
    const MergeText text = SplitMerge(merge);
    const std::string left = ToBytes(text.left);
    const std::string right = ToBytes(text.right);
    const size_t join = JoinIndex(left.back(), right.front());
    tables->joins[join / 64] |= uint64_t{1} << join % 64;
    const int32_t left_symbol = symbol_of(left), right_symbol = symbol_of(right);
    tables->merges.Insert(left_symbol, right_symbol, {rank++, symbol_of(left + right)});
    if (tables->merges.IsCrowded()) return CrowdedTable(file.name());
  }
  if (!tables->tokens.IsValid() || !tables->merges.IsValid()) return CrowdedTable(file.name());
  return absl::OkStatus();
}

absl::Status BpeTokenizer::FindReplacement(const GgufFile& file, const Vocabulary& vocabulary,
                                           Tables* tables) {
  const std::vector<int32_t>& bytes = tables->byte_symbols;
  const auto missing = std::find_if(bytes.begin(), bytes.end(),
                                    [&](int32_t symbol) { return !vocabulary.Contains(symbol); });
  if (missing == bytes.end()) return absl::OkStatus();
  if (vocabulary.has_unknown()) {
    tables->replacement.push_back(*vocabulary.unk);
    return absl::OkStatus();
  }
  std::string text;
  AppendUtf8(kReplacementCharacter, &text);
  for (const char c : text) {
    const int32_t id = bytes[static_cast<uint8_t>(c)];
    if (!vocabulary.Contains(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.name(), ": the vocabulary has neither a token for byte ",
                       missing - bytes.begin(), " nor an unknown token"));
    }
    tables->replacement.push_back(id);
  }
  return absl::OkStatus();
}

bool BpeTokenizer::MayJoin(char before, char after) const {
  const size_t join = JoinIndex(before, after);
  return (tables_.joins[join / 64] >> join % 64 & 1) != 0;
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
  const std::optional<int32_t> token = tables_.tokens.Find(pieces(), word);
  if (token.has_value() && (whole_words_first_ || whole_.Has(*token))) {
    ids->push_back(*token);
    return;
  }
  const size_t before = ids->size();
  MergeBytes(word, merger, ids);
  if (token.has_value()) whole_.Note(*token, absl::MakeConstSpan(*ids).subspan(before));
}

// No token is this long, so no whole-word lookup is needed. No merge reaches across two adjacent
// bytes that no merge joins, so the stretches between such places are merged separately. Texts
// without spaces, in Chinese for instance, are words of any length.
void BpeTokenizer::EncodeLongWord(absl::string_view word, SymbolMerger* merger,
                                  std::vector<int32_t>* ids) const {
  size_t begin = 0;
  for (size_t i = 1; i <= word.size(); ++i) {
    if (i < word.size() && MayJoin(word[i - 1], word[i])) continue;
    MergeBytes(word.substr(begin, i - begin), merger, ids);
    begin = i;
  }
}

void BpeTokenizer::MergeBytes(absl::string_view word, SymbolMerger* merger,
                              std::vector<int32_t>* ids) const {
  merger->Clear(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    merger->Append(static_cast<uint32_t>(i), 1,
                   tables_.byte_symbols[static_cast<uint8_t>(word[i])]);
  }
  merger->Run([&](const Symbol& left, const Symbol& right) {
    return tables_.merges.Find(left.id, right.id);
  });
  merger->ForEach([&](const Symbol& symbol) {
    if (IsToken(symbol.id)) {
      ids->push_back(symbol.id);
      return;
    }
    for (const char c : word.substr(symbol.begin, symbol.length)) {
      const int32_t id = tables_.byte_symbols[static_cast<uint8_t>(c)];
      if (IsToken(id)) {
        ids->push_back(id);
      } else {
        ids->insert(ids->end(), tables_.replacement.begin(), tables_.replacement.end());
      }
    }
  });
}

}  // namespace inlay

#include "io/tokenizer/spm_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/tokenizer/ready_arrays.h"

namespace inlay {
namespace {

constexpr absl::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr absl::string_view kSpacePrefixKey = "tokenizer.ggml.add_space_prefix";
constexpr absl::string_view kKindKey = "tokenizer.ggml.model";
constexpr absl::string_view kRulesKey = "tokenizer.ggml.pre";
constexpr absl::string_view kGemma4 = "gemma4";
constexpr absl::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that "<0x41>" stands for.
std::optional<uint8_t> ParseByteToken(absl::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

// Gives the tokens "<0x00>" to "<0xFF>" the type of byte tokens, unless the vocabulary has such.
// tokenizer.json does not tell them from others, and some converters do not either.
void FindByteTokens(Vocabulary* vocabulary) {
  std::vector<TokenType>& types = vocabulary->types;
  if (std::find(types.begin(), types.end(), TokenType::kByte) != types.end()) return;
  for (size_t i = 0; i < vocabulary->size(); ++i) {
    if (types[i] == TokenType::kNormal && ParseByteToken(vocabulary->texts[i]).has_value())
      types[i] = TokenType::kByte;
  }
}

struct Character {
  char32_t value;  // a byte that is not UTF-8 is a character of its own: 0x110000 + byte
  size_t length;
};

// The character that `text`, which is not empty, starts with.
Character FirstChar(absl::string_view text) {
  const uint8_t byte = static_cast<uint8_t>(text[0]);
  if (byte < 0x80) return {byte, 1};
  const CodePoint c = DecodeUtf8(text);
  return c.valid ? Character{c.value, c.length} : Character{char32_t{0x110000} + byte, 1};
}

// Below 2^20. Pairs of ASCII characters do not collide.
size_t HashOfPair(char32_t before, char32_t after) {
  if ((before | after) < 0x80) return before << 7 | after;
  const uint64_t pair = uint64_t{before} << 32 | after;
  return static_cast<size_t>(pair * 0x9E3779B97F4A7C15 >> 44);
}

// Less for a better score and equal for equal ones: the bits of floats of one sign, as integers,
// are ordered by magnitude.
uint32_t RankOf(float score) {
  if (score == 0) score = 0;  // -0 too
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  constexpr uint32_t kSign = uint32_t{1} << 31;
  return (bits & kSign) != 0 ? bits : bits ^ ~kSign;
}

// Of the tokens of `vocabulary`; the file lists a score for each of its own.
absl::StatusOr<std::vector<uint32_t>> ReadRanks(const GgufFile& file,
                                                const Vocabulary& vocabulary) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<float> scores, file.GetFloats(kScoresKey));
  if (scores.size() != vocabulary.listed) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kScoresKey, "' has ",
                                                   scores.size(), " elements, but there are ",
                                                   vocabulary.listed, " tokens"));
  }
  std::vector<uint32_t> ranks(vocabulary.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": the score of token ", i,
                                                     " in '", kScoresKey, "' is ", scores[i],
                                                     ", not a finite number"));
    }
    ranks[i] = RankOf(scores[i]);
  }
  return ranks;
}

// A missing key means what SentencePiece does by default, and the models that were there before the
// key was (Llama, Mistral): a space in front. All models named Gemma were trained without it. A
// space after <start_of_turn> would give them other tokens than they know.
absl::StatusOr<bool> ReadSpacePrefix(const GgufFile& file) {
  if (file.Find(kSpacePrefixKey) != nullptr) return file.GetBool(kSpacePrefixKey);
  const GgufValue* const architecture = file.Find("general.architecture");
  return architecture == nullptr || architecture->is_array() ||
         !absl::StartsWith(architecture->StringAt(0).value_or(""), "gemma");
}

// Writes `text` to `piece` with spaces for U+2581.
void Unescape(absl::string_view text, std::string* piece) {
  piece->clear();
  for (size_t at; (at = text.find(kEscapedSpace)) != absl::string_view::npos;) {
    piece->append(text.data(), at).push_back(' ');
    text.remove_prefix(at + kEscapedSpace.size());
  }
  piece->append(text.data(), text.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> SpmTokenizer::Load(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const Ranking ranking, ReadRanking(file));
  INLAY_ASSIGN_OR_RETURN(const bool space_prefix, ReadSpacePrefix(file));
  Vocabulary vocabulary;
  StringTable pieces;
  Tables tables;
  if (file.packed()) {
    INLAY_RETURN_IF_ERROR(LoadReady(file, vocabulary, pieces, tables, ranking));
  } else {
    INLAY_ASSIGN_OR_RETURN(vocabulary, Vocabulary::Load(file));
    FindByteTokens(&vocabulary);
    if (ranking == Ranking::kScores) {
      INLAY_ASSIGN_OR_RETURN(tables.ranks, ReadRanks(file, vocabulary));
    }
    INLAY_ASSIGN_OR_RETURN(pieces, ReadPieces(file, vocabulary, &tables));
    INLAY_RETURN_IF_ERROR(IndexPieces(file, vocabulary, pieces, &tables));
    if (ranking == Ranking::kMerges) INLAY_RETURN_IF_ERROR(ReadMerges(file, pieces, &tables));
  }
  const bool adds_bos = ranking == Ranking::kMerges || vocabulary.add_bos.value_or(true);
  std::unique_ptr<SpmTokenizer> tokenizer(new SpmTokenizer(
      std::move(vocabulary), std::move(pieces), std::move(tables), adds_bos, space_prefix));
  INLAY_RETURN_IF_ERROR(tokenizer->Init(file.name()));
  return tokenizer;
}

std::string SpmTokenizer::ReadyArrays() const {
  return WriteArrays(vocabulary(), pieces(), tables_);
}

bool SpmTokenizer::Tables::AreValid(const Vocabulary& vocabulary, Ranking ranking) const {
  const bool by_scores = ranking == Ranking::kScores;
  const auto is_byte_token = [&](int32_t id) { return id == -1 || vocabulary.Contains(id); };
  const bool all =
      std::none_of(byte_tokens.begin(), byte_tokens.end(), [](int32_t id) { return id < 0; });
  return ranks.size() == (by_scores ? vocabulary.size() : 0) && (by_scores || merges.IsValid()) &&
         byte_tokens.size() == 256 &&
         std::all_of(byte_tokens.begin(), byte_tokens.end(), is_byte_token) &&
         (all || vocabulary.has_unknown()) && joinable.IsValid() &&
         neighbours.size() == kNeighbours / 64;
}

// What each token contributes to a text; and the tokens of bytes.
absl::StatusOr<StringTable> SpmTokenizer::ReadPieces(const GgufFile& file,
                                                     const Vocabulary& vocabulary, Tables* tables) {
  StringTable pieces;
  pieces.Reserve(vocabulary.size(), vocabulary.texts.bytes());  // no piece is longer than its text
  std::string piece;
  std::vector<int32_t>& byte_tokens = tables->byte_tokens;
  byte_tokens.assign(256, -1);
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const absl::string_view text = vocabulary.texts[i];
    switch (vocabulary.types[i]) {
      case TokenType::kByte: {
        const std::optional<uint8_t> byte = ParseByteToken(text);
        if (!byte.has_value()) {
          return absl::InvalidArgumentError(absl::StrCat(file.name(), ": byte token ", i,
                                                         " is written ", QuoteForMessage(text),
                                                         ", outside '<0x00>' to '<0xFF>'"));
        }
        if (byte_tokens[*byte] < 0) byte_tokens[*byte] = static_cast<int32_t>(i);
        const char c = static_cast<char>(*byte);
        pieces.Add(absl::string_view(&c, 1));
        break;
      }
      case TokenType::kControl:
      case TokenType::kUnknown:
        pieces.Add("");
        break;
      default:
        Unescape(text, &piece);
        pieces.Add(piece);
    }
  }
  const auto missing = std::find(byte_tokens.begin(), byte_tokens.end(), -1);
  if (missing != byte_tokens.end() && !vocabulary.has_unknown()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": the vocabulary has neither a token for byte ",
                     missing - byte_tokens.begin(), " nor an unknown token"));
  }
  return pieces;
}

// The joinable tokens and their neighbouring characters.
absl::Status SpmTokenizer::IndexPieces(const GgufFile& file, const Vocabulary& vocabulary,
                                       const StringTable& pieces, Tables* tables) {
  tables->joinable = TokenIndex(pieces.size());
  tables->neighbours.resize(kNeighbours / 64);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const absl::string_view piece = pieces[i];
    if (vocabulary.types[i] != TokenType::kNormal || piece.empty()) continue;
    tables->joinable.Insert(pieces, static_cast<int32_t>(i));
    if (tables->joinable.IsCrowded()) return CrowdedTable(file.name());
    Character before = FirstChar(piece);
    for (size_t j = before.length; j < piece.size();) {
      const Character after = FirstChar(piece.substr(j));
      const size_t hash = HashOfPair(before.value, after.value);
      tables->neighbours[hash / 64] |= uint64_t{1} << hash % 64;
      before = after;
      j += after.length;
    }
  }
  return tables->joinable.IsValid() ? absl::OkStatus() : CrowdedTable(file.name());
}

absl::StatusOr<SpmTokenizer::Ranking> SpmTokenizer::ReadRanking(const GgufFile& file) {
  for (const absl::string_view key : {kKindKey, kRulesKey}) {
    if (file.Find(key) == nullptr) continue;
    INLAY_ASSIGN_OR_RETURN(const absl::string_view name, file.GetString(key));
    if (name == kGemma4) return Ranking::kMerges;
  }
  return Ranking::kScores;
}

absl::Status SpmTokenizer::ReadMerges(const GgufFile& file, const StringTable& pieces,
                                      Tables* tables) {
  INLAY_ASSIGN_OR_RETURN(const GgufStrings merges, GetMerges(file));
  tables->merges = MergeTable(merges.size());
  uint32_t rank = 0;
  std::string left, right;
  for (const absl::string_view merge : merges) {
    const MergeText text = SplitMerge(merge);
    Unescape(text.left, &left);
    Unescape(text.right, &right);
    const std::optional<int32_t> first = tables->joinable.Find(pieces, left);
    const std::optional<int32_t> second = tables->joinable.Find(pieces, right);
    const std::optional<int32_t> joined = tables->joinable.Find(pieces, left + right);
    if (first.has_value() && second.has_value() && joined.has_value())
      tables->merges.Insert(*first, *second, {rank, *joined});
    if (tables->merges.IsCrowded()) return CrowdedTable(file.name());
    ++rank;
  }
  return tables->merges.IsValid() ? absl::OkStatus() : CrowdedTable(file.name());
}

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary, StringTable pieces, Tables tables, bool adds_bos,
                           bool space_prefix)
    : VocabularyTokenizer(std::move(vocabulary), std::move(pieces), adds_bos, space_prefix,
                          /*to_nfc=*/false),
      tables_(std::move(tables)),
      whole_(size()) {
  for (size_t i = 0; i < size(); ++i) {
    if (this->vocabulary().types[i] == TokenType::kNormal)
      longest_ = std::max(longest_, this->pieces()[i].size());
  }
}

bool SpmTokenizer::CanJoin(char32_t before, char32_t after) const {
  const size_t hash = HashOfPair(before, after);
  return (tables_.neighbours[hash / 64] >> hash % 64 & 1) != 0;
}

std::optional<int32_t> SpmTokenizer::FindJoinable(absl::string_view text) const {
  if (text.size() > longest_) return std::nullopt;
  return tables_.joinable.Find(pieces(), text);
}

// No join reaches across two neighbouring characters that are adjacent in no token, so a text is
// cut into words at such places, which are encoded one by one. In most vocabularies there is one
// before each space, and texts without spaces have some too.
size_t SpmTokenizer::EncodeWords(absl::string_view text, bool last,
                                 std::vector<int32_t>* ids) const {
  if (!last) text.remove_suffix(IncompleteUtf8Tail(text));  // it may be the start of a character
  if (text.empty()) return 0;
  SymbolMerger merger;
  Character before = FirstChar(text);
  size_t begin = 0;
  for (size_t i = before.length; i < text.size();) {
    const Character after = FirstChar(text.substr(i));
    const bool ends_line = RanksPairs() && (before.value == '\n') != (after.value == '\n');
    if (ends_line || !CanJoin(before.value, after.value)) {
      EncodeWord(text.substr(begin, i - begin), &merger, ids);
      begin = i;
    }
    before = after;
    i += after.length;
  }
  if (!last) return begin;
  EncodeWord(text.substr(begin), &merger, ids);
  return text.size();
}

std::optional<Merge> SpmTokenizer::FindMerge(absl::string_view word, const Symbol& left,
                                             const Symbol& right) const {
  if (RanksPairs()) {
    const std::optional<Merge> merge = tables_.merges.Find(left.id, right.id);
    // A damaged file's merge may give no token.
    return merge.has_value() && vocabulary().Contains(merge->id) ? merge : std::nullopt;
  }
  const auto id = FindJoinable(word.substr(left.begin, left.length + right.length));
  if (!id.has_value()) return std::nullopt;
  return Merge{tables_.ranks[*id], *id};
}

void SpmTokenizer::EncodeWord(absl::string_view word, SymbolMerger* merger,
                              std::vector<int32_t>* ids) const {
  const std::optional<int32_t> token = FindJoinable(word);
  const bool by_merges = RanksPairs();
  if (token.has_value() && by_merges && word.find_first_not_of('\n') == absl::string_view::npos) {
    ids->push_back(*token);
    return;
  }
  if (token.has_value() && whole_.Has(*token)) {
    ids->push_back(*token);
    return;
  }
  merger->Clear(word.size());
  for (size_t i = 0; i < word.size();) {
    const size_t length = FirstChar(word.substr(i)).length;
    merger->Append(static_cast<uint32_t>(i), static_cast<uint32_t>(length),
                   by_merges ? FindJoinable(word.substr(i, length)).value_or(-1) : -1);
    i += length;
  }
  merger->Run(
      [&](const Symbol& left, const Symbol& right) { return FindMerge(word, left, right); });
  const size_t before = ids->size();
  merger->ForEach([&](const Symbol& symbol) {
    const absl::string_view text = word.substr(symbol.begin, symbol.length);
    const auto id = symbol.id >= 0 ? std::optional<int32_t>(symbol.id) : FindJoinable(text);
    if (id.has_value()) {
      ids->push_back(*id);
      return;
    }
    const bool complete = std::all_of(text.begin(), text.end(), [&](char c) {
      return tables_.byte_tokens[static_cast<uint8_t>(c)] >= 0;
    });
    if (!complete) {
      ids->push_back(*vocabulary().unk);
      return;
    }
    for (const char c : text) ids->push_back(tables_.byte_tokens[static_cast<uint8_t>(c)]);
  });
  if (token.has_value()) whole_.Note(*token, absl::MakeConstSpan(*ids).subspan(before));
}

}  // namespace inlay

#include "io/vocabulary_tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, StringPool pieces, bool adds_bos,
                                         bool space_prefix)
    : vocabulary_(std::move(vocabulary)),
      pieces_(std::move(pieces)),
      adds_bos_(adds_bos && vocabulary_.bos.has_value()),
      space_prefix_(space_prefix) {
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (vocabulary_.types[i] == TokenType::kUserDefined) {
      user_defined_.Add(pieces_[i], id);
      special_.Add(pieces_[i], id);
    } else if (vocabulary_.types[i] == TokenType::kControl) {
      special_.Add(vocabulary_.texts[i], id);
    }
  }
  user_defined_.Build();
  special_.Build();
}

absl::StatusOr<std::vector<int32_t>> VocabularyTokenizer::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (text.size() > kLongestText) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text is ", text.size(), " bytes long, more than ", kLongestText));
  }
  std::vector<int32_t> ids;
  if (options.add_bos.value_or(adds_bos_) && vocabulary_.bos.has_value()) {
    ids.push_back(*vocabulary_.bos);
  }
  const TokenMatcher& matcher = options.parse_special ? special_ : user_defined_;
  size_t done = 0;
  while (done < text.size()) {
    const auto match = matcher.Find(text, done);
    const size_t end = match.has_value() ? match->begin : text.size();
    if (end > done) EncodePart(text.substr(done, end - done), &ids);
    if (!match.has_value()) break;
    ids.push_back(match->id);
    done = match->begin + match->length;
  }
  return ids;
}

std::string VocabularyTokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string out;
  bool starts_part = true;  // as in Encode: at the start, and after a special token
  for (const int32_t id : ids) {
    if (!vocabulary_.Contains(id)) continue;
    absl::string_view piece = pieces_[id];
    const TokenType type = vocabulary_.types[id];
    const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
    if (space_prefix_ && starts_part && !special && !piece.empty() && piece[0] == ' ') {
      piece.remove_prefix(1);
    }
    starts_part = special;
    out.append(piece.data(), piece.size());
  }
  return out;
}

absl::string_view VocabularyTokenizer::Piece(int32_t id) const {
  return vocabulary_.Contains(id) ? pieces_[id] : absl::string_view();
}

absl::string_view VocabularyTokenizer::TokenText(int32_t id) const {
  return vocabulary_.Contains(id) ? vocabulary_.texts[id] : absl::string_view();
}

bool VocabularyTokenizer::IsControl(int32_t id) const {
  return vocabulary_.Contains(id) && vocabulary_.types[id] == TokenType::kControl;
}

std::optional<int32_t> VocabularyTokenizer::FindSpecial(absl::string_view text) const {
  return special_.FindExact(text);
}

}  // namespace inlay

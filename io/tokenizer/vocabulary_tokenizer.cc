#include "io/tokenizer/vocabulary_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {

// Text goes through two buffers: in `input_` special tokens are looked for, and `part_` holds what
// has been found to lie between two of them and is not encoded yet.
class VocabularyTokenizer::Stream : public TokenStream {
 public:
  Stream(const VocabularyTokenizer& tokenizer, const EncodeOptions& options, size_t piece)
      : tokenizer_(tokenizer),
        set_(options.parse_special ? TokenMatcher::kTrustedText : TokenMatcher::kAnyText),
        adds_bos_(options.add_bos.value_or(tokenizer.adds_bos_) &&
                  tokenizer.vocabulary_.bos.has_value()),
        max_tokens_(options.max_tokens),
        piece_(piece),
        lookahead_(std::max<size_t>(tokenizer.special_.longest(), 1) - 1) {}

  absl::Status Push(absl::string_view text, std::vector<int32_t>* ids) override {
    Begin(ids);
    while (!text.empty()) {
      const size_t n = std::min(text.size(), piece_ + lookahead_ - input_.size());
      input_.append(text.data(), n);
      text.remove_prefix(n);
      if (input_.size() < piece_ + lookahead_) break;
      const size_t before = ids->size();
      INLAY_RETURN_IF_ERROR(Take(piece_, ids));
      tokens_ += ids->size() - before;
      // What is held will be so many tokens at least.
      if (tokens_ + part_.size() / tokenizer_.longest_piece_ > max_tokens_) {
        return absl::OutOfRangeError(
            absl::StrCat("the text has more than ", max_tokens_, " tokens"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(std::vector<int32_t>* ids) override {
    Begin(ids);
    INLAY_RETURN_IF_ERROR(Take(input_.size(), ids));
    EndPart(ids);
    begun_ = false;
    skip_ = 0;
    tokens_ = 0;
    return absl::OkStatus();
  }

 private:
  void Begin(std::vector<int32_t>* ids) {
    if (!begun_ && adds_bos_) {
      ids->push_back(*tokenizer_.vocabulary_.bos);
      ++tokens_;
    }
    begun_ = true;
  }

  // Moves the first `count` bytes of the input on, to ids or into the part.
  absl::Status Take(size_t count, std::vector<int32_t>* ids) {
    const absl::string_view input = input_;
    tokenizer_.special_.FindAll(set_, input, skip_, count, &matches_);
    size_t done = skip_;
    for (const TokenMatcher::Match& match : matches_) {
      INLAY_RETURN_IF_ERROR(AppendToPart(input.substr(done, match.begin - done), ids));
      EndPart(ids);
      ids->push_back(match.id);
      done = match.begin + match.length;
    }
    if (done < count) {
      INLAY_RETURN_IF_ERROR(AppendToPart(input.substr(done, count - done), ids));
      done = count;
    }
    skip_ = done - count;
    input_.erase(0, count);
    return absl::OkStatus();
  }

  absl::Status AppendToPart(absl::string_view text, std::vector<int32_t>* ids) {
    if (text.empty()) return absl::OkStatus();
    if (!in_part_ && tokenizer_.space_prefix_) part_.push_back(' ');
    in_part_ = true;
    part_.append(text.data(), text.size());
    if (part_.size() < next_try_) return absl::OkStatus();
    part_.erase(0, tokenizer_.EncodeWords(part_, /*last=*/false, ids));
    // Twice as much each time, so that the tries on a long word take linear time together.
    next_try_ = std::max(piece_, 2 * part_.size());
    if (part_.size() <= kLongestText) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the text has more than ", kLongestText,
                                                   " bytes without a place where it can be cut"));
  }

  void EndPart(std::vector<int32_t>* ids) {
    if (!part_.empty()) tokenizer_.EncodeWords(part_, /*last=*/true, ids);
    part_.clear();
    in_part_ = false;
    next_try_ = piece_;
  }

  const VocabularyTokenizer& tokenizer_;
  const TokenMatcher::Set set_;
  const bool adds_bos_;
  const size_t max_tokens_;
  const size_t piece_;
  const size_t lookahead_;  // bytes behind a place that a special token at it may take
  bool begun_ = false;
  size_t tokens_ = 0;  // of this text so far
  std::string input_;
  size_t skip_ = 0;  // bytes of the input that belong to the last special token
  std::vector<TokenMatcher::Match> matches_;
  std::string part_;
  bool in_part_ = false;  // something of the part has been seen
  size_t next_try_ = piece_;
};

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, StringPool pieces, bool adds_bos,
                                         bool space_prefix)
    : vocabulary_(std::move(vocabulary)),
      pieces_(std::move(pieces)),
      adds_bos_(adds_bos && vocabulary_.bos.has_value()),
      space_prefix_(space_prefix) {}

absl::Status VocabularyTokenizer::Init(absl::string_view file) {
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    longest_piece_ = std::max(longest_piece_, pieces_[i].size());
    if (vocabulary_.types[i] == TokenType::kUserDefined) {
      special_.Add(pieces_[i], id, TokenMatcher::kAnyText);
    } else if (vocabulary_.types[i] == TokenType::kControl) {
      longest_piece_ = std::max(longest_piece_, vocabulary_.texts[i].size());
      special_.Add(vocabulary_.texts[i], id, TokenMatcher::kTrustedText);
    }
  }
  const absl::Status status = special_.Build();
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

absl::StatusOr<std::unique_ptr<TokenStream>> VocabularyTokenizer::StartEncoding(
    const EncodeOptions& options, size_t piece) const {
  return std::make_unique<Stream>(*this, options, piece);
}

std::string VocabularyTokenizer::Decode(absl::Span<const int32_t> ids, bool* starts_part) const {
  std::string out;
  for (const int32_t id : ids) {
    if (!vocabulary_.Contains(id)) continue;
    absl::string_view piece = pieces_[id];
    const TokenType type = vocabulary_.types[id];
    const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
    if (space_prefix_ && *starts_part && !special && !piece.empty() && piece[0] == ' ') {
      piece.remove_prefix(1);
    }
    *starts_part = special;  // as in encoding: at the start, and after a special token
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

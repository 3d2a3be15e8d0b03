#include "io/tokenizer/vocabulary_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "io/gguf/tensor_form.h"
#include "io/tokenizer/nfc.h"

namespace inlay {

// Text passes through two buffers: `input_` is searched for special tokens, and `section_` holds
// text between two of them that is not encoded yet. `nfc_`, which holds text too, is between both.
class VocabularyTokenizer::Stream : public TokenStream {
 public:
  Stream(const VocabularyTokenizer& tokenizer, const EncodeOptions& options, size_t piece)
      : tokenizer_(tokenizer),
        set_(options.parse_special ? TokenMatcher::kTrustedText : TokenMatcher::kAnyText),
        adds_bos_(options.add_bos.value_or(tokenizer.adds_bos_) &&
                  tokenizer.vocabulary_.bos.has_value()),
        continues_(options.continues),
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
      INLAY_RETURN_IF_ERROR(Consume(piece_, ids));
      tokens_ += ids->size() - before;
      // The buffered text will become at least this many tokens.
      const size_t buffered = section_.size() + nfc_.held() / NfcStream::kMostShrink;
      if (tokens_ + buffered / tokenizer_.longest_piece_ > max_tokens_) {
        return absl::OutOfRangeError(
            absl::StrCat("the text has more than ", max_tokens_, " tokens"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(std::vector<int32_t>* ids) override {
    Begin(ids);
    INLAY_RETURN_IF_ERROR(Consume(input_.size(), ids));
    EndSection(ids);
    begun_ = false;
    only_bos_ = false;
    skip_ = 0;
    tokens_ = 0;
    return absl::OkStatus();
  }

 private:
  void Begin(std::vector<int32_t>* ids) {
    if (!begun_ && adds_bos_) {
      ids->push_back(*tokenizer_.vocabulary_.bos);
      ++tokens_;
      only_bos_ = true;
    }
    if (!begun_) in_section_ = continues_;
    begun_ = true;
  }

  // Moves the first `count` bytes of the input to `ids` or into the section.
  absl::Status Consume(size_t count, std::vector<int32_t>* ids) {
    const absl::string_view input = input_;
    tokenizer_.special_.FindAll(set_, input, skip_, count, &matches_);
    size_t done = skip_;
    for (const TokenMatcher::Match& match : matches_) {
      INLAY_RETURN_IF_ERROR(AppendToSection(input.substr(done, match.begin - done), ids));
      EndSection(ids);
      // Many chat templates print BOS although the file asks for one too.
      if (!only_bos_ || match.id != *tokenizer_.vocabulary_.bos) ids->push_back(match.id);
      only_bos_ = false;
      done = match.begin + match.length;
    }
    if (done < count) {
      INLAY_RETURN_IF_ERROR(AppendToSection(input.substr(done, count - done), ids));
      done = count;
    }
    skip_ = done - count;
    input_.erase(0, count);
    return absl::OkStatus();
  }

  absl::Status AppendToSection(absl::string_view text, std::vector<int32_t>* ids) {
    if (text.empty()) return absl::OkStatus();
    only_bos_ = false;
    if (!in_section_ && tokenizer_.space_prefix_) section_.push_back(' ');
    in_section_ = true;
    if (tokenizer_.to_nfc_) {
      nfc_.Push(text, &section_);
    } else {
      section_.append(text.data(), text.size());
    }
    if (section_.size() + nfc_.held() < next_try_) return absl::OkStatus();
    section_.erase(0, tokenizer_.EncodeWords(section_, /*last=*/false, ids));
    // Doubled each time, so that all attempts on a long word together need linear time.
    next_try_ = std::max(piece_, 2 * (section_.size() + nfc_.held()));
    if (section_.size() + nfc_.held() <= kLongestText) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the text has more than ", kLongestText,
                                                   " bytes without a place where it can be cut"));
  }

  void EndSection(std::vector<int32_t>* ids) {
    nfc_.Finish(&section_);
    if (!section_.empty()) tokenizer_.EncodeWords(section_, /*last=*/true, ids);
    section_.clear();
    in_section_ = false;
    next_try_ = piece_;
  }

  const VocabularyTokenizer& tokenizer_;
  const TokenMatcher::Set set_;
  const bool adds_bos_;
  const bool continues_;
  const size_t max_tokens_;
  const size_t piece_;
  const size_t lookahead_;  // bytes of the longest special token after its first
  bool begun_ = false;
  bool only_bos_ = false;  // BOS was added, and nothing of the text has followed it yet
  size_t tokens_ = 0;      // of this text so far
  std::string input_;
  size_t skip_ = 0;  // bytes of the input that belong to the last special token
  std::vector<TokenMatcher::Match> matches_;
  NfcStream nfc_;
  std::string section_;
  bool in_section_ = false;  // the section has begun
  size_t next_try_ = piece_;
};

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, StringTable pieces, bool adds_bos,
                                         bool space_prefix, bool to_nfc)
    : vocabulary_(std::move(vocabulary)),
      pieces_(std::move(pieces)),
      adds_bos_(adds_bos && vocabulary_.bos.has_value()),
      space_prefix_(space_prefix),
      to_nfc_(to_nfc) {}

absl::Status VocabularyTokenizer::CheckReady(const GgufFile& file) {
  if (!file.tokenizer_tables().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.name(), ": the packed file has no tensor '",
                                                 kPackedTokenizerTensor,
                                                 "'; pack the model's GGUF file again"));
}

absl::Status VocabularyTokenizer::DamagedTables(const GgufFile& file) {
  return absl::DataLossError(absl::StrCat(file.name(), ": tensor '", kPackedTokenizerTensor,
                                          "' is damaged; pack the model's GGUF file again"));
}

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
  return About(file, special_.Build());
}

absl::StatusOr<std::unique_ptr<TokenStream>> VocabularyTokenizer::StartEncoding(
    const EncodeOptions& options, size_t piece) const {
  return std::make_unique<Stream>(*this, options, piece);
}

absl::StatusOr<std::vector<int32_t>> VocabularyTokenizer::EncodeMarked(
    absl::string_view text, absl::Span<const TrustRun> runs) const {
  // User-defined tokens are found again below, in all of the text between two control tokens.
  std::vector<TokenMatcher::Match> controls, matches;
  size_t begin = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const TrustRun& run = runs[i];
    if (i + 1 < runs.size() && runs[i + 1].trusted == run.trusted) continue;  // one run, in effect
    if (run.trusted) {
      const absl::string_view trusted = text.substr(begin, run.end - begin);
      special_.FindAll(TokenMatcher::kTrustedText, trusted, 0, trusted.size(), &matches);
      for (TokenMatcher::Match match : matches) {
        if (!IsControl(match.id)) continue;
        match.begin += begin;
        controls.push_back(match);
      }
    }
    begin = run.end;
  }
  std::vector<int32_t> ids;
  const bool begins_with_bos =
      !controls.empty() && controls[0].begin == 0 && controls[0].id == vocabulary_.bos;
  if (adds_bos_ && !begins_with_bos) ids.push_back(*vocabulary_.bos);
  size_t done = 0;
  const auto append_text = [&](size_t end) -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> more,
                           Encode(text.substr(done, end - done), {.add_bos = false}));
    ids.insert(ids.end(), more.begin(), more.end());
    return absl::OkStatus();
  };
  for (const TokenMatcher::Match& control : controls) {
    INLAY_RETURN_IF_ERROR(append_text(control.begin));
    ids.push_back(control.id);
    done = control.begin + control.length;
  }
  INLAY_RETURN_IF_ERROR(append_text(text.size()));
  return ids;
}

std::string VocabularyTokenizer::Decode(absl::Span<const int32_t> ids, bool* starts_section) const {
  std::string out;
  for (const int32_t id : ids) {
    if (!vocabulary_.Contains(id)) continue;
    absl::string_view piece = pieces_[id];
    const TokenType type = vocabulary_.types[id];
    const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
    if (space_prefix_ && *starts_section && !special && !piece.empty() && piece[0] == ' ') {
      piece.remove_prefix(1);
    }
    *starts_section = special;  // as in encoding: at the start, and after a special token
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

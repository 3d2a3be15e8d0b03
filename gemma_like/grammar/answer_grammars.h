// The grammars of recent answers, ready to be followed.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_GRAMMARS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_GRAMMARS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/answer_shape.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/token_trie.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

struct AnswerGrammar {
  AnswerShape shape;
  std::shared_ptr<CompiledGrammar> compiled;
  std::shared_ptr<const TokenTrie> tokens;
  std::vector<int32_t> ends;    // the tokens that end an answer
  std::vector<int32_t> spaces;  // and those of white space alone

  // The same, but that the shape begins after the first occurrence of this text (AnswerShape).
  std::shared_ptr<const AnswerGrammar> After(absl::string_view text) const;
};

// Thread-safe. Compiling takes milliseconds, the first shape of all also the time to sort the
// vocabulary: threads that others wait for should not call Get.
class AnswerGrammars {
 public:
  // The tokenizer must outlive the object; not what Get returned.
  explicit AnswerGrammars(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The grammar of this shape for GenerateOptions::grammar. The kKept most recent ones are kept,
  // whatever text they come after.
  // Errors: those of CompileShape; FailedPrecondition for a model without a vocabulary.
  absl::StatusOr<std::shared_ptr<const AnswerGrammar>> Get(const AnswerShape& shape);

  static constexpr size_t kKept = 32;

 private:
  absl::StatusOr<std::shared_ptr<const AnswerGrammar>> Compile(const AnswerShape& shape);
  absl::Status SortVocabulary();

  const Tokenizer& tokenizer_;
  std::mutex vocabulary_mutex_;  // of the next three
  std::shared_ptr<const TokenTrie> tokens_;
  std::vector<int32_t> ends_, spaces_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const AnswerGrammar>> recent_;  // the latest first
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_GRAMMARS_H_

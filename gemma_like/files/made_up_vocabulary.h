// A vocabulary for model files with random weights, since servers run no model without one.
#ifndef INLAY_GEMMA_LIKE_FILES_MADE_UP_VOCABULARY_H_
#define INLAY_GEMMA_LIKE_FILES_MADE_UP_VOCABULARY_H_

#include "absl/status/status.h"
#include "gemma_like/files/synth.h"

namespace inlay {

// Gives the model's file a vocabulary of as many tokens as its embedding has rows, in the format of
// SentencePiece ("llama"): <unk>, <s>, </s>, the 256 bytes, then all words of the letters a to z
// and the space, the shorter ones first; the last ones are the control tokens of the config's chat
// template. Each part of a word is a token, too, so merging by score finds every one of them.
// InvalidArgument for a model of fewer than 286 tokens and those of the template, which has no room
// for the letters.
absl::Status AddMadeUpVocabulary(SynthModel& model);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_MADE_UP_VOCABULARY_H_

// What a model's answer in a chat consists of.
#ifndef INLAY_GEMMA_LIKE_CHAT_ANSWER_EVENT_H_
#define INLAY_GEMMA_LIKE_CHAT_ANSWER_EVENT_H_

#include <cstddef>
#include <string>

namespace inlay {

// A piece of an answer, in the order in which the answer has them.
struct AnswerEvent {
  enum class Kind {
    kText,           // what the user is told
    kReasoning,      // what the model thinks before
    kCallBegin,      // it calls the function of this name
    kCallArguments,  // the next bytes of that call's arguments, which in all are one JSON object
    kCallEnd,
  };
  Kind kind;
  std::string text;  // empty for kCallEnd
  size_t call = 0;   // the number of the call in its answer, from 0; for kCall*

  friend bool operator==(const AnswerEvent&, const AnswerEvent&) = default;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_ANSWER_EVENT_H_

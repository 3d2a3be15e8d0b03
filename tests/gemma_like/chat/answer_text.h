// Answers taken apart, whole and in pieces, for tests.
#ifndef INLAY_TESTS_GEMMA_LIKE_CHAT_ANSWER_TEXT_H_
#define INLAY_TESTS_GEMMA_LIKE_CHAT_ANSWER_TEXT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gemma_like/chat/answer_parser.h"

namespace inlay {

// Adds events to others: what goes on with the last one of its kind is one event with it.
inline void AddEvents(std::vector<AnswerEvent> more, std::vector<AnswerEvent>& events) {
  using Kind = AnswerEvent::Kind;
  for (AnswerEvent& event : more) {
    const bool grows = event.kind != Kind::kCallBegin && event.kind != Kind::kCallEnd;
    const bool same =
        !events.empty() && events.back().kind == event.kind && events.back().call == event.call;
    if (grows && same) {
      events.back().text += event.text;
    } else {
      events.push_back(std::move(event));
    }
  }
}

// The events of `text`, of which each piece has the size that `next_size` gives, at least 1.
template <class NextSize>
std::vector<AnswerEvent> ParseInPieces(const AnswerFormat& format, absl::string_view text,
                                       const AnswerParserOptions& options,
                                       const NextSize& next_size) {
  AnswerParser parser(format, options);
  std::vector<AnswerEvent> events;
  while (!text.empty()) {
    const absl::string_view piece = text.substr(0, next_size());
    AddEvents(parser.Push(piece), events);
    text.remove_prefix(piece.size());
  }
  AddEvents(parser.Finish(), events);
  return events;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_CHAT_ANSWER_TEXT_H_

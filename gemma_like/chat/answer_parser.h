// Takes the text that a model generates apart into text, thoughts and calls of tools, as it comes.
#ifndef INLAY_GEMMA_LIKE_CHAT_ANSWER_PARSER_H_
#define INLAY_GEMMA_LIKE_CHAT_ANSWER_PARSER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/chat/call_reader.h"
#include "io/template/value.h"

namespace inlay {

struct AnswerParserOptions {
  bool in_thinking = false;  // the prompt has opened the thoughts (RenderedChat::in_thinking)
  bool calls = true;         // calls are looked for; otherwise they are text
  // The definitions of tools as templates get them, or none: where a format does not show which
  // arguments are text, their schemas do.
  jinja::Value tools = jinja::Value::None();
};

// Reads one answer, in pieces of any size: what events say in all does not depend on how the text
// is cut. Control tokens must be in the text, with their texts. Time and memory are linear in it.
//
//   - Markers, and white space beside them, are not text. What only begins like a marker is. But
//     between two texts one line end, or else one space, stays of the white space that was there.
//   - Arguments in JSON come as the model writes them; those of other formats as one event.
//   - What turns out to be no call, or ends before it is one, comes as the text that it is, markers
//     included. If its kCallBegin was already out, that call is void: it has no kCallEnd.
//   - A marker within a text of a call does not end it, where quotes show what is a text: those of
//     JSON, also in the tags of a parameter whose schema has another type than text, of Python, and
//     AnswerFormat::quote. What is between two of these counts as a text if the second is followed
//     by a comma, a colon or a closing bracket. Otherwise, or where the second is missing, a quote
//     is wrong, and the first marker since the first of the two ends the call, which is none: the
//     calls behind that marker are read. So it is with JSON in tags whose string does not end;
//     there the call up to the marker has the text as its argument. A parameter of tags that is
//     text goes on over markers up to its end. Where that is missing or comes in another call, the
//     call up to the first marker is none.
//   - Of parameters with the same name the last one counts, except in JSON, which is passed on.
//   - After its first kCallBegin, a call's number is not used again.
//   - A call in tags may lack the marker before it, if it is of one of the tools, and at the end of
//     the answer any call the marker behind it.
//   - Calls within thoughts are drafts, and thoughts as they are written. But where the model ends
//     the answer with whole calls and without an end of its thoughts, these are calls: Finish()
//     says so.
class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& format, AnswerParserOptions options = {});
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;

  // What became certain with this piece.
  std::vector<AnswerEvent> Push(absl::string_view piece);

  // The rest. The parser can only be destroyed then. `ended`: the model ended the answer itself. In
  // one that was cut short calls within thoughts stay drafts: the thoughts might have gone on.
  std::vector<AnswerEvent> Finish(bool ended = true);

 private:
  class Sink;
  enum class Marker {
    kNone,
    kPart,
    kThinkBegin,
    kThinkEnd,
    kTextBegin,
    kTextEnd,
    kCallBegin,
    kBareCallBegin,  // "<function=f>" of kTagged, where f is one of the tools
    kCallEnd
  };

  void Take(char c);
  void TakeInCall(char c);
  void FailCall();
  // The first `size` bytes of what a reader took are no call; what follows them is read anew.
  void TakeAsNoCall(absl::string_view text, size_t size);
  // Whether a marker may begin with this text, which is not all of it.
  bool MayBeginMarker(absl::string_view text) const;
  // After a byte of a call within thoughts.
  void CheckDraft();
  // What is held of thoughts is no call.
  void DropDraft();
  // Which marker `held_` is, or the beginning of, where one may be.
  Marker FindMarker() const;
  Marker FindBareCall() const;
  void Enter(Marker marker);
  // A byte of text or thoughts.
  void Emit(char c);
  // This white space is beside a marker.
  void LeaveOut(absl::string_view space);
  void Add(AnswerEvent::Kind kind, absl::string_view text);

  AnswerFormat format_;
  AnswerParserOptions options_;
  std::vector<std::string> functions_;  // that may be called without a marker before the call
  std::vector<AnswerEvent> events_;
  size_t next_call_ = 0;

  bool thinking_ = false;
  bool text_seen_ = false;              // other than white space
  bool thought_ = false;                // thoughts were read, or were begun by the prompt
  bool text_open_ = false;              // after text_begin
  bool thinking_new_ = false;           // nothing was thought since the thoughts began
  bool calls_ended_ = false;            // nothing but markers behind calls came since a call
  bool skips_space_ = false;            // after a marker
  std::string space_;                   // white space that a marker may follow
  std::string gap_;                     // what stays of white space left out since the last text
  std::string held_;                    // the beginning of a marker, perhaps
  std::unique_ptr<CallReader> reader_;  // within calls
  std::string call_text_;  // since the marker, or since the last call that was complete
  // Within thoughts: their text since the first of the whole calls that may be the answer's last
  // ones, and the events of these and of the call that is being read.
  std::string draft_;
  std::vector<AnswerEvent> draft_events_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_ANSWER_PARSER_H_

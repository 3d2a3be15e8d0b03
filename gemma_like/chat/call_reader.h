// Reads the calls of tools behind one marker, byte by byte.
#ifndef INLAY_GEMMA_LIKE_CHAT_CALL_READER_H_
#define INLAY_GEMMA_LIKE_CHAT_CALL_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "gemma_like/chat/answer_format.h"
#include "io/template/value.h"

namespace inlay {

// Receives calls: each is Begin, any number of Arguments that together are one JSON object, and
// End. A call without its End is void.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void Begin(absl::string_view name) = 0;
  virtual void Arguments(absl::string_view bytes) = 0;
  virtual void End() = 0;
};

class CallReader {
 public:
  enum class State : uint8_t {
    kMore,
    kEnded,        // this byte was the last of the calls, or of the marker behind them
    kEndedBefore,  // what came since the last call is not of the calls and is to be read anew
    kRefused,      // what came is no call, or no other call; this byte was not taken
  };
  virtual ~CallReader() = default;
  virtual State Push(char c, CallSink& sink) = 0;

  // Where the answer ends after kMore: whether all that it took is whole calls, of which it then
  // passes on those that it has not passed on yet. Otherwise GiveUp is to be called.
  virtual bool Finish(CallSink& sink) = 0;

  // After kRefused, or where the answer ends: how many of the last bytes that it took belong to
  // none of its calls and are to be read anew, as another call may be in them. Passes on the calls
  // before these bytes, if they are whole. The reader can only be destroyed then.
  virtual size_t GiveUp([[maybe_unused]] CallSink& sink) { return 0; }
};

// Reads JSON and passes arguments on as they come; a name in front of them for kNamedJson. Where
// `format` has a marker behind calls, there may be several objects before it, also without a list
// around them, and one bracket too many. The last object may lack its last brace.
std::unique_ptr<CallReader> MakeJsonCallReader(const AnswerFormat& format);

// Reads the other syntaxes of `format`: keeps the calls until it has seen the marker behind them.
// `tools` are definitions as templates get them; they tell which arguments of kTagged are text.
std::unique_ptr<CallReader> MakeBlockCallReader(const AnswerFormat& format, jinja::Value tools);

// Reads one function of kTagged without the marker before it, from "<function=" on; it ends with
// "</function>". A marker within it means that it is none, so that the call behind it is read.
std::unique_ptr<CallReader> MakeBareCallReader(const AnswerFormat& format, jinja::Value tools);

// Reads what `format` has: the two above, for kTagged and kPython the one that the first bytes ask
// for.
std::unique_ptr<CallReader> MakeCallReader(const AnswerFormat& format, jinja::Value tools);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CALL_READER_H_

// Calls as JSON: {"name": "f", "arguments": {...}}, a list of these, or a name before the object.
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gemma_like/chat/call_json.h"
#include "gemma_like/chat/call_reader.h"
#include "io/template/json_input.h"

namespace inlay {
namespace {

class JsonCallReader : public CallReader {
 public:
  explicit JsonCallReader(const AnswerFormat& format)
      : named_(format.calls == CallSyntax::kNamedJson), end_(format.call_end) {}

  State Push(char c, CallSink& sink) override {
    switch (step_) {
      case Step::kStart:
        return Start(c);
      case Step::kNameInFront:
        return NameInFront(c, sink);
      case Step::kArgumentsInFront:
        return ArgumentsInFront(c, sink);
      case Step::kKey:
      case Step::kValue:
        return InValue(c, sink);
      case Step::kInMarker:
        return InMarker(c, sink);
      default:
        break;
    }
    return absl::ascii_isspace(c) ? State::kMore : Between(c, sink);
  }

  bool Finish(CallSink& sink) override {
    if (step_ == Step::kAfterValue && IsCall()) {
      EndObject(sink);
      return true;
    }
    return step_ == Step::kAfterObject || step_ == Step::kAfterCall || step_ == Step::kAfterBrace;
  }

 private:
  enum class Step : uint8_t {
    kStart,
    kNameInFront,       // f of f[ARGS]{...}
    kArgumentsInFront,  // the {...} of it
    kObject,            // [ or , of a list came
    kFirstKey,          // { came
    kNextKey,           // , came
    kKey,
    kColon,
    kBeforeValue,
    kValue,
    kAfterValue,
    kAfterObject,  // in a list
    kAfterCall,    // an object ended that is in no list
    kAfterComma,   // and a comma behind it
    kAfterBrace,   // and one bracket too many
    kInMarker,     // the marker behind that bracket, or after a value
  };
  enum class Member : uint8_t { kName, kArguments, kOther };

  // The texts in front of arguments that follow their name, and of what is between them.
  static constexpr absl::string_view kArgsMarker = "[ARGS]";
  static constexpr absl::string_view kIdMarker = "[CALL_ID]";

  State Go(Step next) {
    step_ = next;
    return State::kMore;
  }

  State Start(char c) {
    if (absl::ascii_isspace(c)) return State::kMore;
    in_list_ = c == '[';
    if (in_list_) return Go(Step::kObject);
    if (c == '{') return Go(Step::kFirstKey);
    if (!named_) return State::kRefused;
    piece_.push_back(c);
    return Go(Step::kNameInFront);
  }

  State NameInFront(char c, CallSink& sink) {
    if (absl::string_view("<>\"\n").find(c) != absl::string_view::npos) return State::kRefused;
    if (c != '{') {
      piece_.push_back(c);
      return State::kMore;
    }
    absl::string_view name = absl::StripAsciiWhitespace(piece_);
    if (absl::EndsWith(name, kArgsMarker)) name.remove_suffix(kArgsMarker.size());
    name = absl::StripAsciiWhitespace(name.substr(0, name.find(kIdMarker)));
    if (name.empty() || name.find_first_of("[]") != absl::string_view::npos) return State::kRefused;
    BeginCall(name, sink);
    step_ = Step::kArgumentsInFront;
    return ArgumentsInFront(c, sink);
  }

  State ArgumentsInFront(char c, CallSink& sink) {
    const JsonScanner::State state = Stream(c, sink);
    if (state == JsonScanner::State::kMore) return State::kMore;
    if (state != JsonScanner::State::kEnded) return State::kRefused;
    sink.End();
    return State::kEnded;
  }

  // `c` is no white space, and not within a key or value.
  State Between(char c, CallSink& sink) {
    switch (step_) {
      case Step::kObject:
        return c == '{' ? Go(Step::kFirstKey) : State::kRefused;
      case Step::kFirstKey:
      case Step::kNextKey:
        if (c == '}' && step_ == Step::kFirstKey) return EndObject(sink);
        if (c != '"') return State::kRefused;
        BeginValue(Step::kKey);
        return InValue(c, sink);
      case Step::kColon:
        return c == ':' ? Go(Step::kBeforeValue) : State::kRefused;
      case Step::kBeforeValue:
        return FirstOfValue(c, sink);
      case Step::kAfterValue:
        if (c == '}') return EndObject(sink);
        if (c == ',') return Go(Step::kNextKey);
        lacks_brace_ = IsCall() && !end_.empty();
        return lacks_brace_ ? InMarker(c, sink) : State::kRefused;
      case Step::kAfterCall:
        if (c == ',') return Go(Step::kAfterComma);
        if (c == '}') return Go(Step::kAfterBrace);
        [[fallthrough]];
      case Step::kAfterComma:
        return c == '{' ? Go(Step::kFirstKey) : State::kEndedBefore;
      case Step::kAfterBrace:
        return InMarker(c, sink);
      default:
        if (c == ']') return State::kEnded;
        return c == ',' ? Go(Step::kObject) : State::kRefused;
    }
  }

  State InMarker(char c, CallSink& sink) {
    if (c != end_[marker_size_]) return lacks_brace_ ? State::kRefused : State::kEndedBefore;
    if (++marker_size_ < end_.size()) return Go(Step::kInMarker);
    if (lacks_brace_) EndObject(sink);
    return State::kEnded;
  }

  void BeginValue(Step step) {
    step_ = step;
    scanner_ = JsonScanner();
    piece_.clear();
  }

  State FirstOfValue(char c, CallSink& sink) {
    // Arguments may be an object, a text that is one, or null.
    const bool first_of_arguments = c == '{' || c == '"' || c == 'n';
    if (member_ == Member::kArguments && !first_of_arguments) return State::kRefused;
    BeginValue(Step::kValue);
    streams_ = member_ == Member::kArguments && c == '{' && !name_.empty();
    if (streams_) BeginCall(name_, sink);
    return InValue(c, sink);
  }

  State InValue(char c, CallSink& sink) {
    const JsonScanner::State state = streams_ ? Stream(c, sink) : scanner_.Push(c, &piece_);
    if (state == JsonScanner::State::kMore) return State::kMore;
    if (state == JsonScanner::State::kRefused) return State::kRefused;
    streams_ = false;
    const bool good = step_ == Step::kKey ? EndKey() : EndMember();
    if (!good) return State::kRefused;
    step_ = step_ == Step::kKey ? Step::kColon : Step::kAfterValue;
    return state == JsonScanner::State::kEndedBefore ? Push(c, sink) : State::kMore;
  }

  JsonScanner::State Stream(char c, CallSink& sink) {
    piece_.clear();
    const JsonScanner::State state = scanner_.Push(c, &piece_);
    if (!piece_.empty()) sink.Arguments(piece_);
    return state;
  }

  bool EndKey() {
    const std::string key = TextOf(piece_);
    member_ = Member::kOther;
    if (key == "name") member_ = Member::kName;
    if (key == "arguments" || key == "parameters") member_ = Member::kArguments;
    // Once each.
    return (member_ != Member::kName || name_.empty()) &&
           (member_ != Member::kArguments || arguments_.empty());
  }

  bool EndMember() {
    if (member_ == Member::kName) {
      name_ = TextOf(piece_);
      return !name_.empty();
    }
    if (member_ != Member::kArguments) return true;
    if (begun_) {
      arguments_ = "{";  // there are some, which were passed on
      return true;
    }
    if (piece_[0] == '{') {
      arguments_ = piece_;
      return true;
    }
    if (piece_[0] == 'n' || piece_ == "\"\"") {
      arguments_ = "{}";
      return true;
    }
    return AppendJsonValue(TextOf(piece_), &arguments_) && arguments_[0] == '{';
  }

  // Whether the present object has all of a call. Models forget its last brace, where the arguments
  // end with one, too.
  bool IsCall() const { return !name_.empty() && !arguments_.empty(); }

  State EndObject(CallSink& sink) {
    if (name_.empty()) return State::kRefused;
    if (!begun_) {
      BeginCall(name_, sink);
      sink.Arguments(arguments_.empty() ? "{}" : arguments_);
    }
    sink.End();
    begun_ = false;
    name_.clear();
    arguments_.clear();
    if (in_list_) return Go(Step::kAfterObject);
    return end_.empty() ? State::kEnded : Go(Step::kAfterCall);
  }

  void BeginCall(absl::string_view name, CallSink& sink) {
    begun_ = true;
    scanner_ = JsonScanner();
    sink.Begin(name);
  }

  // What a JSON string stands for; "" for what is none.
  static std::string TextOf(absl::string_view json) {
    const auto value = jinja::ParseJson(json);
    if (!value.ok() || !value->is(jinja::Type::kString)) return "";
    return std::string(value->bytes());
  }

  const bool named_;
  const absl::string_view end_;  // the marker behind calls
  size_t marker_size_ = 0;       // how much of it came
  bool lacks_brace_ = false;     // it came before the brace that ends an object
  Step step_ = Step::kStart;
  bool in_list_ = false;
  JsonScanner scanner_;
  std::string piece_;  // of the key or value, or what was read of it last
  bool streams_ = false;
  // Of the present object.
  Member member_ = Member::kOther;
  std::string name_, arguments_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> MakeJsonCallReader(const AnswerFormat& format) {
  return std::make_unique<JsonCallReader>(format);
}

}  // namespace inlay

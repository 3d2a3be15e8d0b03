// The frame of OpenAI's replies that have choices: chat/completions and completions.
#ifndef INLAY_SERVE_API_REPLY_CHOICES_H_
#define INLAY_SERVE_API_REPLY_CHOICES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/api/call.h"
#include "serve/api/reply.h"
#include "serve/api/reply_parts.h"

namespace inlay::serve {

// Writes what is around the choices: of a whole reply, or of each chunk of a streamed one.
class ChoicesWriter : public ReplyWriter {
 public:
  std::string Finish() final;
  std::string Ping() final;
  std::string Fail(const absl::Status& status) final;

 protected:
  // What the two differ in.
  struct Names {
    absl::string_view id_prefix, whole_object, chunk_object;
    Protocol protocol;
  };
  // The call must outlive the writer.
  ChoicesWriter(const Call& call, const ReplyHeader& header, size_t choices, const Names& names)
      : call_(call), header_(header), choices_(choices), names_(names), usage_(call) {}

  // A chunk with this change of a choice; "" where the reply is whole.
  std::string ChunkOf(Json change) const;

  // A choice of the whole reply. Called once for each, in their order.
  virtual Json WholeChoice(size_t choice) = 0;

  void AddUsage(const ReplyEnd& end) { usage_.Add(end); }

  const Call& call() const { return call_; }
  const ReplyHeader& header() const { return header_; }
  size_t choices() const { return choices_; }

 private:
  Json Frame(absl::string_view object) const;

  const Call& call_;
  const ReplyHeader header_;
  const size_t choices_;
  const Names names_;
  UsageSum usage_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_REPLY_CHOICES_H_

// Reads the members of a JSON object by name and type, with errors that name the member.
#ifndef INLAY_SERVE_API_FIELD_READER_H_
#define INLAY_SERVE_API_FIELD_READER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

// "a string", "a list": what `json` is, for a sentence.
absl::string_view KindOf(const Json& json);

// Sets `error` to InvalidArgument with this sentence unless it has an error already.
void Complain(absl::Status* error, absl::string_view sentence);

// Reads one object. Errors are collected: the first one stays in `error`, and after it the
// functions go on with what they can read. A member that is JSON's null counts as absent. Members
// that no function has asked for by the time of Finish() are an error, so that nothing is ignored
// by accident: each is read, named in NoEffect() or refused.
class FieldReader {
 public:
  // `path` is how sentences name the object: "" for the body itself, "messages[2]". All must
  // outlive the reader. An error where `object` is none.
  FieldReader(const Json& object, std::string path, absl::Status* error);

  // The member, or null where it is absent.
  const Json* Find(absl::string_view key);
  // The member, which must be of the function's type and within its bounds where it is there.
  const Json* List(absl::string_view key);
  const Json* Object(absl::string_view key);
  std::optional<std::string> Text(absl::string_view key);
  std::optional<bool> Bool(absl::string_view key);
  std::optional<double> Number(absl::string_view key, double least, double most);
  std::optional<int64_t> Integer(absl::string_view key, int64_t least, int64_t most);
  // One of `choices`.
  std::optional<std::string> Choice(absl::string_view key,
                                    std::initializer_list<absl::string_view> choices);
  // The same for members that must be there.
  const Json* NeedList(absl::string_view key);
  std::string NeedText(absl::string_view key);

  // Members that may be anything, since no answer depends on them.
  void NoEffect(std::initializer_list<absl::string_view> keys);
  // A member that must be absent, or the false, "", [] or {} by which clients say the same.
  // `sentence` goes on after its name.
  void Refuse(absl::string_view key, absl::string_view sentence = "is not supported");
  // An error about a member, whose name goes in front.
  void Fail(absl::string_view key, absl::string_view sentence);

  // An error where a member is there that nothing asked for and that is neither null, [] nor {}.
  void Finish();

  std::string Path(absl::string_view key) const;
  absl::Status* error() const { return error_; }

 private:
  // The member where it has the type, else null and, where it has another, an error.
  const Json* FindTyped(absl::string_view key, bool (*has_type)(const Json&),
                        absl::string_view kind);

  const Json& object_;
  const std::string path_;
  absl::Status* const error_;
  std::vector<std::string> known_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_FIELD_READER_H_

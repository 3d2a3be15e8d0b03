// Reads JSON objects that a server has written, with errors that name the member.
#ifndef INLAY_SERVE_API_DOCUMENT_READER_H_
#define INLAY_SERVE_API_DOCUMENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

// A whole number within T's bounds, written as one (2.0 is none); nothing for any other value.
template <class T>
std::optional<T> IntegerOf(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (!json.is_number_unsigned() && json.get<int64_t>() < 0) {
    const auto value = json.get<int64_t>();
    if (value < static_cast<int64_t>(std::numeric_limits<T>::min())) return std::nullopt;
    return static_cast<T>(value);
  }
  const auto value = json.get<uint64_t>();
  if (value > static_cast<uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
  return static_cast<T>(value);
}

// A number that a float holds, rounded; nothing for any other value.
std::optional<float> FloatOf(const Json& json);

// Reads one object of a document. Unlike in requests (see FieldReader) every member that is asked
// for must be there, null is a value, and other members may be there. Errors are collected: the
// first one stays in `error`, and from then on the functions return values that mean nothing.
class DocumentReader {
 public:
  // `path` is how sentences name the object: "" for the document itself, "turns[2]". All must
  // outlive the reader. An error where `object` is none.
  DocumentReader(const Json& object, std::string path, absl::Status* error);

  // The member, of any type; null where it is absent.
  const Json& Any(absl::string_view key) const;
  // The member, which must be of the function's type. With an error: the type's empty value.
  const Json& List(absl::string_view key) const;
  const Json& Object(absl::string_view key) const;
  std::string Text(absl::string_view key) const;
  std::vector<std::string> Texts(absl::string_view key) const;
  bool Bool(absl::string_view key) const;
  float Float(absl::string_view key) const;
  template <class T>
  T Integer(absl::string_view key) const {
    const Json& value = Any(key);
    if (const std::optional<T> number = IntegerOf<T>(value)) return *number;
    FailInteger<T>(key, value);
    return T();
  }
  // Whole numbers.
  template <class T>
  std::vector<T> Integers(absl::string_view key) const {
    const Json& list = List(key);
    std::vector<T> numbers;
    numbers.reserve(list.size());
    for (const Json& value : list) {
      if (const std::optional<T> number = IntegerOf<T>(value)) {
        numbers.push_back(*number);
      } else {
        FailInteger<T>(absl::StrCat(key, "[", numbers.size(), "]"), value);
        return {};
      }
    }
    return numbers;
  }
  // The index of the member among `names`, one of which it must be.
  size_t Choice(absl::string_view key, absl::Span<const absl::string_view> names) const;
  // A reader of the member, which must be an object.
  DocumentReader Part(absl::string_view key) const;

  // An error about a member, whose name goes in front.
  void Fail(absl::string_view key, absl::string_view sentence) const;

  std::string Path(absl::string_view key) const;
  absl::Status* error() const { return error_; }

 private:
  void FailType(absl::string_view key, absl::string_view kind, const Json& value) const;
  template <class T>
  void FailInteger(absl::string_view key, const Json& value) const {
    FailType(key,
             absl::StrCat("a whole number from ", std::numeric_limits<T>::min(), " to ",
                          std::numeric_limits<T>::max()),
             value);
  }

  const Json& object_;
  const std::string path_;
  absl::Status* const error_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_DOCUMENT_READER_H_

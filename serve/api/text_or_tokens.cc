#include "serve/api/text_or_tokens.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace inlay::serve {

std::vector<int32_t> ReadTokens(const Json& list, const std::string& path, absl::Status* error) {
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  if (list.empty()) Complain(error, absl::StrCat(path, " must not be empty"));
  for (size_t i = 0; i < list.size() && error->ok(); ++i) {
    if (list[i].is_number_unsigned() && list[i].get<uint64_t>() <= kMost) {
      tokens.push_back(list[i].get<int32_t>());
      continue;
    }
    Complain(error, absl::StrCat(path, "[", i, "] must be the number of a token, 0 to ", kMost,
                                 ", not ", list[i].is_number() ? list[i].dump() : KindOf(list[i])));
  }
  return tokens;
}

std::vector<TextOrTokens> ReadTextsOrTokens(FieldReader& body, absl::string_view key, size_t most) {
  std::vector<TextOrTokens> inputs;
  const Json* const json = body.Find(key);
  if (json == nullptr) {
    body.Fail(key, "must be given");
  } else if (json->is_string()) {
    inputs.emplace_back(json->get<std::string>());
  } else if (!json->is_array()) {
    body.Fail(key, absl::StrCat("must be a string, a list of strings or a list of tokens, not ",
                                KindOf(*json)));
  } else if (json->empty()) {
    body.Fail(key, "must not be empty");
  } else if (json->front().is_number()) {
    inputs.emplace_back(ReadTokens(*json, body.Path(key), body.error()));
  } else if (json->size() > most) {
    body.Fail(key, absl::StrCat("has ", json->size(), " entries, more than ", most));
  } else {
    for (size_t i = 0; i < json->size() && body.error()->ok(); ++i) {
      const Json& item = (*json)[i];
      const std::string path = absl::StrCat(body.Path(key), "[", i, "]");
      if (item.is_string()) {
        inputs.emplace_back(item.get<std::string>());
      } else if (item.is_array()) {
        inputs.emplace_back(ReadTokens(item, path, body.error()));
      } else {
        Complain(body.error(),
                 absl::StrCat(path, " must be a string or a list of tokens, not ", KindOf(item)));
      }
    }
  }
  return inputs;
}

}  // namespace inlay::serve

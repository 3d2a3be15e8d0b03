// Making dicts of a template's values.
#ifndef INLAY_GEMMA_LIKE_CHAT_MESSAGE_DICT_H_
#define INLAY_GEMMA_LIKE_CHAT_MESSAGE_DICT_H_

#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay {

// A text that is as trusted as the template.
inline jinja::Value Key(absl::string_view name) {
  return jinja::Value::String(name, jinja::Origin::kTemplate);
}

// The dict, to which nothing is added any more.
inline jinja::Value Finished(std::shared_ptr<jinja::DictRep> dict) {
  dict->Finish(nullptr);
  return jinja::Value::Dict(std::move(dict));
}

// A message that may be changed.
inline std::shared_ptr<jinja::DictRep> CopyMessage(const jinja::Value& message) {
  auto copy = std::make_shared<jinja::DictRep>();
  for (const auto& [key, value] : message.dict().entries()) copy->Set(key, value);
  return copy;
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_MESSAGE_DICT_H_

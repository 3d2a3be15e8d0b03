// JSON as text that is always valid, whatever bytes its strings hold.
#ifndef INLAY_TOOLS_JSON_TEXT_H_
#define INLAY_TOOLS_JSON_TEXT_H_

#include <string>

#include "base/printable.h"
#include "nlohmann/json.hpp"

namespace inlay {

// Bytes that are not UTF-8 become U+FFFD; characters that control a terminal are escaped, which
// JSON reads as the same characters. `indent` < 0: one line. Ends with a newline.
inline std::string JsonText(const nlohmann::ordered_json& json, int indent = 2) {
  return Printable(
             json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "\n";
}

}  // namespace inlay

#endif  // INLAY_TOOLS_JSON_TEXT_H_

// What a model file says of the licence of its weights.
#ifndef INLAY_IO_GGUF_MODEL_LICENSE_H_
#define INLAY_IO_GGUF_MODEL_LICENSE_H_

#include <string>

#include "io/gguf/gguf.h"

namespace inlay {

// Each is empty where the file does not say it. Several licences are joined by ", ".
struct ModelLicense {
  std::string id;    // general.license: an SPDX expression, in lower case at most hubs, or "other"
  std::string name;  // general.license.name, where the id is none of SPDX's
  std::string link;  // general.license.link

  bool stated() const { return !id.empty() || !name.empty() || !link.empty(); }
  // On one line, escaped for printing: "other: Gemma (https://...)", or that it is not stated.
  std::string ToString() const;
};

// Metadata of other types than text count as missing.
ModelLicense LicenseOf(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_IO_GGUF_MODEL_LICENSE_H_

#include "io/gguf/model_license.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace inlay {
namespace {

std::string LicenseText(const GgufFile& file, absl::string_view key) {
  const GgufValue* const value = file.Find(key);
  return value == nullptr ? "" : absl::StrJoin(value->strings(), ", ");
}

}  // namespace

std::string ModelLicense::ToString() const {
  std::string text = id;
  if (!name.empty()) absl::StrAppend(&text, text.empty() ? "" : ": ", name);
  if (!link.empty()) absl::StrAppend(&text, text.empty() ? "" : " ", "(", link, ")");
  return text.empty() ? "not stated in the file" : PrintableName(text);
}

ModelLicense LicenseOf(const GgufFile& file) {
  return {.id = LicenseText(file, "general.license"),
          .name = LicenseText(file, "general.license.name"),
          .link = LicenseText(file, "general.license.link")};
}

}  // namespace inlay

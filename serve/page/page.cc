#include "serve/page/page.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/license_files.h"
#include "base/xxh64.h"
#include "serve/page/page_files.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kFolder = "/page/";
constexpr absl::string_view kIndex = "index.html";

// Scripts, styles and requests of this server alone; nothing in line, no frames, no forms, and no
// text that becomes HTML or a script (Trusted Types).
constexpr absl::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

const EmbeddedFile* FindFile(absl::string_view path) {
  absl::string_view name = path;
  if (path == "/") {
    name = kIndex;
  } else if (!absl::ConsumePrefix(&name, kFolder) || name == kIndex) {
    return nullptr;
  }
  for (const auto files : {PageFiles(), LicenseFiles()}) {
    for (const EmbeddedFile& file : files) {
      if (file.name == name) return &file;
    }
  }
  return nullptr;
}

absl::string_view TypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  if (absl::EndsWith(name, ".html")) return "text/html; charset=utf-8";
  return "text/plain; charset=utf-8";
}

}  // namespace

bool IsPagePath(absl::string_view path) { return FindFile(path) != nullptr; }

void ReplyPage(const HttpRequest& request, HttpReply& reply) {
  const EmbeddedFile* const file = FindFile(request.path);
  if (file == nullptr) return reply.Send(404, "text/plain", "there is no such file\n");
  const std::string tag = absl::StrCat(
      "\"", absl::Hex(Xxh64Of(file->content.data(), file->content.size(), 0), absl::kZeroPad16),
      "\"");
  HttpHeaders headers = {{"Cache-Control", "no-cache"},
                         {"ETag", tag},
                         {"Content-Security-Policy", std::string(kPolicy)},
                         {"Cross-Origin-Opener-Policy", "same-origin"},
                         {"Cross-Origin-Resource-Policy", "same-origin"},
                         {"Referrer-Policy", "no-referrer"}};
  if (absl::StrContains(request.Header("if-none-match"), tag))
    return reply.Send(304, TypeOf(file->name), "", std::move(headers));
  reply.Send(200, TypeOf(file->name), std::string(file->content), std::move(headers));
}

}  // namespace inlay::serve

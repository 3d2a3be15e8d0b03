// The web page at "/": files of this folder and the licences, which are in the binary.
#ifndef INLAY_SERVE_PAGE_PAGE_H_
#define INLAY_SERVE_PAGE_PAGE_H_

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// Whether the page has a file at this path: "/", "/page/main.js", "/page/NOTICE"...
bool IsPagePath(absl::string_view path);

// Replies with that file. Browsers keep it, and ask each time whether it has changed. The page may
// load nothing from elsewhere and run no text as a program (Content-Security-Policy).
void ReplyPage(const HttpRequest& request, HttpReply& reply);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PAGE_PAGE_H_

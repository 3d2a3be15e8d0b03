#include "io/download/curl_library.h"

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "io/download/shared_library.h"

namespace inlay {
namespace {

absl::StatusOr<CurlLibrary> LoadCurl() {
  constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  INLAY_ASSIGN_OR_RETURN(const SharedLibrary library, SharedLibrary::Load(kNames, "downloading"));
  CurlLibrary curl;
  decltype(curl_global_init)* global_init = nullptr;
  INLAY_RETURN_IF_ERROR(library.Find("curl_global_init", &global_init));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_init", &curl.easy_init));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_cleanup", &curl.easy_cleanup));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_reset", &curl.easy_reset));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_perform", &curl.easy_perform));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_strerror", &curl.easy_strerror));
  INLAY_RETURN_IF_ERROR(library.Find("curl_easy_setopt", &curl.easy_setopt));
  INLAY_RETURN_IF_ERROR(library.Find("curl_slist_append", &curl.slist_append));
  INLAY_RETURN_IF_ERROR(library.Find("curl_slist_free_all", &curl.slist_free_all));
  INLAY_RETURN_IF_ERROR(library.Find("curl_url", &curl.url));
  INLAY_RETURN_IF_ERROR(library.Find("curl_url_cleanup", &curl.url_cleanup));
  INLAY_RETURN_IF_ERROR(library.Find("curl_url_get", &curl.url_get));
  INLAY_RETURN_IF_ERROR(library.Find("curl_url_set", &curl.url_set));
  INLAY_RETURN_IF_ERROR(library.Find("curl_free", &curl.free));
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return absl::InternalError("libcurl cannot be initialized");
  return curl;
}

}  // namespace

absl::StatusOr<const CurlLibrary*> CurlLibrary::Get() {
  static const auto& curl = *new absl::StatusOr<CurlLibrary>(LoadCurl());
  if (!curl.ok()) return curl.status();
  return &*curl;
}

}  // namespace inlay

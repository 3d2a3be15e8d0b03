// libcurl's functions, loaded when the first download begins.
#ifndef INLAY_IO_DOWNLOAD_CURL_LIBRARY_H_
#define INLAY_IO_DOWNLOAD_CURL_LIBRARY_H_

#include <curl/curl.h>

#include "absl/status/statusor.h"

namespace inlay {

// The functions of curl/curl.h without "curl_". Options that take numbers take a long.
struct CurlLibrary {
  decltype(curl_easy_init)* easy_init = nullptr;
  decltype(curl_easy_cleanup)* easy_cleanup = nullptr;
  decltype(curl_easy_reset)* easy_reset = nullptr;
  decltype(curl_easy_perform)* easy_perform = nullptr;
  decltype(curl_easy_strerror)* easy_strerror = nullptr;
  CURLcode (*easy_setopt)(CURL* curl, CURLoption option, ...) = nullptr;
  decltype(curl_slist_append)* slist_append = nullptr;
  decltype(curl_slist_free_all)* slist_free_all = nullptr;
  decltype(curl_url)* url = nullptr;
  decltype(curl_url_cleanup)* url_cleanup = nullptr;
  decltype(curl_url_get)* url_get = nullptr;
  decltype(curl_url_set)* url_set = nullptr;
  decltype(curl_free)* free = nullptr;

  // The library with its global state initialized, by the first call. Unimplemented where the
  // system has no libcurl of at least version 7.62 (of October 2018).
  static absl::StatusOr<const CurlLibrary*> Get();
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_CURL_LIBRARY_H_

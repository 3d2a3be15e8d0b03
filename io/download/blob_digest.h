// The hash by which a hub names a file.
#ifndef INLAY_IO_DOWNLOAD_BLOB_DIGEST_H_
#define INLAY_IO_DOWNLOAD_BLOB_DIGEST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace inlay {

// Computed by OpenSSL's libcrypto, which is loaded by the first call of Begin.
class BlobDigest {
 public:
  enum class Kind {
    kSha256,  // of the bytes: files in Git LFS and its successors
    kGitBlob  // SHA-1 of "blob SIZE", a zero and the bytes: files in Git itself
  };
  // `size` is that of the whole file. Unimplemented where the system has no libcrypto.
  static absl::StatusOr<BlobDigest> Begin(Kind kind, uint64_t size);

  BlobDigest(BlobDigest&&) = default;
  BlobDigest& operator=(BlobDigest&&) = default;

  // Appends bytes.
  absl::Status Update(absl::Span<const uint8_t> bytes);
  // The hash of all bytes in hexadecimal digits, lower case. Call once, last.
  absl::StatusOr<std::string> Finish();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };
  explicit BlobDigest(void* context) : context_(context) {}

  std::unique_ptr<void, FreeContext> context_;  // an EVP_MD_CTX
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_BLOB_DIGEST_H_

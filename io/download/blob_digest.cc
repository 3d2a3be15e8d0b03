#include "io/download/blob_digest.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "io/download/shared_library.h"

namespace inlay {
namespace {

struct CryptoLibrary {
  decltype(EVP_MD_CTX_new)* context_new = nullptr;
  decltype(EVP_MD_CTX_free)* context_free = nullptr;
  decltype(EVP_sha256)* sha256 = nullptr;
  decltype(EVP_sha1)* sha1 = nullptr;
  decltype(EVP_DigestInit_ex)* init = nullptr;
  decltype(EVP_DigestUpdate)* update = nullptr;
  decltype(EVP_DigestFinal_ex)* final = nullptr;
};

absl::StatusOr<CryptoLibrary> LoadCrypto() {
  constexpr const char* kNames[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
  INLAY_ASSIGN_OR_RETURN(const SharedLibrary library,
                         SharedLibrary::Load(kNames, "checking a download"));
  CryptoLibrary crypto;
  INLAY_RETURN_IF_ERROR(library.Find("EVP_MD_CTX_new", &crypto.context_new));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_MD_CTX_free", &crypto.context_free));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_sha256", &crypto.sha256));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_sha1", &crypto.sha1));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_DigestInit_ex", &crypto.init));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_DigestUpdate", &crypto.update));
  INLAY_RETURN_IF_ERROR(library.Find("EVP_DigestFinal_ex", &crypto.final));
  return crypto;
}

const absl::StatusOr<CryptoLibrary>& Crypto() {
  static const auto& crypto = *new absl::StatusOr<CryptoLibrary>(LoadCrypto());
  return crypto;
}

absl::Status DigestFailed() { return absl::InternalError("libcrypto computes no hash"); }

}  // namespace

absl::StatusOr<BlobDigest> BlobDigest::Begin(Kind kind, uint64_t size) {
  INLAY_RETURN_IF_ERROR(Crypto().status());
  BlobDigest digest(Crypto()->context_new());
  if (digest.context_ == nullptr) return absl::ResourceExhaustedError("no memory for a hash");
  const EVP_MD* method = kind == Kind::kSha256 ? Crypto()->sha256() : Crypto()->sha1();
  auto* context = static_cast<EVP_MD_CTX*>(digest.context_.get());
  if (Crypto()->init(context, method, nullptr) != 1) return DigestFailed();
  if (kind == Kind::kSha256) return digest;
  const std::string header = absl::StrCat("blob ", size);
  INLAY_RETURN_IF_ERROR(digest.Update(
      {reinterpret_cast<const uint8_t*>(header.c_str()), header.size() + 1}));  // with its zero
  return digest;
}

void BlobDigest::FreeContext::operator()(void* context) const {
  Crypto()->context_free(static_cast<EVP_MD_CTX*>(context));
}

absl::Status BlobDigest::Update(absl::Span<const uint8_t> bytes) {
  auto* context = static_cast<EVP_MD_CTX*>(context_.get());
  if (Crypto()->update(context, bytes.data(), bytes.size()) == 1) return absl::OkStatus();
  return DigestFailed();
}

absl::StatusOr<std::string> BlobDigest::Finish() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (Crypto()->final(static_cast<EVP_MD_CTX*>(context_.get()), hash, &size) != 1)
    return DigestFailed();
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(hash), size));
}

}  // namespace inlay

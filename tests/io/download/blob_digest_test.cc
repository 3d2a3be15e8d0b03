#include "io/download/blob_digest.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"

namespace inlay {
namespace {

std::string DigestOf(BlobDigest::Kind kind, absl::string_view text) {
  auto digest = BlobDigest::Begin(kind, text.size());
  if (!digest.ok()) return std::string(digest.status().message());
  const auto bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t half = text.size() / 2;
  EXPECT_TRUE(digest->Update({bytes, half}).ok());
  EXPECT_TRUE(digest->Update({bytes + half, text.size() - half}).ok());
  return digest->Finish().value();
}

// The examples of FIPS 180-2.
TEST(BlobDigest, IsSha256) {
  EXPECT_EQ(DigestOf(BlobDigest::Kind::kSha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(DigestOf(BlobDigest::Kind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// What `git hash-object` prints.
TEST(BlobDigest, IsGitsNameOfABlob) {
  EXPECT_EQ(DigestOf(BlobDigest::Kind::kGitBlob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(DigestOf(BlobDigest::Kind::kGitBlob, "hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace inlay

#include "cache/serialize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian and written as it is in memory");

constexpr std::array<char, 8> kMagic = {'i', 'n', 'l', 'a', 'y', 'k', 'v', '\n'};

// A name as stored in a header, which has room for `bytes` bytes.
absl::string_view Cut(absl::string_view name, size_t bytes) { return name.substr(0, bytes); }

std::string HexText(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

}  // namespace

absl::Status SectionWriter::Append(const void* data, size_t bytes) {
  hash_.Update(data, bytes);
  return sink_.Append(AsBytes(data, bytes));
}

absl::Status SectionWriter::EndSection() {
  const uint64_t digest = hash_.Digest();
  hash_ = Xxh64(digest);
  return sink_.Append(AsBytes(&digest, sizeof(digest)));
}

absl::Status SectionReader::Read(void* into, size_t bytes) {
  // Hashed in pieces, each while it is still in the core's cache.
  constexpr size_t kPiece = 128 * 1024;
  auto* next = static_cast<uint8_t*>(into);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kPiece);
    absl::Status status = source_.Read({next, n});
    if (!status.ok()) {
      // OutOfRange is what does not fit into a cache; a source that ends too early is damaged.
      const bool cut = absl::IsOutOfRange(status);
      return absl::Status(cut ? absl::StatusCode::kDataLoss : status.code(),
                          absl::StrCat("the saved conversation's ", section_,
                                       " cannot be read: ", status.message()));
    }
    hash_.Update(next, n);
    next += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SectionReader::ReadUint() {
  uint64_t value = 0;
  if (absl::Status status = Read(&value, sizeof(value)); !status.ok()) return status;
  return value;
}

absl::Status SectionReader::EndSection() {
  const uint64_t computed = hash_.Digest();
  absl::StatusOr<uint64_t> stored = ReadUint();
  if (!stored.ok()) return stored.status();
  if (*stored != computed) {
    return Damaged(absl::StrCat("the checksum is ", HexText(computed), ", not ", HexText(*stored)));
  }
  hash_ = Xxh64(computed);
  return absl::OkStatus();
}

absl::Status SectionReader::BeginLayer(int index) {
  BeginSection(absl::StrCat("layer ", index));
  absl::StatusOr<uint64_t> number = ReadUint();
  if (!number.ok()) return number.status();
  if (*number != static_cast<uint64_t>(index)) {
    return Damaged(absl::StrCat("the number of its section is ", *number));
  }
  return absl::OkStatus();
}

absl::Status SectionReader::ReadSize(uint64_t bytes) {
  absl::StatusOr<uint64_t> size = ReadUint();
  if (!size.ok()) return size.status();
  if (*size != bytes) return Damaged(absl::StrCat("it has ", *size, " bytes, not ", bytes));
  if (source_.remaining() < bytes) {
    return absl::DataLossError(absl::StrCat("the saved conversation's ", section_, " has ", bytes,
                                            " bytes, but only ", source_.remaining(), " are left"));
  }
  return absl::OkStatus();
}

absl::Status SectionReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("the saved conversation's ", section_, " is damaged: ", what));
}

absl::Status WriteHeader(const CacheIdentity& identity, uint64_t length, SectionWriter& writer) {
  // Assembled first, so that the sink gets one large Append.
  std::array<char, kSavedHeaderBytes - sizeof(uint64_t)> bytes{};
  char* next = bytes.data();
  const auto put = [&next](const void* data, size_t size) {
    std::memcpy(next, data, size);
    next += size;
  };
  const auto put_name = [&next](absl::string_view name, size_t size) {
    name = Cut(name, size);
    std::memcpy(next, name.data(), name.size());
    next += size;
  };
  const auto type = static_cast<uint32_t>(identity.kv_type);
  put(kMagic.data(), kMagic.size());
  put(&kSavedVersion, sizeof(kSavedVersion));
  put(&type, sizeof(type));
  put(&identity.fingerprint, sizeof(uint64_t));
  put(&identity.model.weights_hash, sizeof(uint64_t));
  put(&length, sizeof(length));
  put_name(identity.config_name, kSavedNameBytes);
  put(&identity.model.numerics_version, sizeof(uint32_t));
  put_name(identity.model.instruction_set, kSavedTargetBytes);
  INLAY_RETURN_IF_ERROR(writer.Append(bytes.data(), bytes.size()));
  return writer.EndSection();
}

absl::StatusOr<SavedHeader> ReadHeader(SectionReader& reader) {
  reader.BeginSection("header");
  std::array<char, kMagic.size()> magic;
  INLAY_RETURN_IF_ERROR(reader.Read(magic.data(), magic.size()));
  if (magic != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is no saved conversation: it begins with '",
                     absl::CHexEscape(absl::string_view(magic.data(), magic.size())), "', not '",
                     absl::CHexEscape(absl::string_view(kMagic.data(), kMagic.size())), "'"));
  }
  SavedHeader header;
  INLAY_RETURN_IF_ERROR(reader.Read(&header.version, sizeof(header.version)));
  if (header.version == 0 || header.version > kSavedVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the saved conversation has version ", header.version,
                     " of the format; this program reads those up to ", kSavedVersion));
  }
  absl::Status status;
  const auto get = [&](void* into, size_t size) {
    if (status.ok()) status = reader.Read(into, size);
  };
  const auto get_name = [&](size_t size) {
    std::string name(size, '\0');
    get(name.data(), size);
    return name.substr(0, name.find('\0'));
  };
  uint32_t type = 0;
  get(&type, sizeof(type));
  get(&header.fingerprint, sizeof(uint64_t));
  get(&header.model.weights_hash, sizeof(uint64_t));
  get(&header.length, sizeof(uint64_t));
  header.config_name = get_name(kSavedNameBytes);
  if (header.version >= 3) {
    get(&header.model.numerics_version, sizeof(uint32_t));
    header.model.instruction_set = get_name(kSavedTargetBytes);
  }
  INLAY_RETURN_IF_ERROR(status);
  INLAY_RETURN_IF_ERROR(reader.EndSection());
  if (type > static_cast<uint32_t>(KvType::kQ8)) {
    return reader.Damaged(absl::StrCat("its type of rows is ", type));
  }
  header.kv_type = static_cast<KvType>(type);
  return header;
}

bool SameConfig(const CacheIdentity& mine, const SavedHeader& saved) {
  return saved.config_name == Cut(mine.config_name, kSavedNameBytes);
}

std::string Difference(const CacheIdentity& mine, const SavedHeader& saved) {
  if (!SameConfig(mine, saved)) {
    return absl::StrCat("it is of config ", absl::CHexEscape(saved.config_name), ", not ",
                        mine.config_name);
  }
  if (saved.version != kSavedVersion) {
    return absl::StrCat("it has version ", saved.version, " of the format, not ", kSavedVersion);
  }
  if (saved.kv_type != mine.kv_type) {
    return absl::StrCat("its rows are ", KvTypeName(saved.kv_type), ", not ",
                        KvTypeName(mine.kv_type));
  }
  if (saved.fingerprint != mine.fingerprint) {
    return absl::StrCat("its layout has the fingerprint ", HexText(saved.fingerprint), ", not ",
                        HexText(mine.fingerprint),
                        ": it is of another number of ranks, or of another program");
  }
  if (saved.model.weights_hash != mine.model.weights_hash) {
    return absl::StrCat("it is of weights with the hash ", HexText(saved.model.weights_hash),
                        ", not ", HexText(mine.model.weights_hash));
  }
  if (saved.model.numerics_version == kNoRows) return "only its tokens were saved";
  if (saved.model.numerics_version != mine.model.numerics_version) {
    return absl::StrCat("it was computed with version ", saved.model.numerics_version,
                        " of the numerics, not ", mine.model.numerics_version);
  }
  if (saved.model.instruction_set != Cut(mine.model.instruction_set, kSavedTargetBytes)) {
    return absl::StrCat("it was computed on ", absl::CHexEscape(saved.model.instruction_set),
                        ", not ", mine.model.instruction_set);
  }
  return "";
}

}  // namespace inlay

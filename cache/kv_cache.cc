#include "cache/kv_cache.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/token_ids.h"
#include "cache/block_pool.h"
#include "cache/cache_follower.h"
#include "cache/serialize.h"

namespace inlay {
namespace {

constexpr absl::string_view kThis = "this conversation";

}  // namespace

KVCache::~KVCache() {
  if (follower_ != nullptr) follower_->Dropped(*this);
}

void KVCache::SetFollower(std::shared_ptr<CacheFollower> follower) {
  follower_ = std::move(follower);
}

absl::Status KVCache::CheckIdle(absl::string_view done) const {
  if (pool_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cache cannot be ", done, ": it was moved from"));
  }
  if (open_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cache cannot be ", done, " while a transaction is open"));
  }
  return absl::OkStatus();
}

absl::Status KVCache::CheckAllParts(absl::string_view done) const {
  if (traits_.parts == 1 || follower_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the cache cannot be ", done, ": it has one of ", traits_.parts,
                   " ranks' parts of the layers, and no follower that reaches the others"));
}

absl::StatusOr<Transaction> KVCache::Begin(absl::Span<const int32_t> tokens) {
  INLAY_RETURN_IF_ERROR(CheckIdle("appended to"));
  if (tokens.empty() || tokens.size() > max_append()) {
    return absl::InvalidArgumentError(absl::StrCat("an append of ", tokens.size(),
                                                   " tokens is not between 1 and ", max_append()));
  }
  if (tokens.size() > max_length() - length()) {
    return absl::OutOfRangeError(absl::StrCat("the conversation has ", length(),
                                              " tokens and no room for ", tokens.size(),
                                              " more: its limit is ", max_length()));
  }
  const absl::Status status = OrOutOfMemory(kThis, [&] {
    absl::Status prepared = PrepareLayers(tokens.size());
    if (!prepared.ok()) return prepared;
    tokens_.Truncate(length_);  // of before a rewind
    tokens_.Append(tokens);
    return prepared;
  });
  if (!status.ok()) {
    AbortLayers();
    return status;
  }
  open_ = true;
  return Transaction(this);
}

absl::Status KVCache::Rewind(size_t position) {
  INLAY_RETURN_IF_ERROR(CheckIdle("rewound"));
  if (position > length()) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position,
                                              ": the conversation has ", length(), " tokens"));
  }
  if (position == length()) return absl::OkStatus();
  if (!CanRewindTo(position)) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position, ": with ",
                                              length(), " tokens, the lowest position possible is ",
                                              RewindFloor(), ", or 0"));
  }
  // The next append drops the tokens, which takes memory where a fork shares them.
  if (follower_ != nullptr) INLAY_RETURN_IF_ERROR(follower_->Rewound(*this, position));
  TruncateLayers(position);
  length_ = position;
  floor_ = std::min(floor_, position);
  return absl::OkStatus();
}

absl::Status KVCache::Trim(size_t rewind) {
  INLAY_RETURN_IF_ERROR(CheckIdle("trimmed"));
  if (follower_ != nullptr) INLAY_RETURN_IF_ERROR(follower_->Trimmed(*this, rewind));
  TrimLayers(rewind);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KVCache>> KVCache::Fork() const {
  INLAY_RETURN_IF_ERROR(CheckIdle("forked"));
  return OrOutOfMemory("a fork of this conversation",
                       [&]() -> absl::StatusOr<std::unique_ptr<KVCache>> {
                         std::unique_ptr<KVCache> fork = Copy();
                         if (follower_ == nullptr) return fork;
                         INLAY_RETURN_IF_ERROR(follower_->Forked(*this, *fork));
                         fork->follower_ = follower_;
                         return fork;
                       });
}

CacheIdentity KVCache::Identity(const ModelIdentity& model) const {
  return {.config_name = config_name(),
          .kv_type = traits_.kv_type,
          .fingerprint = traits_.fingerprint,
          .model = model};
}

absl::Status KVCache::Save(const ModelIdentity& model, ByteSink& sink) const {
  INLAY_RETURN_IF_ERROR(CheckIdle("saved"));
  INLAY_RETURN_IF_ERROR(CheckAllParts("saved"));
  return OrOutOfMemory(kThis, [&]() -> absl::Status {
    SectionWriter writer(sink);
    INLAY_RETURN_IF_ERROR(WriteTokens(model, writer));
    if (traits_.parts > 1) return follower_->SaveParts(*this, writer.seed(), sink);
    return SaveLayers(writer);
  });
}

absl::Status KVCache::SavePart(uint64_t seed, ByteSink& sink) const {
  SectionWriter writer(sink, seed);
  return SaveLayers(writer);
}

absl::Status KVCache::SaveTokens(const ModelIdentity& model, ByteSink& sink) const {
  INLAY_RETURN_IF_ERROR(CheckIdle("saved"));
  return OrOutOfMemory(kThis, [&]() -> absl::Status {
    ModelIdentity without_rows = model;
    without_rows.numerics_version = kNoRows;
    SectionWriter writer(sink);
    return WriteTokens(without_rows, writer);
  });
}

absl::Status KVCache::WriteTokens(const ModelIdentity& model, SectionWriter& writer) const {
  INLAY_RETURN_IF_ERROR(WriteHeader(Identity(model), length_, writer));
  INLAY_RETURN_IF_ERROR(writer.Append(tokens().data(), length_ * sizeof(int32_t)));
  return writer.EndSection();
}

absl::StatusOr<std::vector<int32_t>> KVCache::LoadTokens(SectionReader& reader,
                                                         size_t length) const {
  reader.BeginSection("list of tokens");
  // Checked before memory is allocated for the tokens.
  if (reader.remaining() / sizeof(int32_t) < length) {
    return absl::DataLossError(absl::StrCat("the saved conversation has ", length,
                                            " tokens, but only ", reader.remaining(),
                                            " bytes follow its header"));
  }
  std::vector<int32_t> tokens(length);
  INLAY_RETURN_IF_ERROR(reader.Read(tokens.data(), length * sizeof(int32_t)));
  INLAY_RETURN_IF_ERROR(reader.EndSection());
  const absl::Status ids = CheckIds(tokens, traits_.vocab_size);
  if (!ids.ok()) return reader.Damaged(ids.message());
  return tokens;
}

absl::StatusOr<LoadOutcome> KVCache::Load(const ModelIdentity& model, ByteSource& source) {
  INLAY_RETURN_IF_ERROR(CheckIdle("loaded"));
  return OrOutOfMemory(kThis, [&] { return LoadAll(model, source); });
}

absl::StatusOr<LoadOutcome> KVCache::LoadAll(const ModelIdentity& model, ByteSource& source) {
  SectionReader reader(source);
  INLAY_ASSIGN_OR_RETURN(const SavedHeader header, ReadHeader(reader));
  const CacheIdentity identity = Identity(model);
  std::string difference = Difference(identity, header);
  if (!SameConfig(identity, header)) {
    // The tokens are of no use either: their ids may belong to another vocabulary.
    return absl::InvalidArgumentError(
        absl::StrCat("the saved conversation cannot be continued: ", difference));
  }
  if (header.length > max_length()) {
    return absl::OutOfRangeError(absl::StrCat("the saved conversation has ", header.length,
                                              " tokens; the limit here is ", max_length()));
  }
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, LoadTokens(reader, header.length));
  if (!difference.empty()) {
    return LoadOutcome{.difference = std::move(difference), .tokens = std::move(tokens)};
  }

  INLAY_RETURN_IF_ERROR(CheckAllParts("loaded"));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> loaded, Fork());
  INLAY_RETURN_IF_ERROR(traits_.parts > 1
                            ? follower_->LoadParts(*loaded, reader.seed(), tokens, source)
                            : loaded->LoadRows(std::move(tokens), reader));
  if (reader.remaining() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.remaining(), " bytes follow the end of the saved conversation"));
  }
  INLAY_RETURN_IF_ERROR(Restore(std::move(*loaded)));
  return LoadOutcome();
}

absl::Status KVCache::LoadRows(std::vector<int32_t> tokens, SectionReader& reader) {
  INLAY_RETURN_IF_ERROR(LoadLayers(reader, tokens.size()));
  length_ = tokens.size();
  floor_ = 0;
  tokens_ = TokenList(std::move(tokens));
  return absl::OkStatus();
}

absl::Status KVCache::LoadPart(uint64_t seed, std::vector<int32_t> tokens, ByteSource& source) {
  return OrOutOfMemory(kThis, [&] {
    SectionReader reader(source, seed);
    return LoadRows(std::move(tokens), reader);
  });
}

absl::Status KVCache::Restore(KVCache&& snapshot) {
  INLAY_RETURN_IF_ERROR(CheckIdle("restored"));
  INLAY_RETURN_IF_ERROR(snapshot.CheckIdle("a snapshot to restore"));
  if (snapshot.traits_.fingerprint != traits_.fingerprint) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a snapshot of config ", snapshot.config_name(), " with ", KvTypeName(snapshot.kv_type()),
        " rows cannot be restored into a cache of config ", config_name(), " with ",
        KvTypeName(kv_type()), " rows"));
  }
  if (snapshot.pool_ != pool_) {
    return absl::InvalidArgumentError(
        "a snapshot whose blocks are of another pool cannot be restored: the pool of this cache "
        "would no longer limit its memory");
  }
  if (snapshot.length() > max_length()) {
    return absl::OutOfRangeError(absl::StrCat("the snapshot has ", snapshot.length(),
                                              " tokens; the limit here is ", max_length()));
  }
  if (follower_ != nullptr) INLAY_RETURN_IF_ERROR(follower_->Replaced(*this, snapshot));
  const Traits own = traits_;
  MoveFrom(std::move(snapshot));
  traits_ = own;  // the snapshot's differ in max_length and vocab_size at most
  return absl::OkStatus();
}

size_t KVCache::allocated_bytes() const {
  size_t bytes = 0;
  VisitBlocks([&](const void*, size_t block_bytes) { bytes += block_bytes; });
  return bytes;
}

void Transaction::Commit() {
  assert(cache_ != nullptr && "a transaction can be committed once");
  cache_->CommitLayers(cache_->tokens_.size());
  cache_->length_ = cache_->tokens_.size();
  cache_->open_ = false;
  cache_ = nullptr;
}

Transaction::~Transaction() {
  if (cache_ == nullptr) return;
  cache_->AbortLayers();
  cache_->tokens_.Truncate(cache_->length_);
  cache_->open_ = false;
}

}  // namespace inlay

#include "serve/sessions/session_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/json/parse_json.h"
#include "serve/api/document_reader.h"
#include "serve/sessions/session_json.h"

namespace inlay::serve {
namespace {

// A state: StateHead, the summary and the document as JSON.
struct StateHead {
  std::array<char, 8> magic = {'i', 'n', 'l', 'a', 'y', 'S', 'e', '1'};
  uint64_t summary_bytes = 0;
  uint64_t document_bytes = 0;
  uint64_t checksum = 0;  // of the summary and the document, with Seed()

  // The head's own figures count too.
  uint64_t Seed() const { return summary_bytes * 31 + document_bytes; }
};
static_assert(sizeof(StateHead) == 32);

constexpr uint64_t kMostSummary = 4096;

// Calls `read` until no other server has replaced the state while it was read. A turn takes longer
// to compute than a session to read, so a few times are enough.
template <class Read>
auto ReadWhole(Read read) {
  auto result = read();
  for (int again = 0; again < 5 && absl::IsAborted(result.status()); ++again) result = read();
  return result;
}

constexpr absl::string_view kPrefix = "s.";

// Other programs' states may begin with kPrefix, too.
bool IsSessionKey(absl::string_view key) {
  constexpr size_t kDigits = 32;
  return absl::ConsumePrefix(&key, kPrefix) && key.size() > kDigits + 1 && key[kDigits] == '.' &&
         std::all_of(key.begin(), key.begin() + kDigits,
                     [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

// 128 bits of hash, so that two clients never share keys.
std::string PrefixOf(absl::string_view client) {
  const uint64_t first = Xxh64Of(client.data(), client.size(), 1);
  const uint64_t second = Xxh64Of(client.data(), client.size(), 2);
  return absl::StrCat(kPrefix, absl::Hex(first, absl::kZeroPad16),
                      absl::Hex(second, absl::kZeroPad16), ".");
}

std::string KeyOf(absl::string_view client, absl::string_view name) {
  return absl::StrCat(PrefixOf(client), name);
}

absl::Status NoSession(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no session ", name));
}

absl::Status AlreadyThere(absl::string_view name) {
  return absl::AlreadyExistsError(absl::StrCat("the session ", name, " exists already"));
}

// A stored session as errors name it.
struct StoredSession {
  const std::string& key;
  absl::string_view name;
  StoreErrors& errors;

  // DataLoss, of which the operator is told: the session `what`.
  absl::Status Unreadable(absl::string_view what) const {
    absl::Status status = absl::DataLossError(absl::StrCat("the stored session ", name, " ", what));
    errors.NoteUnreadable(key, status);
    return status;
  }
  absl::Status Damaged(absl::string_view what) const {
    return Unreadable(absl::StrCat("is damaged: it ", what));
  }
};

// The `size` bytes of a part of the state, which were claimed but may not be there.
absl::StatusOr<std::string> ReadText(absl::string_view part, uint64_t size, uint64_t most,
                                     ByteSource& reader, const StoredSession& stored) {
  if (size > most)
    return stored.Damaged(absl::StrCat("has a ", part, " of ", size, " bytes, more than ", most));
  if (size > reader.remaining()) return stored.Damaged("is shorter than it says");
  std::string text(static_cast<size_t>(size), '\0');
  INLAY_RETURN_IF_ERROR(
      stored.errors.OfStore(reader.Read({reinterpret_cast<uint8_t*>(text.data()), text.size()})));
  return text;
}

absl::StatusOr<StateHead> ReadHead(ByteSource& reader, const StoredSession& stored) {
  StateHead head;
  if (reader.remaining() < sizeof(head)) return stored.Damaged("is cut off");
  INLAY_RETURN_IF_ERROR(
      stored.errors.OfStore(reader.Read({reinterpret_cast<uint8_t*>(&head), sizeof(head)})));
  constexpr StateHead kOurs{};
  if (head.magic == kOurs.magic) return head;
  // The last character is the format's.
  const bool other_format =
      std::equal(head.magic.begin(), head.magic.end() - 1, kOurs.magic.begin());
  return other_format ? stored.Unreadable("was written by another version of Inlay")
                      : stored.Damaged("does not begin as one");
}

absl::StatusOr<Session> ReadSession(StateReader& reader, uint64_t most_bytes,
                                    const StoredSession& stored) {
  INLAY_ASSIGN_OR_RETURN(const StateHead head, ReadHead(reader, stored));
  INLAY_ASSIGN_OR_RETURN(const std::string summary,
                         ReadText("summary", head.summary_bytes, kMostSummary, reader, stored));
  INLAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadText("document", head.document_bytes, most_bytes, reader, stored));
  Xxh64 hash(head.Seed());
  hash.Update(summary.data(), summary.size());
  hash.Update(text.data(), text.size());
  if (hash.Digest() != head.checksum) return stored.Damaged("has another checksum than it says");
  const absl::StatusOr<JsonDocument> document = ParseJson("the document", text);
  absl::StatusOr<Session> session =
      document.ok() ? ParseSession(**document) : absl::StatusOr<Session>(document.status());
  if (absl::IsInvalidArgument(session.status()))
    return stored.Unreadable(absl::StrCat("cannot be read: ", session.status().message()));
  if (session.ok() && session->name != stored.name)
    return stored.Damaged(absl::StrCat("has the name ", session->name));
  return session;
}

std::string SummaryText(const Session& session) {
  return DumpJson({{"version", session.version},
                   {"length", session.length()},
                   {"created", session.created},
                   {"updated", session.updated},
                   {"title", session.Title()},
                   {"root", session.root}});
}

absl::StatusOr<SessionSummary> ReadSummary(const StateBeginning& state,
                                           const StoredSession& stored) {
  SessionSummary summary;
  MemorySource reader(AsBytes(state.bytes));
  INLAY_ASSIGN_OR_RETURN(const StateHead head, ReadHead(reader, stored));
  INLAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadText("summary", head.summary_bytes, kMostSummary, reader, stored));
  const absl::StatusOr<JsonDocument> document = ParseJson("the summary", text);
  if (absl::IsInvalidArgument(document.status()))
    return stored.Unreadable(absl::StrCat("cannot be read: ", document.status().message()));
  INLAY_RETURN_IF_ERROR(document.status());
  absl::Status error;
  const DocumentReader json(**document, "the summary", &error);
  summary.version = json.Integer<uint64_t>("version");
  summary.length = json.Integer<size_t>("length");
  summary.created = json.Integer<int64_t>("created");
  summary.updated = json.Integer<int64_t>("updated");
  summary.title = json.Text("title");
  summary.root = json.Text("root");
  if (!error.ok()) return stored.Unreadable(absl::StrCat("cannot be read: ", error.message()));
  return summary;
}

}  // namespace

SessionStore::Hold::~Hold() {
  if (store_ != nullptr) store_->Release(key_);
}

void SessionStore::Release(const std::string& key) {
  const std::lock_guard lock(mutex_);
  held_.erase(key);
}

absl::StatusOr<SessionStore::Hold> SessionStore::Acquire(absl::string_view client,
                                                         absl::string_view name) {
  INLAY_RETURN_IF_ERROR(CheckSessionName(name));
  if (std::optional<Hold> hold = TryHold(KeyOf(client, name))) return *std::move(hold);
  return absl::AbortedError(absl::StrCat(
      "the session ", name, " is being changed by another request: try again when it has ended"));
}

std::optional<SessionStore::Hold> SessionStore::TryHold(std::string key) {
  const std::lock_guard lock(mutex_);
  if (!held_.insert(key).second) return std::nullopt;
  return Hold(this, std::move(key));
}

absl::StatusOr<Session> SessionStore::Load(absl::string_view client, absl::string_view name) {
  INLAY_RETURN_IF_ERROR(CheckSessionName(name));
  INLAY_ASSIGN_OR_RETURN(auto loaded, LoadTagged(KeyOf(client, name), name));
  return std::move(loaded.first);
}

absl::StatusOr<Session> SessionStore::Load(Hold& hold, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(auto loaded, LoadTagged(hold.key_, name));
  hold.replaces_ = loaded.second;
  return std::move(loaded.first);
}

absl::StatusOr<std::pair<Session, StateTag>> SessionStore::LoadTagged(const std::string& key,
                                                                      absl::string_view name) {
  using Loaded = std::pair<Session, StateTag>;
  return gate_.Run([&] {
    return ReadWhole([&]() -> absl::StatusOr<Loaded> {
      const auto reader = store_->Get(key);
      if (errors_.IsNotThere(reader.status())) return NoSession(name);
      INLAY_RETURN_IF_ERROR(errors_.OfStore(reader.status()));
      INLAY_ASSIGN_OR_RETURN(Session session,
                             ReadSession(**reader, limits_.most_bytes, {key, name, errors_}));
      // It was read all the same where that fails.
      if (limits_.ttl > absl::ZeroDuration()) store_->MarkUsed(key).IgnoreError();
      return Loaded(std::move(session), (*reader)->tag());
    });
  });
}

absl::Status SessionStore::Create(const Hold& hold, absl::string_view client,
                                  const Session& session) {
  return gate_.Run([&] { return CountAndCreate(hold, client, session); });
}

absl::Status SessionStore::CountAndCreate(const Hold& hold, absl::string_view client,
                                          const Session& session) {
  const std::lock_guard lock(creating_);
  const std::string prefix = PrefixOf(client);
  const absl::StatusOr<size_t> count = store_->Count(prefix);
  INLAY_RETURN_IF_ERROR(errors_.OfStore(count.status()));
  // A list may be long, so it is asked for only where it decides.
  if (*count >= limits_.most_sessions) {
    const absl::StatusOr<std::vector<std::string>> keys = store_->List(prefix);
    INLAY_RETURN_IF_ERROR(errors_.OfStore(keys.status()));
    if (std::binary_search(keys->begin(), keys->end(), hold.key_))
      return AlreadyThere(session.name);
    if (keys->size() >= limits_.most_sessions) {
      return absl::PermissionDeniedError(
          absl::StrCat("there are ", keys->size(), " sessions of this client, and may be no more ",
                       "than ", limits_.most_sessions, ": delete some, or use another API key"));
    }
  }
  const absl::Status status = Save(hold, session);
  return absl::IsAborted(status) ? AlreadyThere(session.name) : status;
}

absl::Status SessionStore::Save(const Hold& hold, const Session& session) {
  return OrOutOfMemory("this session", [&]() -> absl::Status {
    const std::string summary = SummaryText(session);
    const std::string document = DumpJson(SessionDocument(session));
    if (document.size() > limits_.most_bytes) {
      return absl::OutOfRangeError(absl::StrCat("the session ", session.name, " would have ",
                                                document.size(), " bytes, more than ",
                                                limits_.most_bytes));
    }
    StateHead head;
    head.summary_bytes = summary.size();
    head.document_bytes = document.size();
    Xxh64 hash(head.Seed());
    hash.Update(summary.data(), summary.size());
    hash.Update(document.data(), document.size());
    head.checksum = hash.Digest();
    const absl::Status status = [&]() -> absl::Status {
      INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer,
                             store_->PutOver(hold.key_, hold.replaces_));
      INLAY_RETURN_IF_ERROR(
          writer->Append({reinterpret_cast<const uint8_t*>(&head), sizeof(head)}));
      INLAY_RETURN_IF_ERROR(writer->Append(AsBytes(summary)));
      INLAY_RETURN_IF_ERROR(writer->Append(AsBytes(document)));
      return writer->Commit();
    }();
    if (!absl::IsAborted(status)) return errors_.OfStore(status);
    return absl::AbortedError(absl::StrCat("the session ", session.name,
                                           " was changed or deleted by another server meanwhile"));
  });
}

absl::Status SessionStore::Delete(const Hold& hold, absl::string_view name) {
  return gate_.Run([&] {
    const absl::Status status = store_->Delete(hold.key_);
    return errors_.IsNotThere(status) ? NoSession(name) : errors_.OfStore(status);
  });
}

absl::StatusOr<std::vector<SessionSummary>> SessionStore::List(absl::string_view client) {
  return gate_.Run([&] { return ReadList(client); });
}

absl::StatusOr<std::vector<SessionSummary>> SessionStore::ReadList(absl::string_view client) {
  const std::string prefix = PrefixOf(client);
  const absl::StatusOr<std::vector<std::string>> keys = store_->List(prefix);
  INLAY_RETURN_IF_ERROR(errors_.OfStore(keys.status()));
  std::vector<SessionSummary> sessions;
  for (const std::string& key : *keys) {
    const absl::string_view name = absl::StripPrefix(key, prefix);
    uint64_t bytes = 0;
    absl::StatusOr<SessionSummary> summary = ReadWhole([&]() -> absl::StatusOr<SessionSummary> {
      // A session may have a thousand times as much.
      const auto state = store_->ReadBeginning(key, sizeof(StateHead) + kMostSummary);
      if (errors_.IsNotThere(state.status())) return state.status();
      INLAY_RETURN_IF_ERROR(errors_.OfStore(state.status()));
      bytes = state->state_bytes;
      return ReadSummary(*state, {key, name, errors_});
    });
    // This one was deleted or is replaced meanwhile.
    if (absl::IsNotFound(summary.status()) || absl::IsAborted(summary.status())) continue;
    // Still its client's, who would miss it, and may delete it.
    if (absl::IsDataLoss(summary.status())) {
      std::string why(summary.status().message());
      summary.emplace().unreadable = std::move(why);
    }
    // A list that lacks sessions says that they are gone.
    INLAY_RETURN_IF_ERROR(summary.status());
    summary->name = std::string(name);
    summary->bytes = bytes;
    sessions.push_back(*std::move(summary));
  }
  return sessions;
}

void SessionStore::RemoveUnused(const std::function<bool()>& stop) noexcept {
  if (limits_.ttl <= absl::ZeroDuration()) return;
  // Without memory the next time will do.
  OrOutOfMemory("unused sessions", [&] {
    const absl::StatusOr<std::vector<std::string>> keys = store_->ListUnused(kPrefix, limits_.ttl);
    // An empty list is no sign of life: on Redis nobody was asked.
    if (!keys.ok()) return errors_.OfStore(keys.status());
    for (const std::string& key : *keys) {
      if (stop()) break;
      if (!IsSessionKey(key)) continue;
      const std::optional<Hold> hold = TryHold(key);
      // An error is told, and keeps no others from being removed.
      if (hold.has_value()) errors_.OfStore(store_->DeleteUnused(key, limits_.ttl)).IgnoreError();
    }
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace inlay::serve

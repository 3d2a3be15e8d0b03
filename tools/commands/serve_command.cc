// inlay serve: answers clients over HTTP.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/about.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/unwinding_memory.h"
#include "gemma_like/generation/speculate.h"
#include "serve/http/descriptor_limit.h"
#include "serve/http/http_server.h"
#include "serve/service/access_log.h"
#include "serve/service/answer_log.h"
#include "serve/service/api_keys.h"
#include "serve/service/service.h"
#include "tools/commands/commands.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/draft_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/service_flags.h"
#include "tools/flags/session_store_flag.h"
#include "tools/flags/shared_prefixes_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/output.h"
#include "tools/read_input.h"
#include "tools/service_manager.h"

namespace inlay {
namespace {

using serve::AccessLog;
using serve::AnswerLog;
using serve::ApiKeys;
using serve::HttpOptions;
using serve::HttpServer;
using serve::Service;
using serve::ServiceOptions;

struct ServeFlags {
  ModelFlags model;
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string key_file;
  bool no_key = false;
  bool open_metrics = false;
  std::vector<std::string> hosts, origins;
  ServiceFlags service;
  size_t queue = 256;
  DraftFlags draft;
  double timeout = 0;  // seconds; 0: none
  double drain = 30;   // seconds
  std::string answer_log, access_log;
  SessionStoreFlags sessions;
  SharedPrefixesFlags shared_prefixes;
  bool no_page = false;
  bool own_sessions_only = false;
  bool share_prefixes = false;
  bool keep_billing_line = false;
};

// Whether no other machine can reach the address. A name such as 127.example.org may be any
// address.
bool IsLoopback(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

// A name as a request's Host is compared with it: what no Host can be is a mistake.
std::string CheckHostName(const std::string& value) {
  const auto colons = std::count(value.begin(), value.end(), ':');  // an IPv6 address has several
  if (!value.empty() && colons != 1 && value.back() != '.' &&
      value.find_first_of("/[]@ ") == std::string::npos)
    return "";
  return absl::StrCat(QuoteForMessage(value),
                      " is not a name alone, without scheme, port, brackets and path: example.org");
}

// The same for a page's Origin, which browsers send without the scheme's own port.
std::string CheckOrigin(const std::string& value) {
  if (value == "*" || value == "null") return "";
  const std::vector<std::string> parts = absl::StrSplit(value, absl::MaxSplits("://", 1));
  const bool is_origin = parts.size() == 2 && !parts[0].empty() && !parts[1].empty() &&
                         parts[1].find_first_of("/?#@ ") == std::string::npos &&
                         !(parts[0] == "http" && absl::EndsWith(parts[1], ":80")) &&
                         !(parts[0] == "https" && absl::EndsWith(parts[1], ":443"));
  if (is_origin) return "";
  return absl::StrCat(QuoteForMessage(value),
                      " is not an origin as browsers send it, scheme and host without a path and "
                      "the scheme's own port: https://example.org");
}

// The keys of --api-key-file or $INLAY_API_KEY.
absl::Status ReadKeys(const ServeFlags& flags, ApiKeys& keys) {
  if (flags.key_file.empty()) {
    const char* key = std::getenv("INLAY_API_KEY");
    return key == nullptr ? absl::OkStatus() : About("INLAY_API_KEY", keys.Replace(key));
  }
  INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(flags.key_file));
  INLAY_ASSIGN_OR_RETURN(const std::string text, file.ReadAll());
  return About(flags.key_file, keys.Replace(text));
}

// What would fail with the first request instead of now.
absl::Status CheckSandbox(const ServeFlags& flags) {
  if (!flags.model.sandbox) return absl::OkStatus();
  const auto refused = [](absl::string_view flag) {
    return UsageError(absl::StrCat(
        "--sandbox lets no connection be made and no file be written, as ", flag, " needs"));
  };
  if (flags.sessions.place != "memory") return refused("--sessions (or INLAY_SESSIONS)");
  if (!flags.shared_prefixes.place.empty()) return refused("--shared-prefixes");
  return absl::OkStatus();
}

absl::Status CheckAccess(const ServeFlags& flags, const ApiKeys& keys) {
  if (IsLoopback(flags.host) || keys.required() || flags.no_key) return absl::OkStatus();
  return UsageError(absl::StrCat(
      "--host ", flags.host,
      " lets other machines in: give --api-key-file FILE (or INLAY_API_KEY), or --no-api-key to "
      "let in everybody"));
}

// The signals that end the server or make it open its files again, held back from all threads that
// are started later, so that this one can wait for them.
class Signals {
 public:
  // With `reloads`, SIGHUP means to open files again. Otherwise it ends the server, as where its
  // terminal is closed, unless the process ignores it, as by nohup: what is held back comes even
  // then.
  explicit Signals(bool reloads) {
    struct sigaction hangup = {};
    sigaction(SIGHUP, nullptr, &hangup);
    sigemptyset(&ends_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&ends_, signal);
    if (!reloads && hangup.sa_handler != SIG_IGN) sigaddset(&ends_, SIGHUP);
    sigset_t held = ends_;
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal is one that ends the server; otherwise it is SIGHUP.
  bool WaitForEnd() const {
    sigset_t held = ends_;
    sigaddset(&held, SIGHUP);
    int signal = 0;
    sigwait(&held, &signal);
    return sigismember(&ends_, signal) == 1;
  }
  // From now on SIGINT and SIGTERM do what they usually do, and SIGHUP nothing: it must not end a
  // server that lets its last answers end.
  void RestoreEnds() const {
    signal(SIGHUP, SIG_IGN);  // one that waits is gone, too
    pthread_sigmask(SIG_UNBLOCK, &ends_, nullptr);
  }

  const sigset_t& ends() const { return ends_; }

 private:
  sigset_t ends_, before_;
};

// During its lifetime the signals that end the server do what they usually do although Signals,
// which must outlive the object, holds them back: while a model is pulled and loaded nobody waits
// for them, and threads that are started then must not get them later.
class EndsBySignal {
 public:
  explicit EndsBySignal(const Signals& signals)
      : ends_(signals.ends()), thread_([this] { Run(); }) {}
  ~EndsBySignal() {
    done_ = true;
    thread_.join();
  }
  EndsBySignal(const EndsBySignal&) = delete;
  EndsBySignal& operator=(const EndsBySignal&) = delete;

 private:
  void Run() const {
    constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 20'000'000};
    while (!done_) {
      const int signal = sigtimedwait(&ends_, nullptr, &kPause);
      if (signal <= 0) continue;
      pthread_sigmask(SIG_UNBLOCK, &ends_, nullptr);
      raise(signal);
      pthread_sigmask(SIG_BLOCK, &ends_, nullptr);  // it is ignored, as by nohup
    }
  }

  const sigset_t ends_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

ServiceOptions OptionsOf(const ServeFlags& flags, const LoadedModel& model) {
  ServiceOptions options = MakeServiceOptions(flags.service, flags.model, model);
  options.scheduler.most_waiting = flags.queue;
  options.scheduler.draft = MostDrafted(flags.draft);
  options.page = !flags.no_page;
  options.own_sessions_only = flags.own_sessions_only;
  options.share_prefixes = flags.share_prefixes;
  options.open_metrics = flags.open_metrics;
  options.parsing.drop_billing_line = !flags.keep_billing_line;
  options.session_ttl = absl::Seconds(flags.sessions.ttl);
  if (flags.timeout > 0) options.deadline = absl::Seconds(flags.timeout);
  return options;
}

void ReadKeysAgain(const ServeFlags& flags, ApiKeys& keys) {
  const absl::Status status = ReadKeys(flags, keys);
  if (status.ok()) return WriteNote("inlay: read the API keys again\n");
  keys.CountFailedReload();
  // Landlock allows the file itself, not its name. A key that was to be revoked is still valid.
  const absl::string_view why = flags.model.sandbox && absl::IsNotFound(status)
                                    ? "; --sandbox lets no file be read that has taken its "
                                      "place since the start: start the server again"
                                    : "";
  WriteNote(absl::StrCat("inlay: the API keys stay as they were: ", status.message(), why, "\n"));
}

template <class Log>
void OpenAgain(const ServeFlags& flags, absl::string_view name, Log& log) {
  const absl::Status status = flags.model.sandbox
                                  ? absl::PermissionDeniedError(
                                        "--sandbox lets none be opened to be written; copy and "
                                        "truncate it instead")
                                  : log.Reopen();
  if (status.ok()) return WriteNote(absl::StrCat("inlay: opened the ", name, " log again\n"));
  WriteNote(absl::StrCat("inlay: the ", name, " log stays the file that it was: ", status.message(),
                         "\n"));
}

// Null: there is none.
struct Logs {
  std::shared_ptr<AnswerLog> answers;
  std::shared_ptr<AccessLog> accesses;
};

absl::StatusOr<Logs> OpenLogs(const ServeFlags& flags) {
  const serve::LineLogOptions options{.note = WriteSentence};
  Logs logs;
  if (!flags.answer_log.empty() && flags.answer_log == flags.access_log) {
    return UsageError(
        absl::StrCat("--answer-log and --access-log cannot both write ", flags.answer_log));
  }
  if (!flags.answer_log.empty()) {
    INLAY_ASSIGN_OR_RETURN(logs.answers, AnswerLog::Open(flags.answer_log, options));
  }
  if (!flags.access_log.empty()) {
    INLAY_ASSIGN_OR_RETURN(logs.accesses, AccessLog::Open(flags.access_log, options));
  }
  return logs;
}

// Until a signal ends the server; SIGHUP reads the keys of a file and opens the logs again.
void WaitForTheEnd(const Signals& signals, const ServeFlags& flags, ApiKeys& keys,
                   const Logs& logs) {
  while (!signals.WaitForEnd()) {
    if (!flags.key_file.empty()) ReadKeysAgain(flags, keys);
    if (logs.answers != nullptr) OpenAgain(flags, "answer", *logs.answers);
    if (logs.accesses != nullptr) OpenAgain(flags, "access", *logs.accesses);
  }
}

// The most connections at a time, with a note where the limit of descriptors makes them fewer.
size_t MostConnections() {
  const size_t wanted = HttpOptions().most_connections;
  const size_t most = serve::MakeRoomForConnections(wanted);
  if (most < wanted) {
    WriteNote(absl::StrCat("inlay: at most ", Plural(most, "connection"), " at a time, not ",
                           wanted, ", as the hard limit of open files (ulimit -Hn) is low\n"));
  }
  return most;
}

absl::Status Run(ServeFlags flags) {
  KeepUnwindingMemory();
  flags.model.serves = true;
  if (!flags.key_file.empty()) flags.model.readable = {flags.key_file};
  INLAY_RETURN_IF_ERROR(CheckSandbox(flags));
  ApiKeys keys;
  INLAY_RETURN_IF_ERROR(ReadKeys(flags, keys));
  INLAY_RETURN_IF_ERROR(CheckAccess(flags, keys));
  // Before the model, too: --sandbox lets no limit be raised.
  const size_t most_connections = MostConnections();
  INLAY_ASSIGN_OR_RETURN(const ChatTemplateChoice chosen,
                         ChatTemplateChoice::Read(flags.service.chat_template));
  const ServiceManager manager;
  // Before the model: --sandbox lets no file be written after that.
  INLAY_ASSIGN_OR_RETURN(const Logs logs, OpenLogs(flags));
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<StateStore> sessions, OpenSessionStore(flags.sessions));
  INLAY_ASSIGN_OR_RETURN(std::optional<serve::SharedPrefixesOptions> shared_prefixes,
                         MakeSharedPrefixesOptions(flags.shared_prefixes));
  const Signals signals(/*reloads=*/!flags.key_file.empty() || logs.answers != nullptr ||
                        logs.accesses != nullptr);
  std::optional<EndsBySignal> starting(std::in_place, signals);
  INLAY_ASSIGN_OR_RETURN(const LoadedModels models, LoadModels(flags.draft, flags.model));
  const LoadedModel& model = models.model;
  absl::StatusOr<ChatRenderer> renderer = chosen.MakeRenderer(model);
  // Told once the server listens: an error before that is one sentence.
  std::string note_on_chats;
  if (!renderer.ok()) {
    if (!flags.service.chat_template.empty()) return renderer.status();
    note_on_chats =
        absl::StrCat("inlay: no chats, completions alone: ", renderer.status().message(), "\n");
  } else if (chosen.EndsNoAnswer(model) && model.engine->info().embedding_dim == 0) {
    note_on_chats =
        "inlay: no chat template: the model continues the messages of a chat as plain text, until "
        "max_tokens, a stop text or the end of the context; --chat-template NAME or FILE gives "
        "one\n";
  }
  ServiceOptions options = OptionsOf(flags, model);
  if (models.draft_model.has_value())
    options.scheduler.draft_model = models.draft_model->engine.get();
  options.answer_log = logs.answers;
  options.access_log = logs.accesses;
  options.note = WriteSentence;
  options.sessions = std::move(sessions);
  options.shared_prefixes = std::move(shared_prefixes);
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service,
                         Service::Create(model, std::move(renderer), keys, options));
  if (const absl::Status fits = CheckContext(*service, options, model); !fits.ok()) {
    if (flags.model.context.value_or(0) > 0) return fits;
    WriteNote(ContextNote(*service, options));
  }
  const HttpOptions http{
      .host = flags.host,
      .port = static_cast<uint16_t>(flags.port),
      .allowed_hosts = flags.hosts,
      .allowed_origins = flags.origins,
      .most_connections = most_connections,
      .admit = [&service](const serve::HttpRequest& request,
                          bool has_body) { return service->Admit(request, has_body); },
      .error_body = serve::HttpErrorBody,
      .on_refusal =
          [&service](absl::string_view id, absl::string_view path, int status,
                     absl::string_view message) { service->OnRefusal(id, path, status, message); }};
  // From the first request on a signal lets answers end: one that comes now waits.
  starting.reset();
  INLAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpServer> server,
      HttpServer::Start(
          http, [&service](serve::HttpRequest request, std::shared_ptr<serve::HttpReply> reply) {
            service->Handle(std::move(request), std::move(reply));
          }));
  service->CountConnections([&server] { return server->connections(); });
  const std::string host =
      flags.host.find(':') == std::string::npos ? flags.host : absl::StrCat("[", flags.host, "]");
  const std::string address = absl::StrCat("http://", host, ":", server->port(), "/");
  WriteNote(note_on_chats);
  WriteNote(absl::StrCat("inlay: ", options.model_name, " answers at ", address, "v1; ",
                         options.page ? absl::StrCat("chat at ", address, "; ") : std::string(),
                         "Ctrl-C ends it\n"));
  manager.Tell("READY=1");
  WaitForTheEnd(signals, flags, keys, logs);
  manager.Tell("STOPPING=1");
  WriteNote("inlay: ending; once more ends it at once\n");
  signals.RestoreEnds();
  service->Drain(absl::Seconds(flags.drain));
  server->Drain(absl::Seconds(5));
  service->CountConnections(nullptr);
  return absl::OkStatus();
}

}  // namespace

void AddServe(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ServeFlags>();
  flags->model.embeds = std::nullopt;
  CLI::App& command = *app.add_subcommand(
      "serve", "Answers clients over HTTP, as OpenAI's and Anthropic's servers do.");
  AddModelArgument(command, AddEngineFlags(command, flags->model), flags->model);
  AddServiceFlags(command, "; without -c reduced, with a note, if memory is short", flags->model,
                  flags->service);
  command.add_option("--host", flags->host, "address to listen on (default: 127.0.0.1)");
  command.add_option("--port", flags->port, "port (default: 8080); 0: any free one")
      ->check(Between(0, 65535));
  command
      .add_option("--api-key-file", flags->key_file,
                  "a file with a key on each line: KEY [NAME [PRIORITY]] (default: "
                  "$INLAY_API_KEY); SIGHUP reads it again")
      ->type_name("FILE");
  command.add_flag("--no-api-key", flags->no_key, "let other machines in without a key");
  command.add_flag("--metrics-without-key", flags->open_metrics,
                   "let anybody read /metrics, which has no texts, where all else needs a key");
  command
      .add_option("--allow-host", flags->hosts,
                  "accept this name in requests' Host, besides the address; repeatable")
      ->allow_extra_args(false)
      ->check(CheckHostName);
  command
      .add_option("--allow-origin", flags->origins,
                  "let web pages of this origin (https://example.org) send requests; repeatable")
      ->allow_extra_args(false)
      ->check(CheckOrigin);
  command.add_option("--queue", flags->queue, "most answers that wait (default: 256)")
      ->check(Between(0, 1 << 20));
  AddDraftFlags(command, flags->draft, /*usual=*/4);
  command
      .add_option("--timeout", flags->timeout,
                  "seconds for a whole answer, waiting included; 0: no limit (default)")
      ->check(Between(0, 1e9));
  command
      .add_option("--drain", flags->drain,
                  "seconds that running answers get when the server ends (default: 30); sessions' "
                  "turns that have ended are stored in any case")
      ->check(Between(0, 1e9));
  AddSessionStoreFlags(command, flags->sessions);
  AddSharedPrefixesFlags(command, flags->shared_prefixes);
  command.add_flag("--own-sessions-only", flags->own_sessions_only,
                   "refuse turns of sessions that another program, instruction set, model or type "
                   "of stored rows has computed (default: their tokens are computed again)");
  command
      .add_option(
          "--answer-log", flags->answer_log,
          "append each answer to this file, prompts included, for inlay replay; SIGHUP opens "
          "it again")
      ->type_name("FILE");
  command
      .add_option("--access-log", flags->access_log,
                  "append a line of JSON for each request to this file, without texts; SIGHUP "
                  "opens it again")
      ->type_name("FILE");
  command.add_flag("--no-page", flags->no_page, "have no web page at /");
  command.add_flag("--share-prefixes", flags->share_prefixes,
                   "reuse what was computed for one key for all others, too");
  command.add_flag("--keep-billing-line", flags->keep_billing_line,
                   "render a system prompt's first block even if it is a changing billing header");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay

#include "tools/local_chat.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/about.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/generation/generate.h"
#include "io/file/file_kind.h"
#include "io/gguf/gguf.h"
#include "io/store/state_store_file.h"
#include "ops/quant/weight_type.h"
#include "tools/answer_printer.h"
#include "tools/flags/usage_error.h"
#include "tools/footer.h"
#include "tools/interrupt.h"
#include "tools/line_reader.h"
#include "tools/load_options.h"
#include "tools/output.h"
#include "tools/overwrite.h"
#include "tools/progress.h"
#include "tools/prompt_progress.h"

namespace inlay {
namespace {

// "Q4_K": the type of most of the weights.
absl::string_view MainType(const GgufFile& file) {
  std::map<WeightType, size_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) bytes[tensor.type] += tensor.data.size();
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return "no weights";
  const std::string_view name = GetWeightTypeInfo(most->first).name;
  return {name.data(), name.size()};
}

// Bytes that are shown of a text of the last turn, and of one in a list.
constexpr size_t kShortText = 400, kShortLine = 60;

// The model of this process.
class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(const LoadedModel& model, ChatSession session, LocalChatOptions options)
      : model_(model),
        session_(std::move(session)),
        temperature_(options.temperature),
        exact_(options.exact),
        trims_(options.trims),
        format_note_(std::move(options.format_note)),
        again_(std::move(options.again)),
        kept_(std::move(options.kept)),
        store_(std::move(options.store)) {
    if (trims_) Trim();
  }
  // The session calls this object.
  LocalPartner(const LocalPartner&) = delete;
  LocalPartner& operator=(const LocalPartner&) = delete;

  // Goes on with the newest chat that was kept.
  absl::Status GoOn() {
    const absl::Status status = LoadKept("the last chat", [&](const LoadOptions& options) {
      return kept_->LoadNewest(session_, options);
    });
    if (absl::IsNotFound(status)) return About(model_.file->name(), status);
    if (absl::IsInvalidArgument(status) || absl::IsDataLoss(status)) {
      return absl::Status(
          status.code(), absl::StrCat(status.message(),
                                      "; without --continue, /chats lists the others, and /chats N "
                                      "goes on with one of them"));
    }
    INLAY_RETURN_IF_ERROR(status);
    note_ = absl::StrCat("going on after turn ", session_.turns().size(), "\n", LastTurn());
    return absl::OkStatus();
  }

  std::string Opening() const override {
    const EngineInfo& info = model_.engine->info();
    return absl::StrCat(PrintableName(model_.file->name()), ": ", info.config_name, ", ",
                        MainType(*model_.file), ", a context of ",
                        Plural(session_.cache().max_length(), "token"), "\n", format_note_, note_);
  }

  std::string Closing() override {
    Keep();  // what the last commands have changed
    if (kept_ == nullptr || session_.turns().empty()) return "";
    return absl::StrCat(again_, " goes on with this chat\n");
  }

  absl::Status Say(const std::string& text, AnswerPrinter& printer,
                   const CancelCheck& cancel) override {
    return Answer(printer, cancel, [&](auto&... how) { return session_.Say(text, how...); });
  }

  absl::Status Regenerate(AnswerPrinter& printer, const CancelCheck& cancel) override {
    return Answer(printer, cancel, [&](auto&... how) { return session_.Regenerate(how...); });
  }

  absl::StatusOr<std::string> Run(const ChatCommand& command, LineReader& reader) override {
    const std::string& name = command.name;
    const std::optional<uint64_t>& number = command.number;
    if (name == "/stats") return Stats();
    if (name == "/save" || name == "/save!") {
      INLAY_RETURN_IF_ERROR(Save(command.text, name == "/save!", reader));
      return absl::StrCat("saved ", Plural(session_.turns().size(), "turn"), "\n");
    }
    if (name == "/load") {
      Keep();
      const std::string system = session_.system();
      INLAY_RETURN_IF_ERROR(Load(command.text));
      BeginAnother();
      return Loaded(system);
    }
    if (name == "/chats") {
      Keep();
      if (!number.has_value()) return Chats();
      const std::string system = session_.system();
      INLAY_RETURN_IF_ERROR(GoTo(*number));
      return Loaded(system);
    }
    if (name == "/show") return Show(number);
    if (name == "/clear") {
      Keep();
      INLAY_RETURN_IF_ERROR(session_.Clear());
      BeginAnother();
      return "removed all turns\n";
    }
    if (name == "/rewind") {
      INLAY_RETURN_IF_ERROR(Rewind(number.value_or(1)));
      return absl::StrCat("back after turn ", session_.turns().size(), "\n");
    }
    if (name == "/fork" && number.has_value()) {
      INLAY_ASSIGN_OR_RETURN(const std::optional<size_t> left, session_.SwitchTo(*number));
      return absl::StrCat(
          "at fork ", *number, ", after turn ", session_.turns().size(),
          left.has_value() ? absl::StrCat("; fork ", *left, " keeps where you were") : "", "\n");
    }
    if (name == "/fork") {
      INLAY_ASSIGN_OR_RETURN(const size_t fork, session_.Fork());
      return absl::StrCat("kept; /fork ", fork, " continues from here\n");
    }
    if (name == "/forks") return Forks();
    if (name == "/drop") {
      INLAY_RETURN_IF_ERROR(session_.DropFork(*number));
      return absl::StrCat("fork ", *number, " is gone\n");
    }
    if (name == "/tokens") return Tokens(number.value_or(0));
    return SetOption(command);
  }

 private:
  // Drops the oldest turns where the context is full.
  void Trim() {
    session_.DropOldTurnsWhenFull([this](size_t dropped, size_t tokens) {
      WriteDimmedNote(absl::StrCat(
          "the context of ", Plural(session_.cache().max_length(), "token"),
          " is full: forgot the ", dropped == 1 ? "oldest turn" : Plural(dropped, "oldest turn"),
          ", computing the other ", Plural(tokens, "token"), " anew\n"));
    });
  }

  template <class Ask>
  absl::Status Answer(AnswerPrinter& printer, const CancelCheck& cancel, const Ask& ask) {
    std::optional<AnswerParser> parser;
    PromptProgress progress;
    const TextCallback show = [&](absl::string_view text) {
      progress.End();
      if (!parser.has_value()) parser = session_.StartAnswer();
      printer.Print(parser->Push(text));
    };
    const CancelCheck check = [&] {
      if (!parser.has_value()) ShowPrompt(progress);
      return cancel();
    };
    auto result = ask(show, check);
    progress.End();
    if (!result.ok()) return result.status();
    last_seed_ = session_.seed() - 1;
    if (parser.has_value()) printer.Print(parser->Finish());
    printer.EndLine();
    last_ = *std::move(result);
    if (last_.stop_reason == StopReason::kContextFull) {
      WriteNote(absl::StrCat("the context of ", Plural(session_.cache().max_length(), "token"),
                             " is full; ", trims_ ? "the next message" : "/rewind or /clear",
                             " makes room\n"));
    }
    Keep();
    return absl::OkStatus();
  }

  void ShowPrompt(PromptProgress& progress) const {
    if (session_.turns().empty()) return;
    const ChatSession::Turn& turn = session_.turns().back();
    const size_t length = session_.cache().length();
    if (turn.answer_begin > turn.begin && length >= turn.begin)
      progress.Update(length - turn.begin, turn.answer_begin - turn.begin);
  }

  // Keeps the chat as it is now. The first error is said, and nothing is kept any more.
  void Keep() {
    if (kept_ == nullptr) return;
    const std::string before = kept_->key();
    const absl::Status status = kept_->Keep(session_);
    // The number in the list stays that of this chat.
    if (!before.empty()) std::replace(listed_.begin(), listed_.end(), before, kept_->key());
    if (status.ok()) return;
    WriteNote(absl::StrCat("inlay: this chat cannot be kept: ", status.message(), "\n"));
    kept_ = nullptr;
  }

  void BeginAnother() {
    if (kept_ != nullptr) kept_->BeginAnother();
  }

  absl::StatusOr<std::string> SetOption(const ChatCommand& command) {
    if (command.name == "/system") {
      if (command.text.empty()) return SystemText(session_.system());
      INLAY_RETURN_IF_ERROR(session_.SetSystem(SystemOf(command.text)));
      return session_.turns().empty()
                 ? "the chat has this system prompt\n"
                 : "the chat has this system prompt, and is computed anew with it\n";
    }
    if (command.name == "/temp") {
      if (command.value.has_value()) {
        temperature_ = *command.value;
        session_.SetTemperature(*command.value);
      }
      return Format("temperature: %g\n", temperature_);
    }
    if (command.name == "/seed") {
      if (command.number.has_value()) session_.SetSeed(*command.number);
      return absl::StrCat("the next answer has seed ", session_.seed(), "\n");
    }
    return absl::InternalError(command.name);
  }

  std::string Forks() const {
    std::string text;
    for (const ChatSession::ForkSize& fork : session_.forks()) {
      absl::StrAppend(&text, "fork ", fork.number, ": ", Plural(fork.turns, "turn"), ", ",
                      Plural(fork.tokens, "token"), "\n");
    }
    return text.empty() ? "there are no forks; /fork makes one\n" : text;
  }

  // A line for each token of the last answer.
  absl::StatusOr<std::string> Tokens(size_t others) {
    constexpr size_t kMost = 20;
    if (others > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("/tokens shows at most ", kMost, " others, not ", others));
    }
    const InterruptWatch interrupt;
    const auto shown = [&](int32_t token, float logprob) {
      const absl::string_view text = model_.tokenizer->TokenBytes(token);
      return Format("%5.1f %% %s", 100 * std::exp(logprob),
                    absl::StrCat("\"", PrintableName(text), "\""));
    };
    // The likeliest may be the chosen one.
    INLAY_ASSIGN_OR_RETURN(
        const std::vector<ChosenToken> chosen,
        session_.LastChances(others == 0 ? 0 : others + 1, [&] { return interrupt.requested(); }));
    std::string text;
    for (const ChosenToken& token : chosen) {
      AppendFormat(&text, "%7d %s", token.token, shown(token.token, token.logprob));
      size_t left = others;
      for (const TokenChance& other : token.top) {
        if (other.token == token.token || left == 0) continue;
        absl::StrAppend(&text, ";  ", shown(other.token, other.logprob));
        --left;
      }
      text += "\n";
    }
    return text;
  }

  absl::Status Save(const std::string& file, bool force, LineReader& reader) {
    if (store_ != nullptr) {
      if (const auto present = store_->Get(file); !force && present.ok()) {
        return absl::AlreadyExistsError(
            absl::StrCat(QuoteForMessage(file), " exists; /save! replaces it"));
      }
      INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer, store_->Put(file));
      return session_.Save(*writer);
    }
    // A line of its own, since line editing breaks a long prompt where the terminal ends.
    const auto ask = [&](const std::string& fact, const char* question) {
      WriteNote(absl::StrCat(fact, reader.interactive() ? "\n" : absl::StrCat("; ", question)));
      return reader.Ask(question);
    };
    INLAY_ASSIGN_OR_RETURN(const Replace replace,
                           MayReplace(file, FileKind::kChat, force, "/save!", ask));
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer,
                           WriteStateFile(file, FileKind::kChat, replace));
    return session_.Save(*writer);
  }

  absl::Status Load(const std::string& file) {
    const InterruptWatch interrupt;
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader,
                           store_ != nullptr ? store_->Get(file) : ReadStateFile(file));
    return About(file, WithFlag(session_.Load(*reader, ShownLoad(file, exact_, interrupt))));
  }

  // Loads a kept chat by `load(options)`; notes call it `name`.
  template <class Load>
  absl::Status LoadKept(const std::string& name, const Load& load) {
    const InterruptWatch interrupt;
    return WithFlag(load({.exact = false,
                          .on_recompute =
                              [&](absl::string_view why, size_t tokens) {
                                WriteDimmedNote(absl::StrCat("computing the ",
                                                             Plural(tokens, "token"), " of ", name,
                                                             " again, since ", why, "\n"));
                              },
                          .cancel = [&] { return interrupt.requested(); },
                          .progress = ShowProgress("computing it again", ProgressUnit::kTokens)}));
  }

  // An error about a conversation that is too long, with the flag that makes room.
  static absl::Status WithFlag(const absl::Status& status) {
    if (!absl::IsOutOfRange(status)) return status;
    return absl::OutOfRangeError(absl::StrCat(status.message(), " (-c)"));
  }

  // What is said of a chat that has replaced another one with this system prompt.
  std::string Loaded(const std::string& system_before) const {
    std::string text = absl::StrCat("after turn ", session_.turns().size(), ", ",
                                    Plural(session_.cache().length(), "token"), "\n");
    if (!system_before.empty() && session_.system() != system_before) {
      text += session_.system().empty()
                  ? "it has no system prompt; that of the chat before is not used\n"
                  : "its system prompt replaces that of the chat before; /system shows it\n";
    }
    return text + LastTurn();
  }

  // The last turn, in a few lines.
  std::string LastTurn() const {
    if (session_.turns().empty()) return "";
    const ChatSession::Turn& turn = session_.turns().back();
    return ShownTurn(Shortened(turn.user, kShortText),
                     Shortened(session_.AnswerWithoutThoughts(turn), kShortText));
  }

  std::string Show(std::optional<uint64_t> last) const {
    const std::vector<ChatSession::Turn>& turns = session_.turns();
    if (turns.empty()) return "there are no turns\n";
    std::string text;
    for (size_t i = turns.size() - std::min<uint64_t>(turns.size(), last.value_or(turns.size()));
         i < turns.size(); ++i)
      absl::StrAppend(&text, ShownTurn(turns[i].user, session_.AnswerWithoutThoughts(turns[i])));
    return text;
  }

  absl::StatusOr<std::vector<std::string>> KeptKeys() {
    if (kept_ == nullptr) return absl::FailedPreconditionError("no chats are kept here");
    return kept_->List();
  }

  // A line for each kept chat.
  absl::StatusOr<std::string> Chats() {
    INLAY_ASSIGN_OR_RETURN(listed_, KeptKeys());
    std::string text;
    for (size_t i = 0; i < listed_.size(); ++i) {
      const absl::StatusOr<KeptChats::Summary> chat = kept_->Summarize(listed_[i]);
      absl::StrAppend(&text, i + 1, ": ");
      if (!chat.ok()) {
        absl::StrAppend(&text, chat.status().message(), "\n");
        continue;
      }
      absl::StrAppend(&text, chat->kept, chat->kept.empty() ? "" : ", ",
                      Plural(chat->turns, "turn"), ": ",
                      PrintableName(Shortened(chat->first_user, kShortLine)), "\n");
    }
    if (text.empty()) return "no chat with this model has been kept\n";
    return absl::StrCat(text, "/chats N goes on with one of them\n");
  }

  // Goes on with the kept chat of this number in the list that Chats has shown last, or would show
  // now where it has shown none.
  absl::Status GoTo(uint64_t number) {
    INLAY_ASSIGN_OR_RETURN(std::vector<std::string> keys, KeptKeys());
    if (!listed_.empty()) keys = listed_;
    if (number < 1 || number > keys.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("there is no chat ", number, " among ", keys.size(), "; /chats lists them"));
    }
    if (keys[number - 1].empty()) {
      return absl::NotFoundError(
          absl::StrCat("chat ", number, " has no turns any more; /chats lists those that have"));
    }
    return LoadKept("that chat", [&](const LoadOptions& options) {
      return kept_->Load(keys[number - 1], session_, options);
    });
  }

  absl::Status Rewind(size_t turns) {
    const InterruptWatch interrupt;
    const absl::Status status = session_.Rewind(
        turns, [&] { return interrupt.requested(); },
        ShowProgress("computing the turns before again", ProgressUnit::kTokens));
    if (!absl::IsCancelled(status)) return status;
    return absl::CancelledError("interrupted; no turn was removed");
  }

  std::string Stats() const {
    const KVCache& cache = session_.cache();
    std::string text =
        Format("turns: %d; tokens: %d of %d; memory: %.1f MB; forks: %d\n", session_.turns().size(),
               cache.length(), cache.max_length(),
               static_cast<double>(cache.allocated_bytes()) / 1e6, session_.forks().size());
    if (last_.prompt_tokens > 0) {
      absl::StrAppend(&text, "last answer: ", RatesText(last_), "; seed ", last_seed_, "\n");
    }
    absl::StrAppend(&text, "the next answer has seed ", session_.seed(), "\n");
    return text;
  }

  const LoadedModel& model_;
  ChatSession session_;
  double temperature_;
  const bool exact_;  // refuse to load a conversation that has to be computed again
  const bool trims_;
  const std::string format_note_;            // for the opening: of the chat's format
  const std::string again_;                  // goes on with the chat
  std::unique_ptr<KeptChats> kept_;          // null: the chat is not kept
  std::vector<std::string> listed_;          // the keys that Chats has shown last
  const std::shared_ptr<StateStore> store_;  // of /save and /load; null: they name files
  std::string note_;                         // for the opening: of what it goes on with
  GenerateResult last_;
  uint64_t last_seed_ = 0;  // of last_
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatPartner>> MakeLocalPartner(const LoadedModel& model,
                                                              ChatSession session,
                                                              LocalChatOptions options) {
  const bool goes_on = options.goes_on;
  auto partner = std::make_unique<LocalPartner>(model, std::move(session), std::move(options));
  if (!goes_on) return partner;
  const absl::Status status = partner->GoOn();
  // There is no chat yet to come back to.
  if (absl::IsCancelled(status)) return InterruptedError(status.message());
  INLAY_RETURN_IF_ERROR(status);
  return partner;
}

}  // namespace inlay
